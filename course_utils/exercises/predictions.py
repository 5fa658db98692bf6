"""Guess first, look afterwards: predict() keeps a guess, reveal() compares it."""

from __future__ import annotations

import math
from typing import Any

from course_utils.exercises.calls import short
from course_utils.exercises.feedback import Feedback
from course_utils.exercises.registry import check_id

_guesses: dict[str, Any] = {}


def predict(exercise_id: str, guess: Any) -> Feedback:
    """Keep a guess until reveal() is called; `...` means no guess yet.

    >>> predict("01.2", 90)
    • Prediction (01.2): Your guess is 90. Run on to see.
    """
    check_id(exercise_id)
    if guess is ...:
        _guesses.pop(exercise_id, None)
        message = "No guess yet. Replace ... by yours, or just run on."
    else:
        _guesses[exercise_id] = guess
        message = f"Your guess is {_value(guess)}. Run on to see."
    return Feedback("note", message, exercise_id)


def curtain() -> None:
    """Put a neutral line first in a folded output.

    JupyterLab shows the first line of an output that is folded, which would be the answer.

    >>> curtain()
    Guess first, then open this output.
    """
    print("Guess first, then open this output.")


def reveal(exercise_id: str, actual: Any) -> Feedback:
    """Compare the guess with what really happened: how far off, or same or not.

    >>> reveal("01.2", 93)
    • Prediction (01.2): It is 93. You guessed 90: 3 too low (3 % off).
    """
    guess = _guesses.get(check_id(exercise_id), ...)
    message = f"It is {_value(actual)}."
    if guess is not ...:
        message += f" You guessed {_value(guess)}: {_compare(guess, actual)}."
    return Feedback("note", message, exercise_id)


def _compare(guess: Any, actual: Any) -> str:
    if _is_number(guess) and _is_number(actual):
        try:
            return _distance(guess, actual)
        except OverflowError:  # a whole number that no float can hold
            return "not the same"
    if isinstance(guess, str) and isinstance(actual, str):
        # Capitals, spacing and a final full stop are not what a prediction is about.
        same = _plain(guess) == _plain(actual)
    else:
        same = type(guess) is type(actual) and guess == actual
    return "the same" if same else "not the same"


def _distance(guess: float, actual: float) -> str:
    if guess == actual:
        return "exactly right"
    off = abs(guess - actual)
    if not math.isfinite(off):
        return "not the same"
    share = f" ({off / abs(actual):.0%} off)".replace("%", " %") if actual else ""
    return f"{_value(off)} too {'low' if guess < actual else 'high'}{share}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _value(value: Any) -> str:
    if _is_number(value):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return value if isinstance(value, str) and len(value) <= 80 else short(value)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")
