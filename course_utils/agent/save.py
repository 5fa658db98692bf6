"""A run on disk: one line for each event, appended as it happens.

Each line is JSON and ends in a checksum over itself and all lines before it. A line without its
end is what a crash leaves: it is dropped, and the run goes on from the line before. A wrong
checksum anywhere else is damage, and is said so. Only one process at a time may work on a run.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.trace import (
    Asked,
    Began,
    Cleared,
    Decided,
    Event,
    Started,
    Stopped,
    Trace,
    from_json,
    to_json,
)

MARK = ', "crc": "'


class RunFile:
    """The file of one run, locked for this process and open for appending. Use it with `with`.

    `events` holds what was in the file when it was opened.
    """

    def __init__(self, path: str | Path, *, new: bool = False) -> None:
        import filelock

        self.path = Path(path)
        if not new and not self.path.exists():
            raise CourseError(f"There is no saved run {self.path.name!r}: start one with save=….")
        self._lock = filelock.FileLock(f"{self.path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise CourseError(
                f"Another process is working on the run {self.path.name!r}: wait until it ends."
            ) from error
        except OSError as error:
            raise CourseError(f"The run {self.path.name!r} cannot be saved: {error}.") from error
        try:
            self._open(new)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, new: bool) -> None:
        self.events, self._crc, good, self._synced = [], 0, 0, True
        if not new:
            data = self.path.read_bytes()
            self.events, self._crc, good = read(data, self.path.name)
        try:
            self._file = open(self.path, "xb" if new else "r+b", buffering=0)  # noqa: SIM115
        except FileExistsError as error:
            raise CourseError(
                f"The run {self.path.name!r} is there already: resume it, or choose another name."
            ) from error
        self._file.seek(good)
        self._file.truncate()
        if new:
            self._sync_folder()

    def add(self, event: Event) -> None:
        """Append an event.

        It is in the system's hands at once, so it outlives this process. Before anything changes
        the world, and whenever the run pauses or a person has decided, everything so far is forced
        onto the disk, so it outlives the power too. (In between, a power cut costs some reading
        steps, which can be done again; forcing each of them would cost milliseconds.)
        """
        line, self._crc = _line(event, self._crc)
        if self._file.write(line) != len(line):
            raise CourseError(f"The run {self.path.name!r} cannot be saved: the disk is full.")
        self._synced = isinstance(event, Started | Began | Asked | Decided | Cleared | Stopped)
        if self._synced:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file and let other processes at it."""
        if not self._synced:
            os.fsync(self._file.fileno())
        self._file.close()
        self._lock.release()

    def __enter__(self) -> RunFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _sync_folder(self) -> None:
        if os.name == "posix":  # elsewhere a folder cannot be opened for this
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def saving(trace: Trace, path: str | Path | None) -> Iterator[None]:
    """Keep a trace in a new file while the block runs; without a path, nowhere."""
    if path is None:
        yield
        return
    if trace.listener is not None:
        raise CourseError("This run is already being saved: leave out save=….")
    with RunFile(path, new=True) as file:
        for event in trace.events:
            file.add(event)
        trace.listener = file.add
        try:
            yield
        finally:
            trace.listener = None


def load_trace(path: str | Path) -> Trace:
    """Read a saved run, as far as it was written; nothing is locked or changed.

    Raises CourseError if the file is missing, damaged or no run.
    """
    path = Path(path)
    if not path.exists():
        raise CourseError(f"There is no saved run {path.name!r}: start one with save=….")
    return Trace(read(path.read_bytes(), path.name)[0])


def read(data: bytes, name: str) -> tuple[list[Event], int, int]:
    """The events in the bytes of a file, the last checksum, and how many bytes are good."""
    events: list[Event] = []
    crc = good = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):  # behind the last \n is nothing, or a tear
        body, mark, tail = line.rpartition(MARK.encode())
        crc = zlib.crc32(body, crc)
        if not mark or tail != f'{crc:08x}"}}'.encode():
            raise CourseError(
                f"Line {number} of the saved run {name!r} is damaged. To go on from before it, "
                f"make a copy of the file and delete line {number} and all that follow."
            )
        events.append(from_json(body.decode("utf-8", "surrogatepass") + "}"))
        good += len(line) + 1
    if not events:
        raise CourseError(f"The file {name!r} holds no run: not even its first line is complete.")
    return events, crc, good


def _line(event: Event, crc: int) -> tuple[bytes, int]:
    body = to_json(event)[:-1].encode("utf-8", "surrogatepass")
    crc = zlib.crc32(body, crc)
    return body + f'{MARK}{crc:08x}"}}\n'.encode(), crc
