"""How close each token of a recorded reply came to being another one.

`verify` keeps, for each token, its margin (how many logits it was ahead of the best other token)
and that other token, in data/recordings/margins/NN_slug.jsonl. Where a margin is small, a slightly
different prompt would have taken another path: those are the decisive tokens.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.models.checks import Margin, tokenizer_of
from course_utils.models.recordings import RECORDINGS, Recordings

MARGINS = RECORDINGS / "margins"


def reply_hash(record: dict[str, Any]) -> str:
    """A short hash of all that a record says; a margin belongs to a record with this hash."""
    said = {name: value for name, value in sorted(record.items()) if name != "file"}
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def read_margins(path: Path) -> dict[str, dict[str, Any]]:
    """The entries of one margins file by key; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        entries = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
        return {entry["key"]: entry for entry in entries if entry["reply"] and entry["margins"]}
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(
            f"data/recordings/margins/{path.name} is damaged ({error}). Delete it and run "
            "`python -m course_utils verify` to have it written again."
        ) from error


def write_margins(path: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Write entries sorted by key, one a line; a file without entries is removed."""
    if not entries:
        path.unlink(missing_ok=True)
        return
    lines = [json.dumps(entries[key], separators=(",", ":")) for key in sorted(entries)]
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    scratch.write_text("\n".join(lines) + "\n", encoding="utf-8")
    scratch.replace(path)


def load_margins(key: str, folder: Path = MARGINS) -> list[Margin]:
    """The [margin, runner-up id] pairs of a recorded reply, one per token.

    A reply that the model ended itself has one more, for the end token. Both are None where a
    grammar left no choice. Raises CourseError if that reply has not been verified.

    >>> load_margins(record["key"])[0]  # doctest: +SKIP
    (3.25, 13048)
    """
    return [tuple(pair) for pair in _entry(key, folder)["margins"]]


def _entry(key: str, folder: Path) -> dict[str, Any]:
    for path in sorted(folder.glob("*.jsonl")):
        entry = read_margins(path).get(key)
        if entry is not None:
            return entry
    raise CourseError(
        f"No margins are stored for the recording {key[:12]}…: run `python -m course_utils verify`."
    )


@dataclass(frozen=True)
class DecisiveToken:
    """One token of a reply that nearly was another: `margin` in logits, `position` from 0."""

    position: int
    token: str
    runner_up: str
    runner_up_id: int
    margin: float

    def __repr__(self) -> str:
        return (
            f"token {self.position}: {self.token!r}, nearly {self.runner_up!r} "
            f"({self.margin:.2f} logits ahead)"
        )


def decisive_tokens(
    record: dict[str, Any] | str, n: int = 3, folder: Path = MARGINS
) -> list[DecisiveToken]:
    """The `n` tokens of a recorded reply with the smallest margins, closest first.

    `record` is a record, as `Recordings` returns it, or its key. Raises CourseError if it is
    not recorded, not verified, or was changed since it was verified.

    >>> decisive_tokens(record, n=1)  # doctest: +SKIP
    [token 4: ' send', nearly ' get' (0.12 logits ahead)]
    """
    if isinstance(record, str):
        key, record = record, Recordings().find(record)
        if record is None:
            raise CourseError(f"There is no recording with the key {key[:12]}….")
    entry = _entry(record["key"], folder)
    if entry["reply"] != reply_hash(record):
        raise CourseError(
            f"The recording {record['key'][:12]}… was changed since its margins were stored: run "
            "`python -m course_utils verify`."
        )
    tok = tokenizer_of(record)
    ids = [*record["ids"], tok.end_id]
    found = [
        DecisiveToken(place, tok.decode([ids[place]]), tok.decode([other]), other, margin)
        for place, (margin, other) in enumerate(entry["margins"])
        if margin is not None and other is not None
    ]
    return sorted(found, key=lambda token: (token.margin, token.position))[:n]
