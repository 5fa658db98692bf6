"""Limits inside a tool, which no prompt can talk away, and the undoing of what can be undone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import ToolCall
from course_utils.tools import Tool, run_call
from course_utils.trace import Observed, Trace, call_text

Check = Callable[[dict[str, Any]], str | None]
Inverse = Callable[[dict[str, Any], str], tuple[str, dict[str, Any]]]


class Forbidden(CourseError):
    """A tool refused its arguments: they are beyond what it may ever do."""

    code = "forbidden"


def guarded(tool: Tool, *checks: Check) -> Tool:
    """The same tool with checks inside: a check gets the arguments and returns a complaint or None.

    The model is shown no difference, and no approval gets around it.

    >>> pay = Tool("pay", "Pay.", None, lambda amount: "paid")
    >>> guarded(pay, at_most("amount", 100)).function(amount=500)
    Traceback (most recent call last):
    course_utils.guards.Forbidden: pay: amount may be at most 100, not 500.
    """

    @functools.wraps(tool.function)  # keeps the signature
    def function(**arguments: Any) -> Any:
        for check in checks:
            complaint = check(arguments)
            if complaint:
                raise Forbidden(f"{tool.name}: {complaint}")
        return tool.function(**arguments)

    return replace(tool, function=function)


def only(argument: str, allowed: Collection[Any]) -> Check:
    """A check that an argument is one of the allowed values, such as the known recipients.

    Raises CourseError for a single text in place of several: its parts would all be allowed.
    """
    if isinstance(allowed, str):
        raise CourseError(f"only() needs several allowed values, such as {{{allowed!r}}}.")

    def check(arguments: dict[str, Any]) -> str | None:
        value = arguments.get(argument)
        return None if value in allowed else f"{argument} may not be {value!r}."

    return check


def at_most(argument: str, cap: float) -> Check:
    """A check that a number does not exceed a cap."""

    def check(arguments: dict[str, Any]) -> str | None:
        value = arguments.get(argument)
        # Anything that is not a number, or not comparable (nan), is refused as well.
        fits = isinstance(value, int | float) and value <= cap
        return None if fits else f"{argument} may be at most {cap:g}, not {value!r}."

    return check


def undo(
    trace: Trace, tools: Sequence[Tool], inverses: Mapping[str, Inverse]
) -> list[dict[str, Any]]:
    """Undo what a run has changed, the last change first.

    `inverses` gives for the name of a tool a function from the arguments and the result of a call
    to the call that undoes it: (name, arguments). Returns a row for each change, ready for
    `course_utils.show.table`: what was undone, how, and what cannot be undone.
    """
    rows = []
    for done in reversed([each for each in trace.of(Observed) if _changed(each)]):
        inverse = inverses.get(done.call.name)
        row = {"done": call_text(done.call), "undone by": "", "result": "cannot be undone"}
        if inverse is not None:
            call = ToolCall("undo", *inverse(done.call.arguments, done.content))
            row |= {"undone by": call_text(call), "result": run_call(call, tools).content}
        rows.append(row)
    return rows


def _changed(event: Observed) -> bool:
    return event.happened == "yes" and event.source != "stored"
