"""A gate that asks less, and about the right things: it looks at where the arguments come from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_utils.approval import CAREFUL, Approved, Decision, Gate, Policy, Request
from course_utils.injection.provenance import Ledger, Mark
from course_utils.messages import ToolCall
from course_utils.tools import Tool, content
from course_utils.trace import Observed, Trace


class ProvenanceGate(Gate):
    """Asks a person about a side effect only if somebody else chose its arguments.

    Where the policy says *ask*, a call whose watched arguments all stand in the user's request
    runs without a question; every other call is asked about, and the question says where each
    foreign value comes from. Where the policy says *tell*, foreign values make it *ask*.

    A tool that only reads but can carry data out (`open_world`: a search, a URL) is asked about
    when an argument carries something out of a tool's output. A query in the model's own words
    passes, unless `strict`.

    Args:
        policy: The rules, as in `Gate`.
        ask: Who is asked, as in `Gate`.
        ledger: What the user wrote and what tools gave back; fill it with `watched` tools.
        watch: For a tool's name, the arguments that matter (the recipient, not the wording).
            Left out, all arguments of a tool do.
        strict: Also ask about open-world reads with words that stand nowhere.

    >>> ledger = Ledger("Write to Ana.")
    >>> gate = ProvenanceGate(ledger=ledger, watch={"send_email": ["to"]})
    """

    def __init__(
        self,
        policy: Policy = CAREFUL,
        ask: Callable[[Request], Decision | None] | None = None,
        *,
        ledger: Ledger,
        watch: Mapping[str, Sequence[str]] | None = None,
        strict: bool = False,
        tell: Callable[[Request], Any] | None = None,
        approved: Sequence[Approved] = (),
        dry_run: bool = False,
    ) -> None:
        super().__init__(policy, ask, tell=tell, approved=approved, dry_run=dry_run)
        self.ledger, self.watch, self.strict = ledger, watch or {}, strict

    def review(self, step: int, call: ToolCall, tool: Tool) -> tuple[Decision | None, str]:
        """The decision about a call (None: nobody has decided yet), and the rule behind it."""
        rule, source = self.policy.rule_for(tool)
        if rule in ("allow", "reject"):
            return super().review(step, call, tool)
        foreign = self.foreign(call, tool)
        if foreign:
            about = "; ".join(map(repr, foreign))
            return self._asked(Request(step, call, tool, f"{source}; {about}"))
        # A call with nothing to look at says nothing about who wanted it.
        if rule == "ask" and (self._watched(call) or tool.effect == "read"):
            why = "Its arguments stand in the request."
            return Decision("allow", why, "policy"), f"{source}; nothing foreign in it"
        return super().review(step, call, tool)

    def foreign(self, call: ToolCall, tool: Tool) -> list[Mark]:
        """The values of a call that a person has to see."""
        marks = self.ledger.foreign(call.arguments, self.watch.get(tool.name))
        if tool.effect == "read" and not self.strict:
            return [mark for mark in marks if mark.origin == "tool"]
        return marks

    def _watched(self, call: ToolCall) -> list[Mark]:
        marks = self.ledger.marks(call.arguments, self.watch.get(call.name))
        return [mark for mark in marks if mark.origin != "constant"]


def watched(tool: Tool, ledger: Ledger) -> Tool:
    """The same tool; whatever it gives back, or fails with, is written into the ledger.

    >>> ledger = Ledger()
    >>> watched(Tool("now", "Tell the time.", None, lambda: "noon"), ledger).function()
    'noon'
    >>> ledger.seen[0].text
    'noon'
    """

    @functools.wraps(tool.function)
    def function(**arguments: Any) -> Any:
        try:
            value = tool.function(**arguments)
        except Exception as error:
            ledger.saw(tool.name, str(error))  # an error message can hold an order too
            raise
        ledger.saw(tool.name, content(value))
        return value

    return replace(tool, function=function)


def ledger_of(trace: Trace, trusted: Iterable[str] = ()) -> Ledger:
    """The ledger of a run so far, for going on with a saved one: its user messages are trusted."""
    users = [m.content for m in trace.start.messages if m.role == "user"]
    ledger = Ledger([*users, *trusted])
    for event in trace.of(Observed):
        ledger.saw(event.call.name, event.content)
    return ledger
