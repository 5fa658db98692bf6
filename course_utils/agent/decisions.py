"""Asking the gate, and remembering what was decided while the run was paused."""

from __future__ import annotations

from dataclasses import replace

from course_utils.agent.limits import StopReason
from course_utils.agent.stop import Stop
from course_utils.approval import Decision, Gate, audit_row, same_value
from course_utils.messages import ToolCall
from course_utils.tools import Tool
from course_utils.trace import Asked, Decided, Replied, Trace, call_text


class Decisions:
    """The decisions about the calls of a run. Each becomes a row of the audit trail."""

    def __init__(self, trace: Trace, gate: Gate) -> None:
        self.trace, self.gate = trace, gate

    def about(self, step: int, call: ToolCall, tool: Tool) -> Decision:
        """The decision about a call; Stop if the run has to wait for one."""
        kept = self._kept(call)
        # The rules of today win: what they forbid does not run on a decision of yesterday.
        if kept is not None and self.gate.policy.rule_for(tool)[0] != "reject":
            return kept
        decision, rule = self.gate.review(step, call, tool)
        if decision is None:
            if not self._is_asked(step, call):
                self.trace.add(Asked(step, call, rule, tool.effect, tool.open_world))
            raise Stop(StopReason.WAITING, f"{call_text(call)} waits for a decision ({rule}).")
        self.trace.add(audit_row(step, call, tool, decision, rule))
        return decision

    def _kept(self, call: ToolCall) -> Decision | None:
        """The decision of a person about this call, if it is about these arguments."""
        for event in reversed(self.trace.events):
            if isinstance(event, Replied):
                return None
            if not isinstance(event, Decided) or event.call_id != call.id:
                continue
            if event.action == "void" or event.who == "policy":
                return None
            if event.tool == call.name and same_value(event.before, call.arguments):
                changed = event.after if event.action == "modify" else None
                return Decision(event.action, event.why, event.who, changed)
            self.trace.add(
                replace(
                    event,
                    tool=call.name,
                    action="void",
                    who="policy",
                    why="The decision was about other arguments.",
                    before=call.arguments,
                    after=None,
                )
            )
            return None
        return None

    def _is_asked(self, step: int, call: ToolCall) -> bool:
        return any(event.step == step and event.call == call for event in self.trace.of(Asked))
