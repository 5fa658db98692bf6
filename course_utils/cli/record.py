"""`record`: run notebooks on the live model and replace their recorded replies."""

import json
import tempfile
from argparse import Namespace
from pathlib import Path

from course_utils.cli import places, report
from course_utils.cli.execute import execute
from course_utils.cli.execution import execute_notebook
from course_utils.cli.normalise import write_atomically
from course_utils.errors import CourseError


def record_verb(arguments: Namespace) -> int:
    """Record the chosen notebooks one after the other, then re-execute them in place."""
    codes = [
        record(path, arguments.missing) or execute([path])
        for path in places.choose(arguments.notebooks)
    ]
    return max(codes)


def record(notebook: Path, missing_only: bool = False, folder: Path | None = None) -> int:
    """Run a notebook and its solutions live and replace its recordings, `folder`/<stem>.jsonl.

    With `missing_only` the replies already recorded are kept and only the others are asked
    for. If a cell fails, the old file stays as it was and 1 is returned. Raises CourseError,
    before the model is asked anything, if nothing can be written in `folder`.
    """
    _check_writable(folder or places.RECORDINGS)
    with tempfile.TemporaryDirectory(prefix="course-record-") as scratch:
        collected = Path(scratch) / "records.jsonl"
        variables = {
            "COURSE_MODEL": "live",
            "COURSE_RECORD_TO": str(collected),
            "COURSE_RECORD_REUSE": "1" if missing_only else "",
            "COURSE_THREADS": "1",
        }
        paths = [notebook, *places.solutions_of(notebook)]
        results = [execute_notebook(path, variables) for path in paths]
        print(report.table(results))
        if not all(result.ok for result in results):
            print("\n".join(report.failures(results)))
            print(f"The recordings of {notebook.stem} stay as they were.")
            return 1
        lines = merge(collected.read_text(encoding="utf-8") if collected.exists() else "")
        _replace((folder or places.RECORDINGS) / f"{notebook.stem}.jsonl", lines)
    return 0


def _check_writable(folder: Path) -> None:
    # Replies cost minutes: better to fail before they are asked for than when they are stored.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CourseError(
            f"Recordings cannot be written in {places.short(folder)} ({error.strerror}). Nothing "
            "was asked; check the space and the permissions there."
        ) from error


def merge(text: str) -> list[str]:
    """JSON lines sorted by their "key", one line for each key.

    A key that comes twice is the same reply; the line with more candidates per token is kept.

    >>> merge('{"key": "b"}\\n{"key": "a"}\\n{"key": "b"}\\n')
    ['{"key": "a"}', '{"key": "b"}']
    """
    by_key: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        key = json.loads(line)["key"]
        if key not in by_key or _alternatives(line) > _alternatives(by_key[key]):
            by_key[key] = line
    return [by_key[key] for key in sorted(by_key)]


def _alternatives(line: str) -> int:
    """How many candidates per token a record keeps."""
    return max(map(len, json.loads(line).get("alternatives", ())), default=0)


def _replace(target: Path, lines: list[str]) -> None:
    if not lines:
        target.unlink(missing_ok=True)
        print("The notebook asked no model that is recorded; it has no recordings.")
        return
    write_atomically(target, "\n".join(lines) + "\n")
    print(f"{len(lines)} replies recorded in {places.short(target)}")
