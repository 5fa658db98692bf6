"""The checks of notebook 00 accept every right answer and name each mistake."""

import json

import pytest

from course_utils.exercises import check
from course_utils.exercises.testing import assert_classifies

KEY = {
    "a": 6,
    "b": 6,
    "c": 0,
    "d": [1, 2],
    "e": [1, 9],
    "f": "str",
    "g": "ValueError",
    "h": False,
    "i": 429,
    "j": 0.6,
}


def test_self_test():
    assert_classifies(
        "00.1",
        right=[
            KEY,
            KEY | {"f": str, "g": ValueError, "i": "429", "j": 60},
            KEY | {"f": "string", "g": "valueerror", "j": 0.95**10},
            KEY | {"f": str(type(json.loads('{"id": "7"}')["id"]))},
        ],
        wrong=[
            (KEY | {"a": 3}, "Default Argument Values"),
            (KEY | {"b": TypeError}, "Unpacking Argument Lists"),
            (KEY | {"c": "KeyError"}, "Dictionaries"),
            (KEY | {"d": [1]}, "names of the same list"),
            (KEY | {"e": [0, 1, 4, 9]}, "List Comprehensions"),
            (KEY | {"f": int}, "quotation marks"),
            (KEY | {"g": "TypeError"}, "Errors and Exceptions"),
            (KEY | {"h": True}, "does not check hints"),
            (KEY | {"i": 503}, "Too Many Requests"),
            (KEY | {"j": 0.95}, "multiplied"),
            (KEY | {"k": 1}, "no question k"),
            ([6, 6, 0], "dict"),
        ],
    )


@pytest.mark.parametrize("letter", KEY)
def test_a_gap_in_the_self_test_is_named_and_nothing_else(letter):
    feedback = check("00.1", KEY | {letter: ...})
    assert feedback.ok is False
    assert f"Not answered yet: {letter}." in feedback.message
    assert "Read:" not in feedback.message


@pytest.mark.parametrize("letter", [key for key in KEY if key not in "fgi"])
def test_a_right_value_in_quotes_is_told_to_lose_them_and_not_to_read(letter):
    message = check("00.1", KEY | {letter: str(KEY[letter])}).message
    assert "9 of 10" in message and "without the quotes" in message and "Read:" not in message
    message = check("00.1", KEY | {letter: "no idea"}).message
    assert "Read:" in message and "without the quotes" not in message


def test_zero_is_not_false_and_false_is_not_zero():
    assert "9 of 10" in check("00.1", KEY | {"c": False}).message
    assert "9 of 10" in check("00.1", KEY | {"h": 0}).message


def test_the_untouched_self_test_is_not_attempted():
    assert check("00.1", dict.fromkeys(KEY, ...)).ok is None


def said(role, content):
    return {"role": role, "content": content}


def appends(history, reply, question):
    history.append(said("assistant", reply))
    history.append(said("user", question))
    return history


def spreads(history, reply, question):
    return [*history, said("assistant", reply), said("user", question)]


def copies(history, reply, question):
    messages = list(history)
    messages.append(said("assistant", reply))
    messages.append(said("user", question))
    return messages


def test_next_messages():
    assert_classifies(
        "00.4",
        right=[
            spreads,
            copies,
            lambda h, r, q: h + [said("assistant", r), said("user", q)],
        ],
        wrong=[
            (appends, "has grown too"),
            (lambda h, r, q: [said("user", q)], "only the question"),
            (lambda h, r, q: h + [said("user", q)], "own reply is missing"),
            (lambda h, r, q: h + [said("assistant", r)], "question is missing"),
            (lambda h, r, q: h + [said("user", q), said("assistant", r)], "come last"),
            (lambda h, r, q: h + [said("user", r), said("user", q)], "a role is not"),
            (lambda h, r, q: [said("assistant", r), *h, said("user", q)], "order"),
            (lambda h, r, q: h[-1:] + [said("assistant", r), said("user", q)], "not all of"),
            (lambda h, r, q: spreads(h + h, r, q), "once"),
            (lambda h, r, q: [*h, r, q], "a dict with role"),
            (lambda h, r, q: h + [{"assistant": r}, {"user": q}], "keys role and content"),
            (lambda h, r, q: f"{h}{r}{q}", "list of messages"),
            (lambda h, r, q: None, "list of messages"),
            ([said("user", "What is my dog called?")], "function"),
        ],
    )


def test_the_untouched_function_is_not_attempted():
    assert check("00.4", lambda history, reply, question: ...).ok is None
