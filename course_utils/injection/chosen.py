"""The part of the matrix that real models answer: chosen, and written down, before they ran.

`data/world/injection_plan.toml` says which models, tasks, attacks and defences, and how many
replies that may take at most; its header, what a pilot changed. No run is left out for its result.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.agent import Limits
from course_utils.errors import CourseError
from course_utils.injection.attacks import UserTask, attacks, questions, tasks
from course_utils.injection.defences import defence
from course_utils.injection.matrix import Cell, trial

FILE = Path(__file__).parents[2] / "data" / "world" / "injection_plan.toml"


@dataclass(frozen=True)
class Chosen:
    """One run that was chosen: names of model, task, attack ("" for none) and defence."""

    model: str
    task: str
    attack: str
    defence: str


@dataclass(frozen=True)
class Plan:
    """The chosen runs, and the limits that bound how many replies they can take."""

    runs: tuple[Chosen, ...]
    max_steps: int
    max_new_tokens: int
    max_replies: int


def read_plan(path: Path = FILE) -> Plan:
    """The plan; CourseError if it names what does not exist, or could take too many replies."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    runs = tuple(run for part in data["part"] for run in _runs(part))
    limits = data["limits"]
    plan = Plan(runs, limits["max_steps"], limits["max_new_tokens"], limits["max_replies"])
    if len(runs) * plan.max_steps > plan.max_replies:
        raise CourseError(
            f"The plan has {len(runs)} runs of up to {plan.max_steps} replies, which is more than "
            f"{plan.max_replies}."
        )
    return plan


def known_tasks() -> dict[str, UserTask]:
    """What a plan may name: the tasks of the matrix, and those that only ask."""
    return {**tasks(), **questions()}


def _runs(part: dict[str, Any]) -> Iterator[Chosen]:
    for kind, known in (("attacks", attacks()), ("tasks", known_tasks())):
        unknown = [name for name in part[kind] if name not in known]
        if unknown:
            raise CourseError(f"The plan names {unknown[0]!r}, which is none of the {kind}.")
    for task in part["tasks"]:
        for name in part["defences"]:
            for attack in [*part["attacks"], ""]:
                yield Chosen(part["model"], task, attack, name)


def run_plan(load: Callable[[str], Any], plan: Plan | None = None) -> list[Cell]:
    """Run what was chosen. `load` gives a model by its name; all its runs share one object.

    The tools offered are those of the task and send_email, with an attack or without one. Each cell
    is a single greedy run. A call that is cut off at `max_new_tokens` does not happen, so it counts
    as no success, of an attack as of a task.
    """
    plan = plan or read_plan()
    models = {name: load(name) for name in dict.fromkeys(run.model for run in plan.runs)}
    cells = []
    for run in plan.runs:
        done = trial(
            lambda task, model=models[run.model]: model,
            known_tasks()[run.task],
            attacks()[run.attack] if run.attack else None,
            defence(run.defence),
            extra=["send_email"],
            limits=Limits(max_steps=plan.max_steps, tool_seconds=None),
            max_new_tokens=plan.max_new_tokens,
        )
        cells.append(done.cell)
    return cells
