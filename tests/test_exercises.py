"""Checks, hints and predictions: calm when unattempted, exact when attempted, never a traceback."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.exercises import (
    call,
    check,
    exercise,
    hint,
    partly,
    predict,
    reveal,
    right,
    wrong,
)
from course_utils.exercises import registry as registry_module
from course_utils.exercises.testing import assert_classifies


@pytest.fixture(autouse=True)
def exercises(monkeypatch):
    """Two exercises of a notebook 90 that exists only here, and fresh hint counters."""
    monkeypatch.setattr(registry_module, "_exercises", {})
    monkeypatch.setattr("course_utils.exercises._hints_given", {})
    monkeypatch.setattr("course_utils.exercises.predictions._guesses", {})

    @exercise("90.1", title="Double a number", hints=["Multiply.", "return 2 * n"])
    def double(answer):
        if call(answer, 3) == 9:
            return wrong("3 became 9: that is the square.")
        if call(answer, 3) != 6:
            return wrong("3 should become 6.")
        if call(answer, 0) != 0:
            return partly("3 works, 0 does not.")
        return right("Also for 0.")

    @exercise("90.2", title="Name two cities", hints=["Any two."])
    def cities(answer):
        return right("Two.") if len(answer) == 2 else wrong(f"{len(answer)} cities, not 2.")


def boom(n):
    raise ValueError("no idea")


def returns_nothing(n):
    pass


def test_the_helper_accepts_a_good_checker():
    assert_classifies(
        "90.1",
        right=[lambda n: 2 * n, lambda n: n + n, lambda n: n << 1],
        wrong=[
            (lambda n: n * n, "square"),
            (lambda n: n, "6"),
            (lambda n: 6, "0 does not"),
            (boom, "boom(3) raised ValueError: no idea"),
            (6, "should be a function, not the int 6"),
            (returns_nothing, "should become 6"),
            (None, "not None"),
            (lambda: 6, "TypeError"),
        ],
    )


@pytest.mark.parametrize(
    ("right_answers", "wrong_answers"),
    [
        ([lambda n: 2 * n] * 2, [(6, "function")] * 5),
        ([lambda n: 2 * n] * 3, [(6, "function")] * 4),
        ([lambda n: n] * 3, [(6, "function")] * 5),
        ([lambda n: 2 * n] * 3, [(lambda n: 2 * n, "")] * 5),
        ([lambda n: 2 * n] * 3, [(6, "square")] * 5),
    ],
)
def test_the_helper_notices_a_bad_checker(right_answers, wrong_answers):
    with pytest.raises(AssertionError):
        assert_classifies("90.1", right=right_answers, wrong=wrong_answers)


def test_unattempted_is_calm_and_always_the_same():
    first, second = check("90.1", ...), check("90.1", ...)
    assert first.ok is None
    assert repr(first) == repr(second)
    assert "Not attempted" in repr(first) and "Double a number" in repr(first)


def test_a_wrong_answer_offers_a_hint_and_a_right_one_does_not():
    assert 'hint("90.1")' in repr(check("90.1", lambda n: n))
    assert "hint" not in repr(check("90.1", lambda n: 2 * n))


def test_partly_right_is_not_right_but_says_so():
    feedback = check("90.1", lambda n: 6)
    assert feedback.ok is False
    assert "Partly right" in repr(feedback)


def test_a_learner_who_exits_does_not_end_the_kernel():
    def leave(n):
        raise SystemExit(1)

    assert "leave(3) raised SystemExit" in check("90.1", leave).message


def test_the_stop_button_still_works():
    def endless(n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("90.1", endless)


def test_the_input_is_named_as_it_was_before_the_call():
    def spoil(items):
        items.clear()
        raise IndexError("gone")

    @exercise("90.3", title="Keep", hints=["Copy."])
    def keep(answer):
        return right("Yes.") if call(answer, [1, 2], key="k") else wrong("No.")

    message = check("90.3", lambda items, key: spoil(items)).message
    assert "[1, 2], key='k'" in message and "IndexError: gone" in message


def test_an_answer_of_the_wrong_kind_is_feedback_too():
    feedback = check("90.2", 5)
    assert feedback.ok is False
    assert "the int 5" in feedback.message and "TypeError" in feedback.message


class BadRepr:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize("answer", [None, "", [], {}, 1.5, BadRepr(), print, BadRepr])
def test_no_answer_escapes_as_an_exception(answer):
    assert check("90.1", answer).ok is False


def test_hints_come_one_after_the_other_and_the_last_one_stays():
    texts = [hint("90.1").message for _ in range(3)]
    assert texts == ["Multiply. (1 of 2)", "return 2 * n (2 of 2)", "return 2 * n (2 of 2)"]
    assert hint("90.2").message == "Any two. (1 of 1)"


@pytest.mark.parametrize("unknown", ["90.9", "91.1", "", "abc", 90.1, None])
def test_an_unknown_id_is_one_sentence(unknown):
    for ask in (lambda: check(unknown, 1), lambda: hint(unknown)):
        with pytest.raises(CourseError, match="There is no exercise"):
            ask()


def test_an_unknown_id_names_the_ids_near_it():
    with pytest.raises(CourseError, match=re.escape("90.1, 90.2")):
        check("90.7", 1)


def test_checks_of_a_notebook_are_read_when_first_needed(tmp_path, monkeypatch):
    (tmp_path / "checks_91.py").write_text(
        "from course_utils.exercises import exercise, right\n"
        "@exercise('91.1', title='Any', hints=['Any.'])\n"
        "def anything(answer):\n    return right('Yes.')\n"
    )
    import course_utils.exercises as package

    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setattr(registry_module, "_notebooks", lambda: ["91"])
    assert check("91.1", 1).ok is True
    assert package.known("91") == ["91.1"]
    with pytest.raises(CourseError, match="91.1"):
        check("91.2", 1)


def test_an_exercise_needs_a_proper_id_and_hints():
    with pytest.raises(CourseError, match="written like"):
        exercise("1.1", title="T", hints=["H"])
    for hints in ([], "one text"):
        with pytest.raises(CourseError, match="hints"):
            exercise("90.5", title="T", hints=hints)


@given(st.text())
def test_html_shows_markup_and_does_not_obey_it(text):
    html = wrong(text)._repr_html_()
    assert "<" not in html.replace("<div", "").replace("</div", "").replace("<strong", "").replace(
        "</strong", ""
    )


def test_html_says_it_by_icon_and_word_and_follows_the_theme():
    for feedback, icon, word in [
        (right("x"), "✓", "Right"),
        (wrong("x"), "✗", "Not yet"),
        (partly("x"), "◐", "Partly right"),
    ]:
        html = feedback._repr_html_()
        assert icon in html and word in html
        assert re.search(r"var\(--jp-[a-z0-9-]+, #[0-9a-f]{6}\)", html)


@pytest.mark.parametrize(
    ("guess", "actual", "words"),
    [
        (90, 93, "3 too low (3 % off)"),
        (1000, 93, "907 too high (975 % off)"),
        (93, 93, "exactly right"),
        (93.0, 93, "exactly right"),
        (5, 0, "5 too high"),
        (float("inf"), 3, "not the same"),
        (10**400, 3, "not the same"),
        (10**400, 3.5, "not the same"),
        ("wednesday ", "Wednesday.", "the same"),
        ("Monday", "Wednesday", "not the same"),
        (True, True, "the same"),
        (True, 1, "not the same"),
        ("93", 93, "not the same"),
        (["a", "b"], ["a", "b"], "the same"),
    ],
)
def test_a_guess_is_compared(guess, actual, words):
    assert predict("90.4", guess).ok is None
    message = reveal("90.4", actual).message
    assert message.endswith(f": {words}.")


def test_without_a_guess_only_the_truth_is_told():
    assert "No guess yet" in predict("90.4", ...).message
    assert reveal("90.4", 1234).message == "It is 1,234."


def test_a_guess_can_be_taken_back():
    predict("90.4", 1)
    predict("90.4", ...)
    assert "You guessed" not in reveal("90.4", 2).message


def test_a_prediction_needs_an_id():
    for use in (predict, reveal):
        with pytest.raises(CourseError, match="written like"):
            use("four", 1)
