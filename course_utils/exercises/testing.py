"""For tests: does a checker tell right answers from wrong ones, and name each mistake?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_utils.exercises import check, short


def assert_classifies(
    exercise_id: str,
    *,
    right: Sequence[Any],
    wrong: Sequence[tuple[Any, str]],
) -> None:
    """Assert that a checker accepts all right answers and rejects all wrong ones.

    Args:
        exercise_id: Such as "01.1".
        right: At least three different right answers.
        wrong: At least five pairs: a plausible wrong answer, and words that must stand in the
            message about it (capitals do not count).

    Raises:
        AssertionError: An answer is judged wrongly, a message misses its words, or there are too
            few answers for the test to mean much.
    """
    assert len(right) >= 3, f"{exercise_id}: three right answers or more, not {len(right)}"
    assert len(wrong) >= 5, f"{exercise_id}: five wrong answers or more, not {len(wrong)}"
    assert check(exercise_id, ...).ok is None, f"{exercise_id}: ... must count as not attempted"
    for answer in right:
        feedback = check(exercise_id, answer)
        assert feedback.ok is True, f"{short(answer)} is right, but: {feedback!r}"
    for answer, words in wrong:
        feedback = check(exercise_id, answer)
        assert feedback.ok is False, f"{short(answer)} is wrong, but: {feedback!r}"
        missing = f"{short(answer)}: no {words!r} in {feedback.message!r}"
        assert words.casefold() in feedback.message.casefold(), missing
