"""Noticing that a run goes round in circles."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from course_utils.approval import canonical
from course_utils.messages import ToolCall
from course_utils.trace import Observed

COMPARED = 2_000  # characters of arguments: the comparison takes the square of their number
NEAR = 0.8  # how similar two sets of arguments must be to count as almost the same, 0 to 1


@dataclass(frozen=True)
class Repeat:
    """How often a call has given this result in a row (1: it is new), and since which step.

    `near` is the step of an almost identical call with the same result, or None.
    """

    count: int
    since: int
    near: int | None = None


@dataclass
class Repeats:
    """The calls so far, compared by value, each with its last result.

    The same call with the same result is a repeat, wherever it stands: A, A as well as A, B, A, B.
    A call whose result has changed (asking again whether something is ready) is none.

    >>> repeats = Repeats()
    >>> call = ToolCall("call_1", "now", {})
    >>> [repeats.add(step, call, text).count for step, text in enumerate(["7", "7", "8"])]
    [1, 2, 1]
    """

    seen: dict[str, dict[str, tuple[str, int, int]]] = field(default_factory=dict)

    def add(self, step: int, call: ToolCall, content: str) -> Repeat:
        """Remember a call and its result, and say what it repeats."""
        calls = self.seen.setdefault(call.name, {})
        arguments = canonical(call.arguments)
        last, count, since = calls.get(arguments, (None, 0, step))
        if last != content:
            count, since = 0, step
        calls[arguments] = (content, count + 1, since)
        near = self._near(calls, arguments, content) if count == 0 else None
        return Repeat(count + 1, since, near)

    def _near(
        self, calls: dict[str, tuple[str, int, int]], arguments: str, content: str
    ) -> int | None:
        if len(arguments) > COMPARED:
            return None
        for other, (result, _, step) in calls.items():
            # The result first: it is nearly always another one, and this runs for every call.
            if result != content or other == arguments or len(other) > COMPARED:
                continue
            left, right = other.casefold(), arguments.casefold()
            if difflib.SequenceMatcher(None, left, right).ratio() >= NEAR:
                return step
        return None


class Writes:
    """The calls so far that changed the world, or may have.

    A write that happened is not done a second time, and one of which nobody knows whether it
    happened is not done silently again.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Observed] = {}

    def add(self, event: Observed) -> None:
        """Remember the result of a call."""
        if event.happened in ("yes", "unknown") and event.source != "stored":
            self._last[event.call.name, canonical(event.call.arguments)] = event

    def find(self, call: ToolCall) -> Observed | None:
        """The result of the same call, if it changed the world or may have."""
        if not self._last:
            return None
        return self._last.get((call.name, canonical(call.arguments)))
