"""The exercises that exist, found by their id: notebook, dot, number, such as 01.2."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.exercises.feedback import Feedback

ID = re.compile(r"[0-9]{2}\.[0-9]+")
_exercises: dict[str, Exercise] = {}


@dataclass(frozen=True)
class Exercise:
    """One exercise: its id, title, hints from vague to plain, and the function that judges."""

    id: str
    title: str
    hints: tuple[str, ...]
    judge: Callable[[Any], Feedback]


def exercise(
    exercise_id: str, *, title: str, hints: Sequence[str]
) -> Callable[[Callable[[Any], Feedback]], Callable[[Any], Feedback]]:
    """Register a checker, a function(answer) -> Feedback, under an id.

    >>> @exercise("90.1", title="Two and two", hints=["Use your fingers."])
    ... def _(answer):
    ...     return right("Yes.") if answer == 4 else wrong("Count again.")
    """
    check_id(exercise_id)
    if isinstance(hints, str) or not hints:
        raise CourseError(f"Exercise {exercise_id} needs a list of one or more hints.")

    def register(judge: Callable[[Any], Feedback]) -> Callable[[Any], Feedback]:
        _exercises[exercise_id] = Exercise(exercise_id, title, tuple(hints), judge)
        return judge

    return register


def check_id(exercise_id: str) -> str:
    """Return the id if it is written like 01.2; raise CourseError otherwise."""
    if not isinstance(exercise_id, str) or not ID.fullmatch(exercise_id):
        raise CourseError(f'An exercise id is written like "01.2", not {exercise_id!r}.')
    return exercise_id


def find(exercise_id: str) -> Exercise:
    """Return the exercise; raises CourseError that names the known ids near it."""
    if isinstance(exercise_id, str) and ID.fullmatch(exercise_id):
        _load(exercise_id[:2])
    if exercise_id in _exercises:
        return _exercises[exercise_id]
    raise CourseError(f"There is no exercise {exercise_id!r}. {_near(str(exercise_id))}")


def known(notebook: str) -> list[str]:
    """Return the ids of one notebook's exercises, such as known("01")."""
    _load(notebook)
    return sorted((id for id in _exercises if id.startswith(f"{notebook}.")), key=_number)


def _load(notebook: str) -> None:
    # Each notebook's checks stand in a module of their own, read when first needed.
    if notebook in _notebooks():
        importlib.import_module(f"course_utils.exercises.checks_{notebook}")


def _notebooks() -> list[str]:
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return sorted(name[7:] for name in names if name.startswith("checks_"))


def _near(exercise_id: str) -> str:
    same = sorted((id for id in _exercises if id[:2] == exercise_id[:2]), key=_number)
    near = same or difflib.get_close_matches(exercise_id, _exercises, n=3, cutoff=0.4)
    if near:
        return f"Known near it: {', '.join(near)}."
    notebooks = sorted({*_notebooks(), *(id[:2] for id in _exercises)})
    if notebooks:
        return f"Notebooks with exercises: {', '.join(notebooks)}."
    return 'An id is the notebook, a dot and a number, such as "01.2".'


def _number(exercise_id: str) -> tuple[int, int]:
    notebook, _, number = exercise_id.partition(".")
    return int(notebook), int(number)
