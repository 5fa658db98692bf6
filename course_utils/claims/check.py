"""The claim check, and how often it is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.claims.evidence import Evidence, Source
from course_utils.claims.facts import QUALIFIERS, UNITS, Fact, facts, subjects
from course_utils.claims.instructions import (
    FENCE,
    FRESH,
    asked,
    claimed_to_run,
    is_program,
    left_undone,
    not_run,
    pictures,
    unused_sources,
)
from course_utils.code_trace import CodeRun, as_run
from course_utils.trace import shorten

KINDS = (
    "no_supporting_observation",
    "contradicting_sources",
    "instruction_ignored",
    "tool_never_used",
    "unread_result",
)
# An answer that says that its sources disagree, or whose word it takes.
SAYS_SO = re.compile(
    r"disagree|differ|conflict|contradict|inconsistent|\bvar(?:y|ies)\b|uncertain|not sure|unclear"
    r"|\banother\b|\bother (?:source|page|site|report)|\bone (?:source|page|site|report)"
    r"|according to|whereas|respectively",
    re.I,
)
INLINE = re.compile(r"`[^`\n]+`|\b\w+\([^()\n]*\)")  # code in a sentence claims nothing
COMPARED = {*UNITS.values(), "sky", "payment", "delivery", "stock"}


@dataclass(frozen=True)
class Finding:
    """What is wrong with an answer: the kind, the words it is about, and what the trace shows."""

    kind: str
    claim: str
    evidence: str

    def __repr__(self) -> str:
        return f"{self.kind}: {shorten(self.claim, 60)!r}: {self.evidence}"


def check_claims(run: Any) -> list[Finding]:
    """Hold the answer of a run, and what it was told to do, against its trace.

    *no_supporting_observation*: a number, name or word of state in the answer that no successful
    call returned, the task did not give and no code computed. *contradicting_sources*: two sources
    give different values for what the answer states, and it does not say so. *instruction_ignored*:
    the task says search, draw, send or run, and nothing did; a picture of something that the task
    only describes was made from the description. *unread_result*: a tool's whole result went into
    a picture's prompt. *tool_never_used*: the answer needed information, and no tool that could
    give it was used.

    Its limits: it reads English; it knows the units and words of state in `facts.py` only, and
    tools by their names; a sum or average that words (not code) worked out looks invented, as does
    a name in other words than the source's; a claim without number, name or word of state passes,
    and so does a false one that some source happens to contain. It finds reasons to look, no proof.
    On 59 runs written by hand, with which the rules were made, it flags 26 of 29 bad ones and 1 of
    30 good ones; on 20 written afterwards 9 of 10 and 3 of 10 (tests/claims_runs*.toml).

    Args:
        run: A CodeRun, a Trace, or what `run_agent` returns.

    >>> from course_utils.code_trace import CodeStep
    >>> check_claims(CodeRun("Weather?", {}, (CodeStep(1, "Sunny.", is_final=True),), "Sunny."))
    [no_supporting_observation: 'Sunny': no successful call returned it]
    """
    run = as_run(run)
    evidence = Evidence(run)
    claims = _claims(run)
    unsupported, drawn = list(_unsupported(claims, evidence)), list(pictures(run))
    found = [*unsupported, *_contradicted(claims, evidence)]
    found += [
        Finding("no_supporting_observation", claim, why) for claim, why in claimed_to_run(run)
    ]
    found += [
        Finding("instruction_ignored", claim, why)
        for claim, why in [*left_undone(run), *not_run(run)]
    ]
    found += [Finding(*picture) for picture in drawn]
    needed = unsupported or drawn or FRESH.search(run.task) or asked(run.task, "search")
    if needed and run.answer is not None:
        found += [
            Finding("tool_never_used", name, "offered, and never used")
            for name in unused_sources(run)
        ]
    return sorted(dict.fromkeys(found), key=lambda finding: KINDS.index(finding.kind))


def _claims(run: CodeRun) -> list[Fact]:
    answer = INLINE.sub(" ", FENCE.sub(" ", run.answer or ""))
    return [] if is_program(answer) else facts(answer, subjects(run.task))


def _unsupported(claims: Sequence[Fact], evidence: Evidence) -> Iterator[Finding]:
    said = set()
    for claim in claims:
        if (claim.kind, claim.value) not in said and not evidence.bears_out(claim):
            said.add((claim.kind, claim.value))
            why = "no successful call returned it"
            yield Finding("no_supporting_observation", claim.text.strip(), why)


def _contradicted(claims: Sequence[Fact], evidence: Evidence) -> Iterator[Finding]:
    run = evidence.run
    if SAYS_SO.search(run.answer or ""):
        return
    done = set()
    for claim in claims:
        if claim.kind not in COMPARED or claim.kind in done:
            continue
        said = [(source, _same_matter(source, claim, run)) for source in evidence.sources]
        said = [(source, values) for source, values in said if values]
        pair = next(
            (
                (one, other)
                for place, one in enumerate(said)
                for other in said[place + 1 :]
                if not _agree(one[1], other[1], claim)
            ),
            None,
        )
        if pair:
            done.add(claim.kind)
            why = " against ".join(_quoted(source, values) for source, values in pair)
            yield Finding("contradicting_sources", claim.text.strip(), why)


def _agree(one: Sequence[Fact], other: Sequence[Fact], claim: Fact) -> bool:
    """Whether two sources share a value, or both round to what the answer says."""
    if any(a.same_value(b) for a in one for b in other):
        return True
    return all(any(fact.same_value(claim) for fact in source) for source in (one, other))


def _same_matter(source: Source, claim: Fact, run: CodeRun) -> list[Fact]:
    """What a source says about the same thing at the same time."""
    when = claim.when | {word.casefold() for word in QUALIFIERS.findall(run.task)}
    return [
        fact
        for fact in source.facts
        if fact.kind == claim.kind
        and fact.when <= when
        and (not fact.about or not claim.about or fact.about & claim.about)
    ]


def _quoted(source: Source, values: Sequence[Fact]) -> str:
    return f"{' and '.join(dict.fromkeys(f.text.strip() for f in values))} (step {source.step})"


# -- how good the check is -----------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """Counts of runs: bad ones that were flagged or missed, good ones that were flagged or passed.

    >>> Score(3, 1, 0, 4)
    3 of 4 bad runs flagged, 0 of 4 good runs flagged (false alarms)
    """

    flagged_bad: int
    missed_bad: int
    flagged_good: int
    passed_good: int

    @property
    def precision(self) -> float | None:
        """Share of the flagged runs that are bad; None if none was flagged."""
        flagged = self.flagged_bad + self.flagged_good
        return self.flagged_bad / flagged if flagged else None

    @property
    def recall(self) -> float | None:
        """Share of the bad runs that were flagged; None if there was none."""
        bad = self.flagged_bad + self.missed_bad
        return self.flagged_bad / bad if bad else None

    def __repr__(self) -> str:
        bad, good = self.flagged_bad + self.missed_bad, self.flagged_good + self.passed_good
        return (
            f"{self.flagged_bad} of {bad} bad runs flagged, "
            f"{self.flagged_good} of {good} good runs flagged (false alarms)"
        )


def score(runs: Iterable[tuple[Any, bool]]) -> Score:
    """Count how the check does on runs of which it is known whether they are good.

    Args:
        runs: (run, whether it is good).

    >>> score([(CodeRun("Hi", {}, (), "Hello."), True)])
    0 of 0 bad runs flagged, 0 of 1 good runs flagged (false alarms)
    """
    counts = {(good, flagged): 0 for good in (True, False) for flagged in (True, False)}
    for run, good in runs:
        counts[good, bool(check_claims(run))] += 1
    return Score(counts[False, True], counts[False, False], counts[True, True], counts[True, False])
