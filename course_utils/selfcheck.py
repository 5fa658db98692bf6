"""Is everything here that the notebooks need? Answered without a network and without numbers.

What the table says is the same on every machine where all is well, so that it can be compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from course_utils.cli import pins, places
from course_utils.errors import CourseError
from course_utils.models import catalogue, recordings
from course_utils.models.source import chosen_mode
from course_utils.models.tokenizer import CourseTokenizer
from course_utils.show import View, table

SAMPLE = "Hi! I'm Bob"
SAMPLE_IDS = [13048, 0, 358, 2776, 14261]  # what Qwen2.5's tokenizer makes of it


@dataclass(frozen=True)
class Finding:
    """One question about this computer: `ok` is None for what is there to choose, not needed."""

    what: str
    ok: bool | None
    says: str


def selfcheck() -> View:
    """A table of all findings; each one that is not well says what to type."""
    words = {True: "✓ ok", False: "✗ not ok", None: "○ optional"}
    rows = [[finding.what, words[finding.ok], finding.says] for finding in findings()]
    return table(rows, ["what", "", "detail"], "Environment self-check")


def findings() -> list[Finding]:
    """All findings, the needed ones first.

    >>> [finding.what for finding in findings()][:2]
    ['Python', 'packages']
    """
    mode = chosen_mode(None)
    found = [python(sys.version_info[:2]), packages(), token_files(), recorded()]
    return [*found, *(weights(name, mode) for name, m in catalogue.catalogue().items() if m.tried)]


def python(version: tuple[int, int]) -> Finding:
    """Whether Python is new enough."""
    if version >= (3, 11):
        return Finding("Python", True, "3.11 or newer")
    found = ".".join(map(str, version))
    return Finding("Python", False, f"This is Python {found}; the course needs 3.11 or newer.")


def packages(lock: Path = places.ROOT / "requirements.lock") -> Finding:
    """Whether every package of the lock is here in the pinned version."""
    missing = pins.missing_pins(lock)
    if not missing:
        return Finding("packages", True, "all of requirements.lock, in the pinned versions")
    some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
    return Finding(
        "packages",
        False,
        f"{len(missing)} missing or in another version ({some}). Start the notebooks with "
        "`make lab` (or `python -m course_utils lab`), which sets them up.",
    )


def token_files(folder: str = "qwen2.5-coder") -> Finding:
    """Whether the tokenizer is complete and gives the ids it should."""

    def check() -> str:
        if CourseTokenizer(folder).encode(SAMPLE) != SAMPLE_IDS:
            raise CourseError(
                f"The tokenizer in data/tokenizers/{folder} gives other ids than it should. "
                "Restore it with `git checkout -- data/tokenizers`."
            )
        return "gives the expected ids"

    return _tried("tokenizer", check)


def recorded(folder: Path = recordings.RECORDINGS) -> Finding:
    """Whether there are recordings and every line of them can be read."""

    def check() -> str:
        if not recordings.Recordings(folder).by_key:
            raise CourseError(
                "There is no recorded reply in data/recordings. Restore the folder with "
                "`git checkout -- data/recordings`."
            )
        return "every recorded reply can be read"

    return _tried("recordings", check)


def weights(name: str, mode: str) -> Finding:
    """Whether a model's weights are here, and how to get them.

    In recorded mode nothing else may answer, so the weights are not looked for: the stored table
    is then the same with and without them.
    """
    what = f"weights of {name}"
    spec = catalogue.spec(name)
    how = f"`make fetch MODEL={name}` ({spec.bytes / 1e9:.1f} GB, once)"
    if mode == "recorded":
        return Finding(what, None, f"not needed for recorded replies; for live ones: {how}")
    if catalogue.have_weights(spec):
        return Finding(what, True, "here: changed prompts are answered live")
    needed = mode == "live"
    return Finding(what, False if needed else None, f"not here; for live replies: {how}")


def _tried(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, check())
    except CourseError as error:
        return Finding(what, False, str(error))
