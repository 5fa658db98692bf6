"""The gate between a model's call and the world: rules, decisions, audit trail.

A rule decides by what a tool does to the world (read, reversible, irreversible, and whether it can
carry data out), or by its name. Where no rule matches, the answer is no. A decision is about one
call with exactly its arguments; every decision becomes a row that says who, what and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import ToolCall
from course_utils.tools import EFFECTS, Tool
from course_utils.trace import Decided, Trace

# From the mildest to the strictest.
RULES = ("allow", "tell", "ask", "reject")
ACTIONS = ("allow", "tell", "approve", "modify", "reject", "abort")


@dataclass(frozen=True)
class Policy:
    """What may run: a rule for each effect class, one for open_world tools, and for single tools.

    Rules are *allow*, *tell* (run it and tell the person, who can undo it), *ask* and *reject*. The
    rule for a tool's name wins. Otherwise the stricter one of its effect class and, for a tool
    that can carry data out, of `open_world`. No matching rule means reject.

    >>> policy = Policy(effects={"read": "allow"}, tools={"send_email": "ask"})
    """

    effects: Mapping[str, str] = field(default_factory=dict)
    open_world: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for effect in self.effects:
            if effect not in EFFECTS:
                raise CourseError(f"{effect!r} is no effect class: use {', '.join(EFFECTS)}.")
        given = [*self.effects.values(), *self.tools.values()]
        given += [self.open_world] if self.open_world is not None else []
        for rule in given:
            if rule not in RULES:
                raise CourseError(f"{rule!r} is no rule: use {', '.join(RULES)}.")

    def rule_for(self, tool: Tool) -> tuple[str, str]:
        """The rule for a tool, and the sentence that says where it comes from.

        >>> CAREFUL.rule_for(Tool("pay", "Pay.", None, print, effect="irreversible"))
        ('ask', 'irreversible: ask')
        """
        if tool.name in self.tools:
            rule = self.tools[tool.name]
            return rule, f"{tool.name}: {rule}"
        names = [tool.effect] + ["open_world"] * tool.open_world
        found = {"open_world": self.open_world, **self.effects}
        rules = [(found.get(name), name) for name in names]
        for rule, name in rules:
            if rule is None:
                return "reject", f"no rule for {name}: reject"
        rule, name = max(rules, key=lambda pair: RULES.index(pair[0]))
        return rule, f"{name}: {rule}"


CAREFUL = Policy(
    effects={"read": "allow", "reversible": "tell", "irreversible": "ask"}, open_world="ask"
)


@dataclass(frozen=True)
class Decision:
    """What was decided about a call. `arguments` are the new ones of a modify."""

    action: str
    why: str = ""
    who: str = "person"
    arguments: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise CourseError(f"{self.action!r} is no decision: use {', '.join(ACTIONS)}.")
        if (self.action == "modify") != (self.arguments is not None):
            raise CourseError("A modify needs the new arguments; other decisions have none.")


def approve(why: str = "", who: str = "person") -> Decision:
    """Let the call run as it is."""
    return Decision("approve", why, who)


def modify(arguments: dict[str, Any], why: str = "", who: str = "person") -> Decision:
    """Let the call run with other arguments (all of them, not only the changed ones)."""
    return Decision("modify", why, who, arguments)


def reject(why: str = "", who: str = "person") -> Decision:
    """Do not run the call; the model is told, and the run goes on."""
    return Decision("reject", why, who)


def abort(why: str = "", who: str = "person") -> Decision:
    """Do not run the call, and stop the run."""
    return Decision("abort", why, who)


@dataclass(frozen=True)
class Request:
    """A question to a person: may this call run? `rule` says why it is asked."""

    step: int
    call: ToolCall
    tool: Tool
    rule: str


@dataclass(frozen=True)
class Approved:
    """An approval given beforehand, for a call with exactly these arguments."""

    tool: str
    arguments: dict[str, Any]
    who: str = "person"
    why: str = ""


class Gate:
    """Decides about each call before it runs.

    Args:
        policy: The rules.
        ask: Called with a Request where a rule says ask, and returns a Decision. Without it (or
            if it returns None) the run pauses: see `decide` in `course_utils.agent`.
        tell: Called with a Request whose call is about to run under the rule *tell*.
        approved: Approvals given beforehand; they hold for exactly their arguments.
        dry_run: Nothing that changes the world, or can carry data out, runs: the model gets a
            description of what would have been done.

    >>> gate = Gate(CAREFUL, ask=lambda request: approve("looks right", who="Ana"))
    """

    def __init__(
        self,
        policy: Policy = CAREFUL,
        ask: Callable[[Request], Decision | None] | None = None,
        *,
        tell: Callable[[Request], Any] | None = None,
        approved: Sequence[Approved] = (),
        dry_run: bool = False,
    ) -> None:
        self.policy = policy
        self.ask = ask
        self.tell = tell
        self.approved = tuple(approved)
        self.dry_run = dry_run

    def review(self, step: int, call: ToolCall, tool: Tool) -> tuple[Decision | None, str]:
        """The decision about a call (None: nobody has decided yet), and the rule behind it."""
        rule, source = self.policy.rule_for(tool)
        if rule == "reject":
            return Decision("reject", "The rules do not allow it.", "policy"), source
        if rule == "allow":
            return Decision("allow", "", "policy"), source
        request = Request(step, call, tool, source)
        if rule == "tell":
            if self.tell is not None:
                self.tell(request)
            return Decision("tell", "", "policy"), source
        return self._asked(request)

    def _asked(self, request: Request) -> tuple[Decision | None, str]:
        source = request.rule
        for approval in self.approved:
            if approval.tool != request.call.name:
                continue
            if same_value(approval.arguments, request.call.arguments):
                return Decision("approve", approval.why, approval.who), f"{source}, approved before"
            source = f"{request.rule}; the approval given before was for other arguments"
        if self.ask is None:
            return None, source
        decision = self.ask(Request(request.step, request.call, request.tool, source))
        if decision is not None and not isinstance(decision, Decision):
            raise CourseError(
                "The function `ask` of a gate must return approve(…), modify(…), reject(…) or "
                f"abort(…), not {decision!r}."
            )
        return decision, source


def canonical(value: Any) -> str:
    """One text for equal values: key order does not matter, and 2.0 is 2, as in JSON.

    >>> canonical({"b": 2.0, "a": [True]}) == canonical({"a": [True], "b": 2})
    True
    """
    return json.dumps(_whole(value), sort_keys=True, ensure_ascii=False, default=repr)


def same_value(left: Any, right: Any) -> bool:
    """Whether two sets of arguments are equal by value."""
    return canonical(left) == canonical(right)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def audit_row(step: int, call: ToolCall, tool: Tool, decision: Decision, rule: str) -> Decided:
    """A decision as a row of the audit trail."""
    runs = {"modify": decision.arguments, "reject": None, "abort": None}
    return Decided(
        step=step,
        call_id=call.id,
        tool=tool.name,
        effect=tool.effect,
        open_world=tool.open_world,
        rule=rule,
        action=decision.action,
        who=decision.who,
        why=decision.why,
        before=call.arguments,
        after=runs.get(decision.action, call.arguments),
    )


def audit(trace: Trace) -> list[dict[str, Any]]:
    """The audit trail as rows for `course_utils.show.table`."""
    return [
        {
            "step": row.step,
            "tool": row.tool,
            "effect": row.effect + (", open world" if row.open_world else ""),
            "rule": row.rule,
            "decision": row.action,
            "who": row.who,
            "why": row.why,
            "arguments": _text(row.before),
            "ran with": "" if row.after is None else _text(row.after),
        }
        for row in trace.decisions
    ]


def _text(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, default=str)
