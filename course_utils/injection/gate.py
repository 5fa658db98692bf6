"""Gates beyond one policy: one that looks at where arguments come from, and two gates as one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_utils.approval import (
    ACTIONS,
    CAREFUL,
    RULES,
    Approved,
    Decision,
    Gate,
    Policy,
    Request,
    same_value,
)
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
    when an argument carries something that is *recognised* as a tool's output. A query in the
    model's own words passes, unless `strict`. So without `strict` every disguise gets out: a
    secret in words ("seven two zero four"), backwards, in base64, in another language. With
    `strict` only the user's words leave without a question, and the price is a question for each
    search that the model words itself.

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
            why, found = self._reason(call)
            return Decision("allow", why, "policy"), f"{source}; {found}"
        return super().review(step, call, tool)

    def foreign(self, call: ToolCall, tool: Tool) -> list[Mark]:
        """The values of a call that a person has to see."""
        marks = self.ledger.foreign(call.arguments, self.watch.get(tool.name))
        if tool.effect == "read" and not self.strict:
            return [mark for mark in marks if mark.origin == "tool"]
        return marks

    def _reason(self, call: ToolCall) -> tuple[str, str]:
        """Why a call may run without a question, and in short for the rule."""
        marks = self._watched(call)
        own = [mark.path for mark in marks if mark.origin == "model"]
        if own:
            why = f"No piece of a tool's output was recognised in {', '.join(own)}."
            return f"{why} The words are the model's own.", "the model's own words"
        if not marks:
            return "It has no arguments that could carry anything.", "nothing in it"
        stand = ", ".join(mark.path for mark in marks)
        return f"In the user's request: {stand}.", "nothing foreign in it"

    def _watched(self, call: ToolCall) -> list[Mark]:
        marks = self.ledger.marks(call.arguments, self.watch.get(call.name))
        return [mark for mark in marks if mark.origin != "constant"]


class BothGates(Gate):
    """Two gates as one: both review each call, and the strictest decision wins.

    The order of strictness is that of `ACTIONS`, from *allow* to *abort*. If neither forbids the
    call and at least one wants a person, `ask` is asked once, with the reasons of both.
    Which gate comes first makes no difference.

    Args:
        first, second: Gates whose own `ask` returns None: it is this one's `ask` that answers.
        ask: Who is asked, as in `Gate`.

    >>> both = BothGates(Gate(), Gate(Policy(effects={"read": "allow"})))
    >>> both.policy.rule_for(Tool("pay", "Pay.", None, print, effect="irreversible"))
    ('reject', 'no rule for irreversible: reject')
    """

    def __init__(
        self, first: Gate, second: Gate, ask: Callable[[Request], Decision | None] | None = None
    ) -> None:
        super().__init__(ask=ask, dry_run=first.dry_run or second.dry_run)
        self.gates = (first, second)
        self.policy = _Strictest(first.policy, second.policy)

    def review(self, step: int, call: ToolCall, tool: Tool) -> tuple[Decision | None, str]:
        """The strictest decision about a call (None: nobody has decided yet), and its rule."""
        found = [gate.review(step, call, tool) for gate in self.gates]
        decided = [(decision, rule) for decision, rule in found if decision is not None]
        forbidden = any(decision.action in ("reject", "abort") for decision, _ in decided)
        if len(decided) < len(found) and not forbidden:
            rules = dict.fromkeys(sorted(rule for decision, rule in found if decision is None))
            asked, rule = self._asked(Request(step, call, tool, "; ".join(rules)))
            if asked is None:
                return None, rule
            decided.append((asked, rule))
        changed = [decision.arguments for decision, _ in decided if decision.action == "modify"]
        if not all(same_value(changed[0], each) for each in changed[1:]):
            return Decision("reject", "Two gates want different arguments.", "policy"), "two gates"
        return max(decided, key=lambda pair: (ACTIONS.index(pair[0].action), pair[1], pair[0].why))


class _Strictest(Policy):
    """The stricter rule of two policies."""

    def __init__(self, first: Policy, second: Policy) -> None:
        super().__init__()
        object.__setattr__(self, "both", (first, second))

    def rule_for(self, tool: Tool) -> tuple[str, str]:
        found = [policy.rule_for(tool) for policy in self.both]
        return max(found, key=lambda pair: (RULES.index(pair[0]), pair[1]))


def watched(tool: Tool, ledger: Ledger) -> Tool:
    """The same tool; whatever it gives back, or fails with, is written into the ledger.

    So is its description, under "NAME (description)": whoever wrote the tool may not be the user.

    >>> ledger = Ledger()
    >>> watched(Tool("now", "Tell the time.", None, lambda: "noon"), ledger).function()
    'noon'
    >>> [seen.text for seen in ledger.seen]
    ['Tell the time.', 'noon']
    """

    ledger.saw(f"{tool.name} (description)", tool.description)

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
    """The ledger of a run so far, for going on with a saved one: its user messages are trusted.

    Descriptions of tools are not in it; `watched` adds them when the tools are wrapped again.
    """
    users = [m.content for m in trace.start.messages if m.role == "user"]
    ledger = Ledger([*users, *trusted])
    for event in trace.of(Observed):
        ledger.saw(event.call.name, event.content)
    return ledger
