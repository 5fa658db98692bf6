"""Checks of notebook 01, raw JSON tool calls."""

from __future__ import annotations

import json
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.calls import AnswerFailed
from course_utils.exercises.feedback import Feedback
from course_utils.world.documents import Documents


def attempt(function: Any, *args: Any) -> Any:
    """Call a learner's function; a stub that still returns ... counts as not attempted."""
    result = call(function, *args)
    if result is ...:
        raise AnswerFailed(Feedback("open", "Replace ... by your code and run the cells again."))
    return result


# (what the model wrote, what is right, what the stored sentence of the same search would be)
MISQUOTED = "It was a truth universally acknowledged, that a single man must want a wife."
PART_OF_A_SENTENCE = "never mind how long precisely"
NOT_THE_OPENING = "This is my substitute for pistol and ball."


@exercise(
    "01.1",
    title="Quote or copy",
    hints=[
        "Which method of documents finds the sentence that fits some words?",
        "The reply itself has most of the words that you search for.",
        'documents.find_quote(...) returns a dict; the sentence is under "quote".',
    ],
)
def quote_or_copy(quoted: Any) -> Feedback:
    documents = Documents("classics")
    kept = [attempt(quoted, text, documents) for text in (PART_OF_A_SENTENCE, NOT_THE_OPENING)]
    replaced = {
        text: attempt(quoted, text, documents)
        for text in (MISQUOTED, "Call me Ismael, please.", "Dorothy lived on a prairie in Kansas.")
    }
    for given in (*kept, *replaced.values()):
        if isinstance(given, dict):
            return partly('That is the whole entry. The sentence is in it, under "quote".')
        if isinstance(given, list | tuple):
            return wrong("That is a list of pages or words. Return one sentence, as text.")
        if not isinstance(given, str):
            return wrong(f"Return a sentence as text, not {describe(given)}.")
    if replaced[MISQUOTED] == MISQUOTED:
        if kept == [PART_OF_A_SENTENCE, NOT_THE_OPENING]:
            return wrong("A misquotation comes back unchanged: replace it by the stored sentence.")
        return wrong("The wrong way round: exact quotations are replaced, misquotations are kept.")
    if len(set(replaced.values())) == 1:
        return wrong("Three different misquotations give the same sentence: search for the reply.")
    for text, given in replaced.items():
        if not documents.is_exact(given):
            return wrong(f"For {short(text)} you return {short(given)}, which stands in no page.")
        if given != documents.find_quote(text)["quote"]:
            return wrong(f"For {short(text)} another sentence fits better: search for the reply.")
    if kept[0] != PART_OF_A_SENTENCE:
        return partly(
            f"{PART_OF_A_SENTENCE!r} is exact, though only part of a sentence: keep it as it is."
        )
    if kept[1] != NOT_THE_OPENING:
        return partly(f"{NOT_THE_OPENING!r} is exact: keep it as it is.")
    return right("What is exact stays, and everything else is copied, not remembered.")


@exercise(
    "01.2",
    title="Act on a reply",
    hints=[
        "json.loads raises json.JSONDecodeError for a sentence: what should happen then?",
        "5 and [1] are JSON too. Check that you have a dict with the keys name and arguments.",
        "Look for the name in the dict before you use it; ** passes a dict as named arguments.",
    ],
)
def act_on_a_reply(act: Any) -> Feedback:
    ran: list[dict[str, Any]] = []

    def area(width: int, height: int) -> int:
        ran.append({"width": width, "height": height})
        return width * height

    functions = {"area": area, "greet": lambda: "Hello!"}
    size = {"width": 6, "height": 7}
    first = attempt(act, json.dumps({"name": "area", "arguments": size}), functions)
    problem = _first_call(first, ran, size) or _no_arguments(act, functions)
    return (
        problem
        or _unknown(act, functions)
        or _no_call(act, functions, ran)
        or right("Known calls run once, unknown ones run nothing, and words stay words.")
    )


def _first_call(result: Any, ran: list[dict[str, Any]], size: dict[str, Any]) -> Feedback | None:
    if not ran:
        return wrong(f"The call of area was not run; you returned {describe(result)}.")
    if len(ran) > 1:
        return wrong(f"The call of area was run {len(ran)} times. A call must be run once only.")
    if result == 42 and not isinstance(result, str):
        return partly("The call runs. Return its result as text: a message holds only text.")
    if result is None:
        return partly("The call runs, but its result is lost: return it.")
    if result != "42":
        return wrong(f"area(6, 7) is 42, so '42' is expected, not {describe(result)}.")
    return None


def _no_arguments(act: Any, functions: dict[str, Any]) -> Feedback | None:
    result = attempt(act, '{"name": "greet", "arguments": {}}', functions)
    if result == '"Hello!"':
        return partly("A result that is text already stays as it is: str, not json.dumps.")
    if result != "Hello!":
        return wrong(f"greet takes no arguments and returns 'Hello!', not {describe(result)}.")
    return None


def _unknown(act: Any, functions: dict[str, Any]) -> Feedback | None:
    for name, arguments in (("erase_disk", {}), ("pow", {"base": 2, "exp": 5})):
        text = json.dumps({"name": name, "arguments": arguments})
        try:
            result = attempt(act, text, functions)
        except AnswerFailed as failed:
            if isinstance(failed.__cause__, KeyError):
                return partly(f"A call of {name} ends in a KeyError: look before you use the name.")
            raise
        if result == "32":
            return wrong("You ran pow, which is not in the dict: use no other list of names.")
        if not isinstance(result, str) or name not in result:
            return partly(
                f"For an unknown function return a text that names it ({name}), "
                f"not {describe(result)}."
            )
    return None


def _no_call(act: Any, functions: dict[str, Any], ran: list[dict[str, Any]]) -> Feedback | None:
    for text in ("The area is 42.", "", "42", "[1]", '"area"', "null", '{"temp": 2}'):
        try:
            result = attempt(act, text, functions)
        except AnswerFailed as failed:
            if isinstance(failed.__cause__, json.JSONDecodeError):
                return partly(f"{text!r} is no JSON, and json.loads raises: return None then.")
            kind = type(failed.__cause__).__name__
            return partly(f"{text!r} is no call, and ends in a {kind}: return None.")
        if result is not None:
            return partly(f"{text!r} is no call: return None, not {describe(result)}.")
    return None
