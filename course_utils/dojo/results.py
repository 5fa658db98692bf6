"""The committed outcome of `python -m course_utils agentdojo`; reading it needs no AgentDojo."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError

FILE = Path(__file__).parents[2] / "data" / "agentdojo" / "results.json"
PARTS = ("rows", "planted", "transfer")


def load(file: Path = FILE) -> dict[str, Any]:
    """The whole file: the command that made it, the versions, and the rows of each of PARTS.

    `done_anyway` names the user tasks whose judge says *done* even if nothing ran. They are counted
    as done in every row, as the benchmark counts them; take them off where nobody is there.

    >>> load()["command"]
    'python -m course_utils agentdojo'
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise CourseError(
            f"{file.name} of data/agentdojo cannot be read ({error}): restore it from the "
            "repository, or make it again with python -m course_utils agentdojo."
        ) from error


def save(content: dict[str, Any], file: Path = FILE) -> None:
    """Write the file, one row a line, so that a diff shows which rows changed."""
    parts = []
    for key, value in content.items():
        text = json.dumps(value, ensure_ascii=False)
        if key in PARTS:
            lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in value)
            text = f"[\n{lines}\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def table_rows(
    rows: Sequence[dict[str, Any]], suite: str = "all", people: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Rows for `course_utils.show.table`: one for each policy and person, for one suite.

    >>> table_rows(load()["rows"])[0]["attacks that succeed"]
    '592 of 609 = 97.2 % (95.6-98.2)'
    """
    chosen = [row for row in rows if row["suite"] == suite]
    if not chosen:
        known = ", ".join(dict.fromkeys(row["suite"] for row in rows))
        raise CourseError(f"There are no rows for the suite {suite!r}; there are: {known}.")
    return [
        {
            "policy": row["policy"],
            "person": row["person"],
            "attacks that succeed": share(row["attacked"], row["pairs"], row["attacked_interval"]),
            "tasks done": f"{row['done']} of {row['tasks']}",
            "done under attack": f"{row['done_under_attack']} of {row['pairs']}",
            "questions a task": f"{row['questions'] / row['tasks']:.2f}",
            "under attack": f"{row['questions_under_attack'] / row['pairs']:.2f}",
        }
        for row in chosen
        if not people or row["person"] in people
    ]


def transfer_table(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The provenance policy, told about two suites' tools and tried on the other suites.

    "told of them too" is what it does there when those tools were described to it as well. The
    last row is a policy to which no tool was described: it knows the side effects only.

    >>> transfer_table(load()["transfer"])[0]["tried on"]
    'banking + slack'
    """
    every = list(dict.fromkeys(row["suite"] for row in rows))
    lines = []
    for known in [*combinations(every, 2), ()]:
        suites = [name for name in every if name not in known]
        absent = _sums(rows, suites, known, "absent")
        attentive = _sums(rows, suites, known, "attentive")
        told = _sums(rows, suites, None, "absent")
        lines.append(
            {
                "told about": " + ".join(known) or "no tools",
                "tried on": " + ".join(suites) if known else "all",
                "attacks, absent": f"{absent['attacked']} of {absent['pairs']}",
                "done, absent": f"{absent['done']} of {absent['tasks']}",
                "attacks, attentive": f"{attentive['attacked']} of {attentive['pairs']}",
                "questions a task": f"{absent['questions'] / absent['tasks']:.2f}",
                "told of them too": f"{told['questions'] / told['tasks']:.2f}",
            }
        )
    return lines


def _sums(
    rows: Sequence[dict[str, Any]],
    suites: Sequence[str],
    known: Sequence[str] | None,
    person: str,
) -> Counter[str]:
    """The counts over some suites; `known` None: each with knowledge of its own tools."""
    sums: Counter[str] = Counter()
    for row in rows:
        wanted = [row["suite"]] if known is None else list(known)
        if row["suite"] in suites and row["known"] == wanted and row["person"] == person:
            sums.update({key: n for key, n in row.items() if isinstance(n, int)})
    return sums


def share(successes: int, trials: int, limits: Sequence[float]) -> str:
    """A count, the share in per cent, and its interval.

    >>> share(1, 4, [0.05, 0.7])
    '1 of 4 = 25.0 % (5.0-70.0)'
    """
    low, high = (f"{100 * limit:.1f}" for limit in limits)
    return f"{successes} of {trials} = {100 * successes / trials:.1f} % ({low}-{high})"
