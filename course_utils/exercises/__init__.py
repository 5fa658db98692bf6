"""Exercises: check an answer, ask for a hint, predict before you look.

In a notebook::

    from course_utils.exercises import check, hint, predict, reveal

    predict("01.2", ...)    # put your guess in place of ...
    curtain()               # first line of the output that is folded
    reveal("01.2", 93)      # after the cell that shows it
    check("01.1", answer)   # ... means not attempted yet
    hint("01.1")            # the next hint, every time it is called

For authors. The checks of notebook NN stand in `course_utils/exercises/checks_NN.py`, which is
imported when an id that begins with NN is first used; nothing else has to be registered::

    from course_utils.exercises import call, exercise, partly, right, wrong

    @exercise("01.1", title="The weekday", hints=["Ask the clock.", "get_weekday takes a text."])
    def weekday(answer):
        if call(answer, "2026-11-18") != "Wednesday":   # answer is the learner's function
            return wrong("2026-11-18 is a Wednesday; your function says something else.")
        return right("It reads the date instead of guessing.")

A checker accepts every correct answer, not one wording, and each message is about the mistake
that was made. `call` runs a learner's function and turns its exceptions into feedback. Tests hold
at least three right and five wrong answers for each exercise:
`course_utils.exercises.testing.assert_classifies`.
"""

from __future__ import annotations

from typing import Any

from course_utils.exercises.calls import AnswerFailed, call, describe, explain, short
from course_utils.exercises.feedback import Feedback, partly, right, wrong
from course_utils.exercises.predictions import curtain, predict, reveal
from course_utils.exercises.registry import Exercise, exercise, find, known

__all__ = [
    "Exercise",
    "Feedback",
    "call",
    "check",
    "curtain",
    "describe",
    "exercise",
    "find",
    "hint",
    "known",
    "partly",
    "predict",
    "reveal",
    "right",
    "short",
    "wrong",
]

_hints_given: dict[str, int] = {}


def check(exercise_id: str, answer: Any) -> Feedback:
    """Judge an answer; `...` in its place means that it was not attempted.

    Raises CourseError for an id that does not exist, and nothing else: whatever a learner's
    function raises becomes feedback.
    """
    task = find(exercise_id)
    if answer is ...:
        text = f"{task.title}. Replace ... by your answer and run the cells again."
        return Feedback("open", text, exercise_id)
    try:
        feedback = task.judge(answer)
    except AnswerFailed as failed:
        feedback = failed.feedback
    except Exception as error:
        # The checker stumbled over the answer itself, such as a number where a list belongs.
        kind = explain(error)
        feedback = wrong(f"The answer, {describe(answer)}, cannot be checked: {kind}.")
    if feedback.state in ("wrong", "partly"):
        more = f'{feedback.message} For a hint run hint("{exercise_id}").'
        feedback = Feedback(feedback.state, more)
    return feedback.about(exercise_id)


def hint(exercise_id: str) -> Feedback:
    """Give the next hint; after the last one, the last one again."""
    task = find(exercise_id)
    given = min(_hints_given.get(exercise_id, 0), len(task.hints) - 1)
    _hints_given[exercise_id] = given + 1
    count = f"{given + 1} of {len(task.hints)}"
    return Feedback("hint", f"{task.hints[given]} ({count})", exercise_id)
