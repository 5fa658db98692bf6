"""Checks of notebook 07, trimming."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.calls import filled
from course_utils.exercises.feedback import Feedback


def _get(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _whole(default: int, frame: int, marker: int) -> Callable[[list[Any]], int]:
    """A template that adds a default system message, a frame to each message, and a marker."""

    def whole(messages: list[Any]) -> int:
        texts = [str(_get(message, "content") or "") for message in messages]
        own = sum(frame + len(text.split()) for text in texts)
        given = bool(messages) and _get(messages[0], "role") == "system"
        return marker + own + (0 if given else default)

    return whole


TEMPLATES = [(20, 5, 3), (0, 4, 2), (11, 7, 3)]
MESSAGES = [
    {"role": "user", "content": "I like vanilla ice cream"},
    {"role": "assistant", "content": "nice"},
    {"role": "user", "content": ""},
    {"role": "system", "content": "you're a good assistant"},
]


@exercise(
    "07.1",
    title="A counter that adds up",
    hints=[
        "What a message adds is a difference: a conversation with it, less the one without it.",
        "Put a system message first in both, so that the template adds none of its own.",
        'first = {"role": "system", "content": "x"}; '
        "return whole([first, message]) - whole([first])",
    ],
)
def own_tokens(answer: Any) -> Feedback:
    if isinstance(answer, int | float):
        return wrong("Give the function itself: it is tried with other messages and templates.")
    for numbers in TEMPLATES:
        default, frame, marker = numbers
        for message in MESSAGES:
            found = call(answer, dict(message), _whole(*numbers))
            if isinstance(found, bool) or not isinstance(found, int | float):
                return wrong(f"Your function should return a number, not {describe(found)}.")
            words = len(message["content"].split())
            if abs(found - frame - words) > 0.5:
                return wrong(_miscounted(found - frame - words, message, numbers))
    return right("A difference of two whole prompts: whatever the template adds once, cancels.")


def _miscounted(extra: float, message: dict[str, str], numbers: tuple[int, int, int]) -> str:
    default, frame, marker = numbers
    words = len(message["content"].split())
    if message["role"] == "system" and extra < 0:
        return (
            "Right for a user's message; but a system message comes out too small, because in the "
            "prompt without it the template adds its own. Let both begin with a system message."
        )
    if extra == default + marker:
        return (
            "That counts the message as a prompt of its own, with the default system message and "
            "the reply marker in it: the pitfall itself. Subtract a prompt without the message."
        )
    if extra == default:
        return "The default system message is still in it. It is not the message's own."
    if extra == marker:
        return "The reply marker is still in it: it stands once in a prompt, not in each message."
    if extra == -frame:
        return "That counts the text alone. The template's frame around it is sent as well."
    if extra + frame + words < 0:
        return "Less than nothing: take the longer prompt less the shorter one."
    return (
        f"A message of {words} words, in a template that adds {frame} to each, has "
        f"{frame + words} tokens of its own; your function says {frame + words + extra:g}. "
        "Subtract all that is not the message."
    )


COSTS = [10, 6, 5, 12, 20, 7, 9, 6]
SENT = {31: 16, 63: 32, 64: 64}
# What comes out if one rule is forgotten: (tokens by budget, the sentence about it).
FORGOTTEN = [
    (
        {31: 25, 63: 52, 64: 64},
        "That is all that fits, but it begins with an answer whose question was cut off. What is "
        "kept begins with a user's message.",
    ),
    (
        {31: 6, 63: 22, 64: 54},
        "The messages are the right ones; the system message is sent with them, so its 10 tokens "
        "count as well.",
    ),
    (
        {31: 22, 63: 54, 64: 54},
        "That spends the whole budget on the seven messages. The system message is sent too: take "
        "its 10 tokens off first.",
    ),
    (
        {31: 32, 63: 64, 64: 64},
        "That is more than the budget: the system message's 10 tokens are part of what is sent.",
    ),
    (
        {31: 31, 63: 63, 64: 64},
        "That is the budget. No message is cut, so what is sent is a sum of whole messages.",
    ),
    (
        {31: 21, 63: 60, 64: 60},
        "That keeps the oldest messages. The newest stay: walk backwards from the last one.",
    ),
]


@exercise(
    "07.2",
    title="What a budget buys",
    hints=[
        "First take the system message's 10 off the budget. Then walk backwards: 6, 9, 7, 20, …",
        "Stop before the one that does not fit. Then drop from the front until a user's message "
        "comes first.",
        "Budget 31: 21 are left; 6 + 9 fit, 7 more would be 22. What is kept begins with an "
        "assistant's message, so it goes: 10 + 6 are sent.",
    ],
)
def budgets(answer: Any) -> Feedback:
    if isinstance(answer, list | tuple) and len(answer) == len(SENT):
        answer = dict(zip(SENT, answer, strict=True))
    if not isinstance(answer, Mapping):
        return wrong(f"Give a dict with the keys 31, 63 and 64, not {describe(answer)}.")
    given = {int(key): value for key, value in answer.items() if str(key).strip().isdigit()}
    missing = [budget for budget in SENT if given.get(budget, ...) is ...]
    if missing:
        return wrong(f"The value for budget {missing[0]} is missing.")
    bad = next((b for b in SENT if not isinstance(given[b], int | float)), None)
    if bad is not None:
        return wrong(f"For budget {bad} give a number of tokens, not {describe(given[bad])}.")
    mistakes = [budget for budget in SENT if given[budget] != SENT[budget]]
    if not mistakes:
        return right("One token more, 64 instead of 63, doubles what is sent.")
    for tokens, sentence in FORGOTTEN:
        if all(given[budget] == tokens[budget] for budget in mistakes):
            return (wrong if len(mistakes) > 1 else partly)(sentence)
    first = mistakes[0]
    verdict = partly if len(mistakes) < len(SENT) else wrong
    return verdict(
        f"With budget {first} it is not {short(given[first])} tokens. Take 10 off for the system "
        "message, walk backwards, then drop what has lost its question."
    )


# What the broken graph of section 5 stores; a test compares it with the notebook.
CAUSE = {"stored": 77, "room": 31, "fix": "return_full_text"}
MISREAD = {
    ("stored", 214): "those are characters; the budget is in tokens",
    ("stored", 50): "that is what our model reads; this graph counts with GPT-2",
    ("stored", 11): "that is the answer alone; look at what was stored",
    ("room", 45): "that is the whole budget; the greeting and the question are in it too",
    ("room", 38): "take off the greeting and the question, not one of them only",
    ("room", 25): "that is in our model's tokens; this graph counts with GPT-2",
    ("fix", "both"): "both are worth having, but one is enough here, and the other is not",
    ("fix", "counter"): (
        "with the right counter the stored reply has 50 tokens, which is still over the budget"
    ),
    ("fix", "budget"): "a bigger budget puts it off by a turn: each stored prompt holds the last",
}
WHERE = {
    "stored": "read it in the assistant's row, in the column of the counter that the graph uses",
    "room": "take what the greeting and the question cost, by the same counter, off the budget",
    "fix": "it is 'return_full_text' or 'counter'",
}


@exercise(
    "07.3",
    title="Why turn two forgets",
    hints=[
        "The graph counts with GPT-2, so that column decides what is sent.",
        "The budget is 45. The greeting and the question have 7 tokens each.",
        "The stored reply begins with its whole prompt. By the right count, too, it is too long.",
    ],
)
def cause(answer: Any) -> Feedback:
    answer = filled(answer, CAUSE)
    given = {key: _plain(answer[key]) for key in CAUSE}
    mistakes = [key for key in CAUSE if given[key] != CAUSE[key]]
    if not mistakes:
        return right("77 tokens where 31 fit: the reply is dropped, and with it all before it.")
    first = mistakes[0]
    known = isinstance(given[first], int | float | str)
    why = MISREAD.get((first, given[first]) if known else None, WHERE[first])
    verdict = partly if len(mistakes) < len(CAUSE) else wrong
    return verdict(f"{first} is not {short(answer[first])}: {why}.")


def _plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip().casefold()
    return "return_full_text" if text.startswith("return_full_text") else text


def _call(*ids: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(of: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": of, "name": "look", "content": "2 degrees"}


USER = {"role": "user", "content": "Look."}
DONE = {"role": "assistant", "content": "2 degrees."}

# A history, the places that are torn, and the sentence for a wrong verdict.
HISTORIES: list[tuple[list[dict[str, Any]], list[int], str]] = [
    ([USER, _call("a"), _result("a"), DONE], [], "In a history with every pair whole, none is."),
    ([USER, DONE, USER], [], "A history without tools has nothing to tear."),
    ([], [], "An empty history has nothing to tear."),
    (
        [_result("a"), DONE, USER],
        [0],
        "A result whose call was trimmed away is torn: the list should hold its place.",
    ),
    (
        [USER, _call("a"), USER],
        [1],
        "A call that no result answers is torn: the list should hold its place.",
    ),
    (
        [USER, _call("a", "b"), _result("a"), _result("b"), DONE],
        [],
        "Two calls in one message, two results after it: all whole. Look at ids, not at neighbours "
        "only.",
    ),
    (
        [USER, _call("a", "b"), _result("a"), DONE],
        [1],
        "Of two calls in a message one has no result: that message is torn.",
    ),
    (
        [USER, _call("a"), _result("b"), DONE],
        [1, 2],
        "The ids differ, so the result answers another call: both are torn.",
    ),
    (
        [_result("a"), USER, _call("a"), USER],
        [0, 2],
        "A result *before* its call is no answer to it: order counts.",
    ),
    (
        [USER, _call("a"), USER, _result("a"), DONE],
        [],
        "With a message in between, call and result are still both there.",
    ),
]


@exercise(
    "07.4",
    title="Find the torn pairs",
    hints=[
        "Walk through the messages and remember the ids of calls, with the place of their message.",
        "A result whose id was not called before it is torn. When you meet its call's result, take "
        "the id off the open ones; what is open at the end is torn as well.",
        "opened = {}; for a call: opened[id] = place; for a result: if its id is in opened, "
        "opened.pop(id), else torn.append(place); at the end add opened.values(), without repeats.",
    ],
)
def torn_pairs(answer: Any) -> Feedback:
    for history, expected, sentence in HISTORIES:
        found = call(answer, json.loads(json.dumps(history)))
        if isinstance(found, bool) or not isinstance(found, list | tuple | set | frozenset):
            return wrong(f"Return a list of places (0 is the first), not {describe(found)}.")
        strange = next((x for x in found if isinstance(x, bool) or not isinstance(x, int)), None)
        if strange is not None:
            return wrong(f"The list should hold places, such as 0 or 2, not {describe(strange)}.")
        if sorted(set(found)) != expected:
            roles = ", ".join(message["role"] for message in history) or "nothing"
            return wrong(
                f"{sentence} (Roles: {roles}; torn: {expected}; your function says "
                f"{sorted(set(found))}.)"
            )
    return right("Whatever trimmed the history, your function sees what it broke.")
