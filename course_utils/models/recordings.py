"""Recorded replies: JSON lines, one file per notebook, found by the hash of the request.

A recording holds the prompt as people read it, the reply's text and ids, why it ended, and which
engine wrote it; nothing that depends on timing. Prompt ids are stored where encoding the text
again would not give them back.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Alternative
from course_utils.models.catalogue import CATALOGUE, ModelSpec
from course_utils.models.seam import Generation, Request
from course_utils.models.tokenizer import CourseTokenizer

RECORDINGS = CATALOGUE.parent / "recordings"
KINDS = {
    "key": str,
    "model": str,
    "prompt": str,
    "text": str,
    "ids": list,
    "finish_reason": str,
    "settings": dict,
}


def read_file(path: Path) -> list[dict[str, Any]]:
    """The records of one file; a line that is no record gives an error naming file and line."""
    records = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"Cannot read the recordings in {path.name}: {error}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            missing = [name for name in KINDS if name not in record]
        except (json.JSONDecodeError, TypeError) as error:
            raise _corrupt(path, number, str(error)) from error
        if missing:
            raise _corrupt(path, number, f"it lacks {', '.join(missing)}")
        wrong = [name for name, kind in KINDS.items() if not isinstance(record[name], kind)]
        if wrong:
            raise _corrupt(path, number, f"it has the wrong type of {', '.join(wrong)}")
        records.append({**record, "file": path.name})
    return records


def _corrupt(path: Path, number: int, why: str) -> CourseError:
    return CourseError(
        f"Line {number} of data/recordings/{path.name} is not a recording ({why}). Restore the "
        f"file with `git checkout -- data/recordings/{path.name}`, or record its notebook again."
    )


def make_record(
    request: Request, generation: Generation, spec: ModelSpec, tok: CourseTokenizer, engine: str
) -> dict[str, Any]:
    """One reply as it is written to a file; `engine` names program and version."""
    prompt = tok.decode(list(request.prompt_ids))
    record: dict[str, Any] = {
        "key": request.key(spec.sha256),
        "model": spec.name,
        "prompt": prompt,
        "text": generation.text,
        "ids": list(generation.ids),
        "finish_reason": generation.finish_reason,
        "prompt_tokens": len(request.prompt_ids),
        "output_tokens": len(generation.ids),
        "settings": {
            "max_new_tokens": request.max_new_tokens,
            "stop": list(request.stop),
            "grammar": request.grammar,
            "temperature": request.temperature,
            "seed": request.seed,
            "trial": request.trial,
        },
        "engine": engine,
    }
    if tok.encode(prompt) != list(request.prompt_ids):
        record["prompt_ids"] = list(request.prompt_ids)
    if generation.alternatives:
        record["alternatives"] = [
            [[option.id, option.logprob] for option in row] for row in generation.alternatives
        ]
    return record


def request_of(record: dict[str, Any], tok: CourseTokenizer) -> Request:
    """The request that a record answers."""
    ids = record.get("prompt_ids") or tok.encode(record["prompt"])
    settings = record["settings"]
    return Request(
        prompt_ids=tuple(ids),
        max_new_tokens=settings["max_new_tokens"],
        stop=tuple(settings["stop"]),
        grammar=settings["grammar"],
        temperature=settings["temperature"],
        seed=settings["seed"],
        trial=settings["trial"],
    )


def generation_of(record: dict[str, Any], tok: CourseTokenizer, top_k: int = 0) -> Generation:
    """The reply in a record, with at most `top_k` candidates per token."""
    rows = tuple(
        tuple(Alternative(id, tok.decode([id]), logprob) for id, logprob in row[:top_k])
        for row in record.get("alternatives", ())
    )
    return Generation(
        ids=tuple(record["ids"]),
        text=record["text"],
        finish_reason=record["finish_reason"],
        alternatives=rows if top_k else (),
        origin="recorded",
    )


class Recordings:
    """All recorded replies, looked up by key over every file of a folder.

    >>> Recordings().find("no such key") is None
    True
    """

    def __init__(self, folder: Path = RECORDINGS) -> None:
        self.by_key: dict[str, dict[str, Any]] = {}
        for path in sorted(folder.glob("*.jsonl")):
            for record in read_file(path):
                known = self.by_key.get(record["key"])
                if known is None or _top_k(record) > _top_k(known):
                    self.by_key[record["key"]] = record

    def find(self, key: str, top_k: int = 0) -> dict[str, Any] | None:
        """The record of that key, if it holds at least `top_k` candidates per token."""
        record = self.by_key.get(key)
        return record if record is not None and _top_k(record) >= top_k else None

    def explain_miss(self, request: Request, model: str, prompt: str) -> str:
        """Three lines: the nearest recorded prompt of that model against this one."""
        candidates = [r for r in self.by_key.values() if r["model"] == model]
        if not candidates:
            return f"Nothing at all is recorded of {model}."
        nearest = max(candidates, key=lambda r: (_common(r["prompt"], prompt), r["key"]))
        at = _common(nearest["prompt"], prompt)
        if nearest["prompt"] == prompt:
            return _settings_difference(nearest, request)
        return (
            f"The nearest recorded prompt ({nearest['file']}) differs from character {at} on:\n"
            f"  recorded: {_excerpt(nearest['prompt'], at)}\n"
            f"  asked:    {_excerpt(prompt, at)}"
        )


def _top_k(record: dict[str, Any]) -> int:
    rows = record.get("alternatives") or [[]]
    return len(rows[0])


def _common(a: str, b: str) -> int:
    return len(os.path.commonprefix([a, b]))


def _excerpt(text: str, at: int) -> str:
    piece = text[max(0, at - 30) : at + 50]
    return repr(("…" if at > 30 else "") + piece + ("…" if at + 50 < len(text) else ""))


def _settings_difference(record: dict[str, Any], request: Request) -> str:
    asked = {
        "max_new_tokens": request.max_new_tokens,
        "stop": list(request.stop),
        "grammar": request.grammar,
        "temperature": request.temperature,
        "seed": request.seed,
        "trial": request.trial,
    }
    recorded = record["settings"]
    changed = [name for name in asked if asked[name] != recorded[name]] or ["top_k"]
    return (
        f"The prompt is recorded ({record['file']}), but with other settings:\n"
        f"  recorded: {', '.join(f'{n}={recorded.get(n, _top_k(record))!r}' for n in changed)}\n"
        f"  asked:    {', '.join(f'{n}={asked.get(n, request.top_k)!r}' for n in changed)}"
    )
