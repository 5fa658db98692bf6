"""Counting: what happened in each trial, and how much a count of trials can show.

A task says what should happen; `judge` compares one reply with it and gives one of the OUTCOMES.
Nothing here reads the words around a call: only what a program would do counts. `interval` says
how far a share may be off, `clustered_interval` does so when several tasks are paraphrases of one
another, and `compare` looks at two conditions on the same tasks. The formulas are those of
statsmodels and scipy, so that nobody has to trust ours.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import ToolCall
from course_utils.parsing import ParseError, parse
from course_utils.tools import Tool, by_name

PROMPTS = Path(__file__).parents[1] / "data" / "prompts"
OUTCOMES = (
    "valid",
    "wrong tool",
    "wrong arguments",
    "invented tool",
    "not JSON",
    "called needlessly",
    "failed to call",
)


@dataclass(frozen=True)
class Task:
    """One prompt and what should follow it.

    `tool` is the name of the tool to call, or None where words are the right answer. `arguments`
    maps each argument to what is accepted: `{"one_of": [...]}` (the whole value; case does not
    count in text) or `{"contains_one_of": [...]}` (a part of a text). Tasks of one `cluster` ask
    for the same thing in other words.

    >>> Task("joke-1", "joke", "en", "Tell me a joke.").tool is None
    True
    """

    id: str
    cluster: str
    language: str
    text: str
    tool: str | None = None
    arguments: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)


def read_tasks(path: Path | str) -> list[Task]:
    """Read tasks from JSON lines; CourseError names a line that is no task."""
    tasks = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            tasks.append(Task(**json.loads(line)))
        except (json.JSONDecodeError, TypeError) as error:
            raise CourseError(f"Line {number} of {Path(path).name} is no task: {error}.") from error
    return tasks


def judge(task: Task, text: str, tools: Iterable[Tool]) -> str:
    """The outcome of one reply: one of OUTCOMES.

    Exactly one call is right where a task names a tool, and none where it names none. A reply
    that makes the right call and then more of them has called needlessly.

    >>> judge(Task("joke-1", "joke", "en", "Tell me a joke."), "A man walks into a bar.", [])
    'valid'
    """
    parsed = parse(text)
    return judge_calls(task, parsed.calls, parsed.errors, tools)


def judge_calls(
    task: Task, calls: Sequence[ToolCall], errors: Sequence[ParseError], tools: Iterable[Tool]
) -> str:
    """The outcome of calls that are parsed already; see `judge`."""
    if task.tool is None:
        return "called needlessly" if calls or errors else "valid"
    if errors:
        return "not JSON"
    if not calls:
        return "failed to call"
    first = calls[0]
    offered = by_name(tools)
    if first.name not in offered:
        return "invented tool"
    if first.name != task.tool:
        return "wrong tool"
    if offered[first.name].validate(first.arguments) or not _as_expected(task, first.arguments):
        return "wrong arguments"
    return "called needlessly" if len(calls) > 1 else "valid"


def _as_expected(task: Task, arguments: Mapping[str, Any]) -> bool:
    return all(
        name in arguments and _accepted(arguments[name], rule)
        for name, rule in task.arguments.items()
    )


def _accepted(value: Any, rule: Mapping[str, Sequence[Any]]) -> bool:
    if "one_of" in rule:
        return any(_plain(value) == _plain(each) for each in rule["one_of"])
    if "contains_one_of" in rule:
        wanted = [each.casefold() for each in rule["contains_one_of"]]
        return isinstance(value, str) and any(each in value.casefold() for each in wanted)
    raise CourseError(
        f"A task's argument needs 'one_of' or 'contains_one_of', not {', '.join(rule)}."
    )


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip().casefold()
    # In Python True equals 1 and 1.0 equals 1; in JSON true is no number.
    return (isinstance(value, bool), value)


def tally(outcomes: Iterable[str]) -> dict[str, int]:
    """How often each outcome occurred, zeros included, in the order of OUTCOMES.

    >>> tally(["valid", "valid", "not JSON"])["valid"]
    2
    """
    counts = Counter(outcomes)
    unknown = [name for name in counts if name not in OUTCOMES]
    if unknown:
        raise CourseError(f"{unknown[0]!r} is no outcome; these are: {', '.join(OUTCOMES)}.")
    return {name: counts[name] for name in OUTCOMES}


def outcome_rows(conditions: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
    """A row for each outcome, a column for each condition, and the sums: for `show.table`.

    >>> outcome_rows({"as is": ["valid", "not JSON"]})[0]
    {'outcome': 'valid', 'as is': 1}
    """
    counts = {name: tally(outcomes) for name, outcomes in conditions.items()}
    rows = [{"outcome": o, **{name: counts[name][o] for name in counts}} for o in OUTCOMES]
    sums = {name: sum(counted.values()) for name, counted in counts.items()}
    return [*rows, {"outcome": "all", **sums}]


def interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a share: which true shares fit `successes` in `trials`.

    It stays between 0 and 1 and does not collapse at 0 or at all. Source: Wilson (1927), computed
    by statsmodels' `proportion_confint`. The trials must be independent of each other.

    >>> [round(limit, 2) for limit in interval(20, 40)]
    [0.35, 0.65]
    """
    from statsmodels.stats.proportion import proportion_confint

    if not 0 <= successes <= trials or trials < 1:
        raise CourseError(f"{successes} successes in {trials} trials are not possible.")
    if not 0 < confidence < 1:
        raise CourseError(f"confidence must lie between 0 and 1, not {confidence}.")
    low, high = proportion_confint(successes, trials, alpha=1 - confidence, method="wilson")
    return float(low), float(high)


def clustered_interval(
    successes: Sequence[bool],
    clusters: Sequence[str],
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = 2000,
) -> tuple[float, float]:
    """An interval for a share when tasks come in clusters of paraphrases.

    Whole clusters are drawn with replacement, again and again (a percentile bootstrap: Efron and
    Tibshirani, 1993, computed by scipy), because paraphrases tend to succeed or fail together and
    are not independent trials. With few clusters it is too narrow, and if all tasks succeed or
    all fail it has no width: use `interval` on the number of clusters then.

    >>> clustered_interval([True, True, False, False], ["a", "a", "b", "b"])
    (0.0, 1.0)
    """
    import numpy as np
    from scipy.stats import bootstrap

    if len(successes) != len(clusters) or len(set(clusters)) < 2:
        raise CourseError("Give one cluster name for each task, and two clusters or more.")
    groups: dict[str, list[bool]] = {}
    for success, cluster in zip(successes, clusters, strict=True):
        groups.setdefault(cluster, []).append(success)
    won = np.array([sum(group) for group in groups.values()])
    size = np.array([len(group) for group in groups.values()])
    if won.sum() in (0, size.sum()):
        return float(won.sum() > 0), float(won.sum() > 0)
    result = bootstrap(
        (won, size),
        lambda won, size, axis=-1: won.sum(axis=axis) / size.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=resamples,
        confidence_level=confidence,
        rng=np.random.default_rng(seed),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


@dataclass(frozen=True)
class Comparison:
    """Two conditions on the same tasks: how many tasks each of the four cells holds.

    `p_value` is that of McNemar's exact test: how often a split of the tasks that differ at least
    this uneven would come from a fair coin.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float

    def __repr__(self) -> str:
        trials = self.both + self.only_first + self.only_second + self.neither
        return (
            f"{trials} pairs: both right {self.both}, only the first {self.only_first}, "
            f"only the second {self.only_second}, neither {self.neither}; "
            f"McNemar's exact p = {self.p_value:.3f}"
        )


def compare(first: Sequence[bool], second: Sequence[bool]) -> Comparison:
    """Compare two conditions task by task; both lists are in the order of the tasks.

    Only tasks on which the two differ tell which is better. Source: McNemar (1947), exact form,
    computed by statsmodels.

    >>> compare([True, False, False], [True, True, True]).only_second
    2
    """
    from statsmodels.stats.contingency_tables import mcnemar

    if len(first) != len(second) or not first:
        raise CourseError(
            f"Pairs need two equally long lists, not {len(first)} and {len(second)} outcomes."
        )
    cells = Counter((bool(a), bool(b)) for a, b in zip(first, second, strict=True))
    table = [
        [cells[True, True], cells[True, False]],
        [cells[False, True], cells[False, False]],
    ]
    p_value = float(mcnemar(table, exact=True).pvalue)
    return Comparison(table[0][0], table[0][1], table[1][0], table[1][1], p_value)
