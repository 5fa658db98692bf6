"""Trying a learner's agent loop on models that are lists of replies.

A loop here is a function of `chat`, `task`, `functions` and `max_steps`. `chat(messages)` gives
{"text": …, "calls": [{"id", "name", "arguments": JSON text}]}; the loop returns a pair of reason
and text: ("answer", …) or ("max_steps", …).
"""

from __future__ import annotations

import json
from typing import Any

from course_utils.exercises.calls import call, describe
from course_utils.exercises.feedback import Feedback, wrong


class RunsOn(SystemExit):
    """Ends a learner's loop that would never end; no `except Exception` catches it."""


class Chat:
    """A model for trying a loop: gives its replies in turn, the last one for ever."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies = replies
        self.prompts: list[list[dict[str, Any]]] = []

    def __call__(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        if len(self.prompts) > 30:
            raise RunsOn("it asked the model more than 30 times; does it know its limit?")
        self.prompts.append([dict(message) for message in messages])
        reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        return json.loads(json.dumps(reply))

    def results(self) -> list[str]:
        """The contents of the tool messages that the model was sent last."""
        last = self.prompts[-1] if self.prompts else []
        return [str(each.get("content")) for each in last if each.get("role") == "tool"]


def _says(text: str) -> dict[str, Any]:
    return {"text": text, "calls": []}


def _asks(*calls: tuple[str, str]) -> dict[str, Any]:
    made = [
        {"id": f"call_{n}", "name": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(calls, 1)
    ]
    return {"text": "", "calls": made}


def _add(a: int, b: int) -> int:
    return a + b


def _divide(a: int, b: int) -> float:
    return a / b


FUNCTIONS = {"add": _add, "divide": _divide}
ADD = ("add", '{"a": 2, "b": 3}')
# A call that cannot be run, and what a loop does with it that does not mind.
FAULTS = [
    (("subtract", "{}"), "a tool that does not exist"),
    (("add", '{"a": 2, "b": 3'), "arguments that are broken JSON"),
    (("add", '{"a": 2}'), "an argument that is missing"),
    (("add", "[2, 3]"), "arguments that are a list"),
    (("divide", '{"a": 1, "b": 0}'), "a tool that fails"),
]


def first_fault(loop: Any) -> Feedback | None:
    """What is wrong with a loop, or None if it passes every trial."""
    for judge in (_answers, _runs_calls, _survives, _stops):
        feedback = judge(loop)
        if feedback is not None:
            return feedback
    return None


def _answers(loop: Any) -> Feedback | None:
    result = call(loop, Chat(_says("Hello!")), "Hi", dict(FUNCTIONS), 3)
    if result is None:
        return wrong("When the model answers, your loop returns None: return the reason and text.")
    if isinstance(result, str):
        if "hello" in result.casefold():
            return wrong('It returns the answer alone: return a pair, ("answer", text).')
        return wrong(f"The model answered Hello!, and your loop returned {result!r}.")
    if not isinstance(result, tuple | list) or len(result) != 2:
        return wrong(f"Return a pair of reason and text, not {describe(result)}.")
    if tuple(result) != ("answer", "Hello!"):
        return wrong(f'The model answered at once: return ("answer", "Hello!"), not {result!r}.')
    return None


def _runs_calls(loop: Any) -> Feedback | None:
    chat = Chat(_asks(ADD), _says("5"))
    result = call(loop, chat, "2 + 3?", dict(FUNCTIONS), 3)
    if tuple(result or ()) != ("answer", "5") or "5" not in " ".join(chat.results()):
        return wrong("The model called add(2, 3) and was not shown the result 5.")
    both = Chat(_asks(ADD, ("add", '{"a": 20, "b": 30}')), _says("5 and 50"))
    call(loop, both, "2 + 3, and 20 + 30?", dict(FUNCTIONS), 3)
    if len(both.results()) != 2:
        return wrong(f"A reply with two calls gave {len(both.results())} results: each needs one.")
    return None


def _survives(loop: Any) -> Feedback | None:
    for fault, what in FAULTS:
        chat = Chat(_asks(fault), _says("sorry"))
        try:
            result = loop(chat, "Go on.", dict(FUNCTIONS), 3)
        except RunsOn as error:
            return wrong(f"With {what} {error}")
        except Exception as error:
            return wrong(
                f"It does not survive {what}: {type(error).__name__}. Make the error a result."
            )
        if len(chat.prompts) == 1:
            return wrong(f"It gives up at {what}. Tell the model, and let it go on.")
        if not chat.results():
            return wrong(f"After {what} the call has no result: the model never learns why.")
        if tuple(result or ()) != ("answer", "sorry"):
            return wrong(f"After {what} the model answered, and your loop returned {result!r}.")
        if not any(word in chat.results()[0].casefold() for word in ("error", "false", "fail")):
            return wrong(f"After {what} the result does not say that it is an error.")
    return None


def _stops(loop: Any) -> Feedback | None:
    for steps in (1, 4):
        chat = Chat(_asks(ADD))
        result = call(loop, chat, "2 + 3?", dict(FUNCTIONS), steps)
        asked = len(chat.prompts)
        if asked != steps:
            return wrong(f"With max_steps={steps} it asked the model {asked} times.")
        if not isinstance(result, tuple | list) or len(result) != 2 or result[0] != "max_steps":
            return wrong(f'At the limit it should return ("max_steps", text), not {result!r}.')
    return None
