"""One worker process: started, given requests, read with a deadline, ended.

Nothing that it writes is trusted: a line that is too long, not JSON, without the worker's own
word or of an unknown kind ends the worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any

from course_utils.errors import CourseError
from course_utils.sandbox.variants import INSIDE, Command

MAX_LINE = 8_000_000  # bytes; a worker keeps its own messages to an eighth of this
MAX_WAITING = 16  # lines read ahead; a worker that floods waits in its own pipe
# Ends a worker when the process that started both is gone: then nobody holds this one's stdin.
# A worker in an endless loop would not see the end of its own.
WATCH = "import os, sys; sys.stdin.read(); os.kill(int(sys.argv[1]), 9)"
KINDS = {"ready": str, "print": str, "full": bool, "call": str, "done": str, "broken": str}


class WorkerEnded(Exception):
    """The worker is gone, by itself or killed; the message says why."""


class Worker:
    """A running worker of one of the variants.

    `command` is what to start; `setup` is its first request. Raises CourseError if it does not
    come up within `start_seconds`.
    """

    def __init__(self, command: Command, setup: dict[str, Any], start_seconds: float = 90) -> None:
        self._word = secrets.token_hex(16)
        self._lines: queue.Queue[bytes] = queue.Queue(MAX_WAITING)
        self._ended = threading.Event()
        self._errors = tempfile.TemporaryFile()
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._runs_programs: int | None = None
        try:
            self._start(command)
            self.send(setup | {"word": self._word}, start_seconds)
            kind, self.version = self.receive(start_seconds)
            if kind != "ready":
                raise WorkerEnded(f"it began with {kind!r}")
        except (WorkerEnded, TimeoutError) as error:
            self.kill()
            reason = str(error) or f"it was not ready within {start_seconds:g} s"
            raise CourseError(
                f"The sandbox did not start: {reason}{self._last_words()}. "
                "To repair it, type: python -m course_utils sandbox"
            ) from error
        except BaseException:  # Ctrl-C
            self.kill()
            raise

    def _start(self, command: Command) -> None:
        """Start the process, from the thread that will read it.

        The kernel ends a `bwrap --die-with-parent` together with the thread that started it, and
        the caller's may be a short one.
        """
        started: queue.Queue[OSError | None] = queue.Queue()
        threading.Thread(target=self._run, args=(command, started), daemon=True).start()
        if (error := started.get()) is not None:
            raise CourseError(f"The sandbox cannot be started: {error}.") from error
        if command.pid_pipe:
            self._runs_programs = read_pid(command.pid_pipe)
        if command.data_mb is not None:
            limit_data(self._process.pid, command.data_mb)
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WATCH, str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _run(self, command: Command, started: queue.Queue[OSError | None]) -> None:
        try:
            process = subprocess.Popen(
                command.arguments,
                env=command.environment,
                cwd=INSIDE,  # the notebook's folder may be gone, or hold settings for Deno
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                pass_fds=command.pid_pipe[1:] if command.pid_pipe else (),
                start_new_session=True,  # Ctrl-C in the notebook is for the notebook
            )
        except OSError as error:
            started.put(error)
            return
        self._process = process
        started.put(None)
        if self._ended.is_set():  # interrupted while it started
            self.kill()
        self._read(process.stdout)

    def send(self, request: dict[str, Any], seconds: float) -> None:
        """Send one JSON line.

        Raises WorkerEnded if nobody is there to read it, and TimeoutError if it is not read
        within `seconds`; the worker is dead then.
        """
        line = json.dumps(request).encode() + b"\n"
        late = threading.Event()
        timer = threading.Timer(max(seconds, 0), self._end_late, (late,))
        timer.daemon = True
        self._signal("SIGCONT")
        timer.start()
        try:  # a pipe that is full blocks the write until the worker reads or is killed
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            self.kill()
            if late.is_set():
                raise TimeoutError from error
            raise WorkerEnded("the worker no longer reads") from error
        finally:
            timer.cancel()

    def _end_late(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def receive(self, seconds: float) -> tuple[str, Any]:
        """The next message as (kind, value).

        Raises TimeoutError after `seconds`, and WorkerEnded for the end of the worker and for a
        line that no worker writes; the worker is dead then.
        """
        try:
            if seconds <= 0:  # even if there are lines: more may come for ever
                raise queue.Empty
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.kill()
            raise TimeoutError from None
        try:
            if not line:
                raise WorkerEnded("the worker ended")
            return read_message(line, self._word)
        except WorkerEnded:
            self.kill()
            raise

    def pause(self) -> None:
        """Stop the process between programs, where one could have left something running."""
        self._signal("SIGSTOP")

    def _signal(self, name: str) -> None:
        if self._runs_programs is not None:
            with contextlib.suppress(ProcessLookupError):  # it ended; the next line says so
                os.kill(self._runs_programs, getattr(signal, name))

    def idle(self) -> bool:
        """Whether the worker is alive and has written nothing that was not asked for."""
        return self._process.poll() is None and self._lines.empty()

    def kill(self) -> None:
        """End the process and everything it started; safe to repeat, from any thread."""
        self._ended.set()
        for process in (self._watcher, self._process):
            if process is not None:
                process.kill()
                process.wait()
                with contextlib.suppress(OSError):
                    process.stdin.close()
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(b"")  # whoever waits for a line waits in vain

    def _read(self, stream: IO[bytes]) -> None:
        while True:
            try:
                line = stream.readline(MAX_LINE)
            except (OSError, ValueError):
                line = b""
            while not self._ended.is_set():
                with contextlib.suppress(queue.Full):
                    self._lines.put(line, timeout=0.1)
                    break
            if not line or self._ended.is_set():
                return

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        told = [
            line for line in lines if line.startswith("error: ")
        ] or lines  # Deno's, or the last
        return f" ({told[-1].strip():.300})" if told else ""


def read_message(line: bytes, word: str) -> tuple[str, Any]:
    """Kind and value of one line of a worker. Raises WorkerEnded if it is not one.

    >>> read_message(b'{"word": "w", "print": "2"}\\n', "w")
    ('print', '2')
    """
    if not line.endswith(b"\n"):
        raise WorkerEnded(f"it wrote a line of more than {MAX_LINE} bytes")
    message = read_json(line.decode("utf-8", "replace"))
    if not isinstance(message, dict) or message.pop("word", None) != word or len(message) != 1:
        raise WorkerEnded("it wrote a line that is no message")
    ((kind, value),) = message.items()
    if type(value) is not KINDS.get(kind):
        raise WorkerEnded("it wrote a message of an unknown kind")
    return kind, value


def read_json(text: str) -> Any:
    """JSON from a worker, without NaN and lone surrogates. Raises WorkerEnded if it is none."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(text, parse_constant=refuse)
        if "\\ud" in text or "\\uD" in text:  # half a character cannot be written to a file
            clean = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            value = json.loads(clean)
    except (ValueError, RecursionError) as error:
        raise WorkerEnded("it wrote a line that is no JSON") from error
    return value


def read_pid(pipe: tuple[int, int]) -> int | None:
    """The process number that bwrap writes into a pipe; None if it ended without."""
    os.close(pipe[1])
    with os.fdopen(pipe[0], encoding="utf-8") as stream:
        text = stream.read()
    return json.loads(text)["child-pid"] if text else None


def limit_data(pid: int, megabytes: int) -> None:
    """Cap the memory that a process may fill, where the system can (Linux)."""
    if sys.platform == "linux":
        import resource

        size = megabytes * 1024 * 1024
        with contextlib.suppress(ProcessLookupError):  # it ended already, and says so itself
            resource.prlimit(pid, resource.RLIMIT_DATA, (size, size))
