"""A file that is still arriving: it can be left at any moment and continued later."""

import hashlib
import os
from pathlib import Path

MARK_EVERY = 8 * 2**20
BLOCK = 2**20


class Partial:
    """The beginning of a file at `path`, in `size` bytes, with a running SHA-256.

    Every 8 MiB the SHA-256 of all bytes so far is noted in a second file (`path` + ".marks"). When
    the file is opened again the beginning is read and kept only as far as these marks agree with
    it, so neither a killed program nor a cut of power can spoil what is built on top.

    >>> with Partial(Path("model.gguf")) as partial:  # continues where the last one stopped
    ...     partial.append(b"next bytes")
    """

    def __init__(self, path: Path):
        self.path = path
        self._marks = path.with_name(path.name + ".marks")
        self._hash = hashlib.sha256()
        self.size = 0
        path.touch()
        self._file = path.open("r+b")
        self._keep_what_is_sound()
        self._marked = self.size

    def __enter__(self) -> "Partial":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes so far, in hexadecimal."""
        return self._hash.hexdigest()

    def append(self, chunk: bytes) -> None:
        """Write `chunk` at the end. Raises OSError as any writing does."""
        self._file.write(chunk)
        self._hash.update(chunk)
        self.size += len(chunk)
        if self.size - self._marked >= MARK_EVERY:
            self._mark()

    def restart(self) -> None:
        """Throw everything away and begin at zero."""
        self._file.seek(0)
        self._file.truncate()
        self._marks.unlink(missing_ok=True)
        self._hash = hashlib.sha256()
        self.size = self._marked = 0

    def close(self) -> None:
        """Note how far we came, and close. Closing twice does no harm."""
        if self._file.closed:
            return
        try:
            if self.size > self._marked:
                self._mark()
        finally:
            self._file.close()

    def finish(self, target: Path) -> None:
        """Move the complete file to `target` in one step, after it has reached the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self.path, target)
        self._marks.unlink(missing_ok=True)

    def _mark(self) -> None:
        self._file.flush()
        with self._marks.open("a", encoding="ascii") as marks:
            marks.write(f"{self.size} {self.sha256}\n")
        self._marked = self.size

    def _keep_what_is_sound(self) -> None:
        sound = []
        for offset, digest in self._read_marks():
            trial = self._hash.copy()
            if offset <= self.size or not self._read_into(trial, offset - self.size):
                break
            if trial.hexdigest() != digest:
                break
            self._hash, self.size = trial, offset
            sound.append(f"{offset} {digest}\n")
        self._file.seek(self.size)
        self._file.truncate()
        self._marks.write_text("".join(sound), encoding="ascii")

    def _read_marks(self) -> list[tuple[int, str]]:
        try:
            lines = self._marks.read_text(encoding="ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        pairs = [line.split() for line in lines]
        # A line that was cut off while being written is no mark.
        return [(int(p[0]), p[1]) for p in pairs if len(p) == 2 and p[0].isdecimal()]

    def _read_into(self, digest: "hashlib._Hash", length: int) -> bool:
        while length > 0:
            block = self._file.read(min(BLOCK, length))
            if not block:
                return False
            digest.update(block)
            length -= len(block)
        return True
