"""Proof of the recordings: a second engine confirms each recorded reply, token by token.

First, without weights, each record is checked by itself: its key is the hash of its request, its
text is what its token ids spell, and it could have ended the way it says. Then the judge (torch,
on the same weights file) reads prompt and reply in one pass. Each token of a greedy reply must be
the most likely one or within half a logit of it, under the grammar's mask if there was a grammar,
and so must the end token. A sampled reply may hold no absurd token, nor be improbable as a whole.

What this cannot see. Near a tie both tokens pass, so a reply that took the other way at a margin
under half a logit is accepted: it is one that the model gives as readily. So is a reply cut by
hand exactly where stopping was nearly as likely as going on. Of a sampled reply it is shown that
the model could have drawn it, not that this seed did draw it: at temperature 1 nearly any single
word is possible, and one that was exchanged may pass. And it says nothing about whether a reply is
right.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.models.catalogue import spec
from course_utils.models.changed import keys_changed_since
from course_utils.models.checks import Verdict, form_problems, judge_reply, tokenizer_of
from course_utils.models.judge import Judge
from course_utils.models.margins import (
    decisive_tokens,
    load_margins,
    read_margins,
    reply_hash,
    write_margins,
)
from course_utils.models.recordings import RECORDINGS, read_file, request_of

__all__ = ["decisive_tokens", "load_margins", "verify", "verify_main"]

# Stored margins and those found again differ by the arithmetic of the machine, no more than this.
DRIFT = 1.0

HELP = (
    "Check every record of the chosen notebooks by itself, then let a second engine judge the "
    "replies: all of them, or with --changed-since or --sample only those that changed (no margins "
    "stored for what they say now, or touched since REV) and N others."
)
LIMITS = (
    "It cannot see everything: near a tie both tokens pass, so a reply cut exactly where stopping "
    "was nearly as likely as going on is accepted, and a sampled reply need only be a likely one."
)


@dataclass
class Report:
    """What came out of one run; `lines()` is how it is printed."""

    replies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    verdicts: dict[str, list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    failures: list[tuple[str, str]] = field(default_factory=list)  # notebook, sentence
    missed: dict[str, int] = field(default_factory=dict)
    stopped: str = ""  # why the judge could not go on, such as missing weights
    seconds: float = 0.0

    def fail(self, record: dict[str, Any], problem: str) -> None:
        """Note a problem of one record."""
        stem = Path(record["file"]).stem
        self.failures.append((stem, f"{stem}, reply {record['key'][:12]}: {problem}"))

    def lines(self) -> list[str]:
        """The table, then one line per failure, then what was not reached."""
        heading = ("notebook", "replies", "judged", "tokens", "worst margin", "failures")
        rows = [heading, *(self._row(stem) for stem in sorted(self.replies))]
        widths = [max(len(row[i]) for row in rows) for i in range(len(heading))]
        text = ["  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
        text += [f"FAILED {sentence}" for _, sentence in self.failures]
        for kind, count in self.missed.items():
            if count:
                text.append(f"Not reached in {self.seconds / 60:.0f} minutes: {count} {kind}.")
        return [*text, self.stopped] if self.stopped else text

    def _row(self, stem: str) -> tuple[str, ...]:
        verdicts = self.verdicts[stem]
        margins = [v.worst for v in verdicts if v.worst is not None]
        return (
            stem,
            str(self.replies[stem]),
            str(len(verdicts)),
            str(sum(len(v.margins) for v in verdicts)),
            f"{min(margins):.3f}" if margins else "-",
            str(sum(notebook == stem for notebook, _ in self.failures)),
        )


def verify(
    paths: list[Path],
    *,
    changed_since: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    minutes: float | None = None,
    rewrite: bool = False,
) -> Report:
    """Check all records of these files; judge all, or the changed ones and a sample.

    With `changed_since` (a git revision) or `sample` (a number) the judge reads the replies that
    changed, then that many others, drawn with `seed`. A reply counts as changed if it has no
    margins for its present content, or if git finds its line changed since the revision.
    `minutes` is the time after which no further reply is begun. Margins already stored for an
    unchanged reply stay as they are, unless `rewrite`. Without the weights the report's `stopped`
    says so.
    """
    report, started = Report(), time.monotonic()
    records = [record for path in paths for record in read_file(path)]
    sound = []
    for record in records:
        report.replies[Path(record["file"]).stem] += 1
        problems = form_problems(record)
        for problem in problems:
            report.fail(record, problem)
        if not problems:
            sound.append(record)
    stored = {path.stem: read_margins(_margins_path(path)) for path in paths}
    plan = _plan(sound, stored, paths, changed_since, sample, seed)
    fresh: dict[str, Verdict] = {}
    deadline = started + minutes * 60 if minutes else None
    try:
        for kind, chosen in plan.items():
            done = _judge_all(chosen, fresh, report, deadline)
            report.missed[kind] = len(chosen) - done
    except CourseError as error:
        report.stopped = str(error)
    finally:
        for path in paths:
            own = [r for r in records if r["file"] == path.name]
            _store(path, own, stored[path.stem], fresh, rewrite, report)
        report.seconds = time.monotonic() - started
    return report


def _plan(
    records: list[dict], stored: dict, paths: list[Path], since: str | None, sample, seed: int
) -> dict[str, list[dict]]:
    if since is None and sample is None:
        return {"replies": records}
    touched = keys_changed_since(since, paths[0].parent) if since and paths else set()

    def is_changed(record: dict) -> bool:
        entry = stored[Path(record["file"]).stem].get(record["key"], {})
        return record["key"] in touched or entry.get("reply") != reply_hash(record)

    changed = [record for record in records if is_changed(record)]
    others = sorted((r for r in records if not is_changed(r)), key=lambda r: (r["key"], r["file"]))
    drawn = random.Random(seed).sample(others, min(sample or 0, len(others)))
    return {"changed replies": changed, "sampled replies": drawn}


def _judge_all(
    records: list[dict], fresh: dict[str, Verdict], report: Report, deadline: float | None
) -> int:
    # Sorted so that prompts which extend each other stand together, one model after the other.
    jobs = [(r["model"], request_of(r, tokenizer_of(r)), r) for r in records]
    jobs.sort(key=lambda job: (job[0], job[1].prompt_ids, job[2]["ids"]))
    judge, busy, done = None, 0.0, 0
    for model, request, record in jobs:
        name = reply_hash(record)
        if name not in fresh:
            if deadline and _would_miss(deadline, judge, request, record, busy):
                continue  # a shorter one may still fit
            if judge is None or judge.spec.name != model:
                judge, busy = None, 0.0  # the old model's memory goes before the new one comes
                judge = Judge(spec(model))
            begun = time.monotonic()
            fresh[name] = judge_reply(judge, record)
            busy += time.monotonic() - begun
        done += 1
        report.verdicts[Path(record["file"]).stem].append(fresh[name])
        for problem in fresh[name].problems:
            report.fail(record, problem)
    return done


def _would_miss(deadline: float, judge: Judge | None, request: Any, record: dict, busy: float):
    left = deadline - time.monotonic()
    if judge is None or not judge.tokens_read or judge.spec.name != record["model"]:
        return left <= 0
    expected = judge.unread(request.prompt_ids, record["ids"]) * busy / judge.tokens_read
    return expected > left


def _store(
    path: Path, records: list[dict], old: dict, fresh: dict, rewrite: bool, report: Report
) -> None:
    entries = {}
    for record in records:
        key, name = record["key"], reply_hash(record)
        known = old.get(key) if old.get(key, {}).get("reply") == name else None
        verdict = fresh.get(name)
        if known and not rewrite:
            entries[key] = known
            if verdict and not verdict.problems and _drifted(known["margins"], verdict.margins):
                report.fail(record, "the stored margins are not those the judge finds")
        elif verdict and not verdict.problems:
            entries[key] = {"key": key, "reply": name, "margins": verdict.margins}
        elif known:
            entries[key] = known
    if entries != old:
        write_margins(_margins_path(path), entries)


def _drifted(stored: list, found: list) -> bool:
    if len(stored) != len(found):
        return True
    pairs = zip(stored, found, strict=True)
    return any(
        (a is None) != (b is None) or (a is not None and abs(a - b) > DRIFT)
        for (a, _), (b, _) in pairs
    )


def _margins_path(recordings: Path) -> Path:
    return recordings.parent / "margins" / recordings.name


def _choose(names: list[str], folder: Path) -> list[Path]:
    paths = sorted(folder.glob("*.jsonl"))
    if not names:
        return paths
    chosen = [p for p in paths if any(p.stem == n or p.name.startswith(f"{n}_") for n in names)]
    for name in names:
        if not any(p.stem == name or p.name.startswith(f"{name}_") for p in chosen):
            raise CourseError(f"No recordings belong to {name!r}: give a notebook number like 01.")
    return chosen


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} should be a whole number, 0 or more")
    return int(text)


def _span(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not minutes > 0:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number above 0")
    return minutes


def verify_main(argv: list[str], folder: Path = RECORDINGS) -> int:
    """The command `python -m course_utils verify`; returns 1 if any reply fails or none can
    be judged, else 0.

    >>> verify_main(["01", "--minutes", "6"])  # doctest: +SKIP
    0
    """
    parser = argparse.ArgumentParser(
        "python -m course_utils verify", description=HELP, epilog=LIMITS
    )
    parser.add_argument("notebooks", nargs="*", metavar="NN", help="notebook numbers, such as 01")
    parser.add_argument("--changed-since", metavar="REV", help="judge only what changed since then")
    parser.add_argument(
        "--sample", type=_count, metavar="N", help="… and N others, drawn at random"
    )
    parser.add_argument("--seed", type=int, default=0, help="which N (default 0)")
    parser.add_argument("--minutes", type=_span, metavar="M", help="begin no reply after M minutes")
    parser.add_argument("--all", action="store_true", help="write all stored margins anew")
    chosen = parser.parse_args(argv)
    report = verify(
        _choose(chosen.notebooks, folder),
        changed_since=chosen.changed_since,
        sample=chosen.sample,
        seed=chosen.seed,
        minutes=chosen.minutes,
        rewrite=chosen.all,
    )
    print("\n".join(report.lines()))
    return 1 if report.failures or report.stopped else 0
