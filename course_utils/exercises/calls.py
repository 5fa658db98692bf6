"""Running a learner's function, so that its failure becomes feedback and not a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from course_utils.exercises.feedback import Feedback, wrong


class AnswerFailed(Exception):
    """Carries the feedback about a learner's function that failed."""

    def __init__(self, feedback: Feedback) -> None:
        super().__init__(feedback.message)
        self.feedback = feedback


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a learner's function inside a checker and return its result.

    Anything that is not a function, and any exception that it raises, ends the check with
    feedback that names the exception and the input. An endless loop is left to the stop button.

    >>> call(len, "abc")
    3
    """
    if not callable(function):
        raise AnswerFailed(wrong(f"The answer should be a function, not {describe(function)}."))
    # Written down first: the function may change what it was given.
    inputs = ", ".join(
        [short(value) for value in args] + [f"{name}={short(v)}" for name, v in kwargs.items()]
    )
    name = getattr(function, "__name__", type(function).__name__)
    try:
        return function(*args, **kwargs)
    except (Exception, SystemExit) as error:
        raise AnswerFailed(wrong(f"{name}({inputs}) raised {explain(error)}.")) from error


def filled(answer: Any, keys: Iterable[str]) -> Mapping[str, Any]:
    """An answer that is a dict with a value for each key; otherwise the check ends and says so.

    >>> filled({"sent": 1}, ["sent"])
    {'sent': 1}
    """
    keys = list(keys)
    if not isinstance(answer, Mapping):
        raise AnswerFailed(
            wrong(f"Give a dict with the keys {', '.join(keys)}, not {describe(answer)}.")
        )
    missing = [key for key in keys if answer.get(key, ...) is ...]
    if missing:
        raise AnswerFailed(wrong(f"The value of {missing[0]!r} is missing."))
    return answer


def short(value: Any, limit: int = 80) -> str:
    """The repr of a value in one line, cut after `limit` characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # a learner's class may have a broken __repr__
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}…"


def describe(value: Any) -> str:
    """A value with its type, for sentences such as "should be a list, not …"."""
    return "None" if value is None else f"the {type(value).__name__} {short(value)}"


def explain(error: BaseException) -> str:
    """Name of an exception and its message."""
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
