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


def _called(*ids: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(call_id: str, content: str = "") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content or f"result of {call_id}"}


@exercise(
    "01.3",
    title="Pair results with calls",
    hints=[
        "Go through the calls, not through the results: the calls have the order you want.",
        'Make a dict from "tool_call_id" to result first.',
        "dict.get(id, other) gives `other` where there is no result: make it a tool message.",
    ],
)
def pair_results(in_call_order: Any) -> Feedback:
    message = _called("x7", "b2", "m5")
    swapped = [_result("b2"), _result("m5"), _result("x7")]
    answer = attempt(in_call_order, message, list(swapped))
    if not isinstance(answer, list | tuple):
        return wrong(f"Return a list of tool messages, not {describe(answer)}.")
    if any(not isinstance(each, dict) for each in answer):
        return wrong("Return the whole tool messages (dicts with role and id), nothing less.")
    ids = [each.get("tool_call_id") for each in answer]
    if ids == ["b2", "m5", "x7"]:
        return wrong("The results still come in the order in which they arrived, or by their ids.")
    if ids != ["x7", "b2", "m5"]:
        return wrong(f"The calls are x7, b2, m5; your results answer {', '.join(map(str, ids))}.")
    if list(answer) != [_result("x7"), _result("b2"), _result("m5")]:
        return wrong("The ids are in order, but the contents are not those of the results.")
    return _uneven(in_call_order) or right(
        "Each result follows its call, a missing one says so, and a stray one is left out."
    )


def _uneven(in_call_order: Any) -> Feedback | None:
    """Feedback about results that are missing or stray, if they are handled wrongly."""
    answer = list(attempt(in_call_order, _called("k1", "a1"), [_result("a1"), _result("zz")]))
    ids = [each.get("tool_call_id") if isinstance(each, dict) else each for each in answer]
    if "zz" in ids:
        return partly(
            "The order is right. The result of zz answers none of the calls: leave it out."
        )
    if len(answer) < 2:
        return partly("The order is right. A call without a result needs a message as well.")
    first = answer[0]
    if not isinstance(first, dict):
        return partly(f"For a missing result put a tool message, not {describe(first)}.")
    if first.get("tool_call_id") != "k1":
        return partly("The message for a missing result must carry the id of its call.")
    if first.get("role") != "tool":
        return partly('The message for a missing result must have the role "tool".')
    if first.get("content") != "no result":
        return partly('A missing result should say "no result" as its content.')
    return (
        None if answer[1] == _result("a1") else wrong("With one result missing, the other is lost.")
    )


FAULTS = {
    "arguments_not_text": 2,
    "arguments_cut_off": 6,
    "orphan_result": 4,
    "unsupported_answer": 5,
}
# What to say about a tempting number; others get a general sentence.
TEMPTING = {
    ("arguments_not_text", 6): "in message 6 the arguments are text, though half of it",
    ("arguments_cut_off", 2): "in message 2 nothing is cut off: one call just holds an object",
    ("orphan_result", 3): "message 3 answers call b, which is in message 2: order does not matter",
    ("orphan_result", 6): "message 6 is a call without a result, not a result without a call",
    ("unsupported_answer", 4): "message 4 is a result; look for the sentence that believes it",
    ("unsupported_answer", 6): "message 6 says nothing, it asks",
}


@exercise(
    "01.4",
    title="Read a message list",
    hints=[
        "Write down the ids of the calls in message 2, then the ids that messages 3 and 4 answer.",
        "In the wire format the value of arguments begins with a quotation mark.",
        "Which of the two numbers in message 5 comes from a result that belongs to no call?",
    ],
)
def read_a_message_list(faults: Any) -> Feedback:
    if not isinstance(faults, dict):
        return wrong(f"The answer should be a dict of four faults, not {describe(faults)}.")
    if ... in faults.values():
        return Feedback("open", "Put a number in place of each ... and run the cells again.")
    unknown = [name for name in faults if name not in FAULTS]
    if unknown:
        return wrong(f"{short(unknown[0])} is none of the faults: {', '.join(FAULTS)}.")
    missing = [name for name in FAULTS if name not in faults]
    if missing:
        return partly(f"There is no answer for {missing[0]}.")
    given = {name: _number(value) for name, value in faults.items()}
    if given == {name: number - 1 for name, number in FAULTS.items()}:
        return partly("Each number is one too low: the first message is number 1.")
    for name, number in given.items():
        if number is None or not 1 <= number <= 6:
            return wrong(f"{name} should be a message number from 1 to 6, not {faults[name]!r}.")
    off = [name for name in FAULTS if given[name] != FAULTS[name]]
    if not off:
        return right("A result without a call became an answer: only the list shows it.")
    reason = TEMPTING.get((off[0], given[off[0]]), "that message does not have this fault")
    return partly(f"{4 - len(off)} of 4 are right. {off[0]}: {reason}.")


def _number(value: Any) -> int | None:
    if isinstance(value, list | tuple | set) and len(value) == 1:
        (value,) = value
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return int(value) if whole else None
