"""From the calls of a reply to exactly one result each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from course_utils.agent.decisions import Decisions
from course_utils.agent.limits import Limits, StopReason
from course_utils.agent.repeats import Repeat, Repeats, Writes
from course_utils.agent.stop import Stop
from course_utils.agent.toolbox import Ready, Toolbox
from course_utils.approval import Decision, Gate
from course_utils.messages import ToolCall
from course_utils.tools import failure
from course_utils.trace import (
    Began,
    Cleared,
    Decided,
    Observed,
    Replied,
    Told,
    Trace,
    call_text,
)

UNREADABLE = "(unreadable)"  # stands for the name of the tool in the count of repeats


class Calls:
    """Runs the calls of a reply, one after the other.

    For each call: is it possible, was it done before, may it run, run it, write down its result,
    notice repeats. A write is announced in the trace before it runs (`Began`), so that a crash in
    the middle leaves a question and not a second effect.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        trace: Trace,
        gate: Gate | None,
        limits: Limits,
        time_left: Callable[[], float],
    ) -> None:
        self.toolbox, self.trace, self.gate, self.limits = toolbox, trace, gate, limits
        self.decisions = Decisions(trace, gate) if gate is not None else None
        self.time_left = time_left
        self.repeats, self.writes = Repeats(), Writes()
        self._times = 0  # how often the last thing that happened has happened in a row
        for event in trace.of(Observed, Told):
            self._remember(event)

    def run_open_calls(self, said: Replied) -> None:
        """Give each call of the reply that has none yet its result."""
        calls = self.trace.open_calls()
        for call in calls:
            if self.time_left() <= 0:
                detail = f"The time limit of {self.limits.max_seconds:g} s is over."
                raise Stop(StopReason.TIME, detail)
            last = call is calls[-1]
            self.observe(self.result(said.step, call), said.unreadable if last else ())

    def stop_if_due(self) -> None:
        """A run that was cut off just before it would have stopped, stops now."""
        last = self.trace.events[-1]
        if isinstance(last, Observed | Told):
            self._check_repeats(last)
        for row in self.trace.of(Decided):
            if row.action == "abort":
                raise _aborted(row.who, row.why, ToolCall(row.call_id, row.tool, row.before))

    def result(self, step: int, call: ToolCall) -> Observed:
        """The result of one call, without the notes about repeats."""
        began = self._began(call)
        if began is not None:
            return self._run_again(step, began)
        ready = self.toolbox.prepare(call)
        if isinstance(ready, str):
            return Observed(step, call, ready, ok=False, source="refused")
        done = self._done_before(step, call)
        if done is not None:
            return done
        if self.decisions is None:
            return self._run(step, ready)
        decision = self.decisions.about(step, call, ready.tool)
        if decision.action in ("reject", "abort"):
            return self._rejected(step, call, decision)
        if decision.arguments is not None:
            return self._run_modified(step, replace(call, arguments=decision.arguments))
        return self._run(step, ready)

    # -- running ---------------------------------------------------------------------------------

    def _run(self, step: int, ready: Ready) -> Observed:
        call, tool = ready.call, ready.tool
        changes = tool.effect != "read"
        if self.gate is not None and self.gate.dry_run and (changes or tool.open_world):
            text = json.dumps({"dry_run": True, "would_call": call_text(call)}, ensure_ascii=False)
            return Observed(step, call, text, ok=True, source="dry_run")
        key = self.toolbox.key(self.trace.start.run_id, call)
        if changes:
            self.trace.add(Began(step, call, key))
        outcome = self.toolbox.run(ready, key, self.time_left)
        source = "ran" if outcome.ok or outcome.happened == "yes" else "failed"
        return Observed(
            step,
            call,
            outcome.content,
            outcome.ok,
            source,
            happened=outcome.happened,
            attempts=outcome.attempts,
        )

    def _run_modified(self, step: int, call: ToolCall) -> Observed:
        ready = self.toolbox.prepare(call)
        if isinstance(ready, str):
            return Observed(step, call, ready, ok=False, source="refused")
        # The new arguments may be those of a call that was made before.
        event = self._done_before(step, call) or self._run(step, ready)
        note = f"Note: a person changed the arguments to {call_text(call)}."
        return replace(event, note=f"{note}\n{event.note}".strip())

    def _run_again(self, step: int, began: Began) -> Observed:
        """A write that a crash cut off: with a key it happens once, without one nobody knows."""
        ready = self.toolbox.prepare(began.call)
        if began.key is None or isinstance(ready, str):
            raise Stop(
                StopReason.UNKNOWN,
                f"It is unknown whether {call_text(began.call)} took effect: the program ended "
                "while it ran. Look, then settle it and resume.",
            )
        return self._run(step, ready)

    def _began(self, call: ToolCall) -> Began | None:
        """The announcement of this call by a process that did not live to write its result."""
        for event in reversed(self.trace.events):
            if isinstance(event, Replied):
                return None
            if isinstance(event, Cleared) and event.call_id == call.id:
                return None
            if isinstance(event, Began) and event.call.id == call.id:
                return event
        return None

    def _done_before(self, step: int, call: ToolCall) -> Observed | None:
        before = self.writes.find(call)
        if before is None:
            return None
        if before.happened == "yes":
            return replace(
                before,
                step=step,
                call=call,
                source="stored",
                attempts=(),
                note=f"Note: this was done in step {before.step}; it was not done a second time.",
            )
        if self.toolbox.key(self.trace.start.run_id, call) is not None:
            return None  # the key makes trying again safe
        hint = (
            f"It is not known whether the same call in step {before.step} took effect, so it is "
            "not made again. Tell the user that somebody has to look."
        )
        text = failure(call, "unknown_outcome", hint).content
        return Observed(step, call, text, ok=False, source="refused", happened="unknown")

    # -- the gate --------------------------------------------------------------------------------

    def _rejected(self, step: int, call: ToolCall, decision: Decision) -> Observed:
        hint = f"{call.name} was not run, {decision.who} said no.{_reason(decision.why)}"
        hint += " Do not try it again."
        event = Observed(
            step, call, failure(call, "rejected", hint).content, ok=False, source="rejected"
        )
        if decision.action == "abort":
            self.trace.add(event)
            raise _aborted(decision.who, decision.why, call)
        return event

    # -- results ---------------------------------------------------------------------------------

    def observe(self, event: Observed, unreadable: tuple[str, ...] = ()) -> None:
        """Write down a result, with notes about repeats, and stop if there are too many."""
        repeat = self._remember(event)
        notes = [event.note] if event.note else []
        if repeat.count > 1 and event.source != "stored":
            notes.append(
                f"Note: this call was already made in step {repeat.since}, with the same result. "
                "Use the result, or do something else."
            )
        if repeat.near is not None:
            notes.append(
                f"Note: almost the same call was made in step {repeat.near}, with the same result."
            )
        if unreadable:
            notes.append(f"Note: another call could not be read. {' '.join(unreadable)}")
        self.trace.add(replace(event, note="\n".join(notes)) if notes else event)
        self._check_repeats(event)

    def tell_unreadable(self, said: Replied) -> None:
        """Answer a reply whose only calls could not be read."""
        hint = " ".join(said.unreadable)
        text = failure(ToolCall("", UNREADABLE, {}), "unreadable_call", hint).content
        event = Told(said.step, text)
        self._remember(event)
        self.trace.add(event)
        self._check_repeats(event)

    def _remember(self, event: Observed | Told) -> Repeat:
        if isinstance(event, Told):
            repeat = self.repeats.add(event.step, ToolCall("", UNREADABLE, {}), event.text)
        elif event.source == "not_run":
            repeat = Repeat(1, event.step)
        else:
            repeat = self.repeats.add(event.step, event.call, event.content)
            self.writes.add(event)
        self._times = repeat.count
        return repeat

    def _check_repeats(self, event: Observed | Told) -> None:
        if self.limits.max_repeats is None or self._times <= self.limits.max_repeats:
            return
        if isinstance(event, Told):
            detail = f"The model wrote a call that cannot be read {self._times} times in a row."
            raise Stop(StopReason.REPEATS, detail)
        call = call_text(event.call)
        if event.source == "rejected":
            raise Stop(StopReason.DENIED, f"{call} was rejected {self._times} times.")
        detail = f"{call} was called {self._times} times with the same result."
        raise Stop(StopReason.REPEATS, detail)

    def leave_no_call_open(self, stop: Stop) -> None:
        """When a run stops in the middle of a step, its other calls get a result too.

        Not when it only pauses: then they are still to be run.
        """
        if stop.reason in (StopReason.WAITING, StopReason.UNKNOWN):
            return
        last = self.trace.last_reply
        for call in self.trace.open_calls():
            text = failure(call, "not_run", f"The run stopped before this call: {stop.detail}")
            self.trace.add(Observed(last.step, call, text.content, ok=False, source="not_run"))


def _reason(why: str) -> str:
    return f" The reason: {why}" if why else ""


def _aborted(who: str, why: str, call: ToolCall) -> Stop:
    return Stop(StopReason.DENIED, f"{who} stopped the run at {call_text(call)}.{_reason(why)}")
