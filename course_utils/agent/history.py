"""Going on with a run: after a pause, after a crash, or from another past."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_utils.agent.limits import Limits
from course_utils.agent.loop import Model, run_agent
from course_utils.agent.run import Run
from course_utils.agent.save import RunFile, load_trace
from course_utils.agent.toolbox import Toolbox
from course_utils.approval import Decision
from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall
from course_utils.retry import RetryPolicy
from course_utils.tools import Tool
from course_utils.trace import (
    Asked,
    Began,
    Cleared,
    Decided,
    Event,
    Observed,
    Replied,
    Started,
    Told,
    Trace,
    call_text,
)

Source = str | Path | Trace | Run


def resume(source: Source, model: Model, tools: Sequence[Tool], **options: Any) -> Run:
    """Go on with a run: one that paused, was cut off by a crash, or reached a limit.

    `source` is the file of a saved run (which is locked meanwhile and goes on growing), or a trace
    or Run in memory. `options` are those of `run_agent`; limits count from the beginning of the
    run. A run that has its answer, or was denied, comes back as it is.

    Raises CourseError if the file is damaged or another process works on the run.
    """
    with _opened(source) as trace:
        return run_agent(model, tools, trace=trace, **options)


def pending(source: Source) -> list[Asked]:
    """The calls of a run that wait for a decision."""
    if isinstance(source, str | Path):
        return _pending(load_trace(source))  # looking needs no lock
    return _pending(source.trace if isinstance(source, Run) else source)


def decide(source: Source, decision: Decision, call_id: str | None = None) -> Decided:
    """Decide about a call that waits, and write the decision down; nothing runs before `resume`.

    `call_id` is needed if several calls wait. Raises CourseError if no such call waits, for
    example because it was decided before: an approval is good for one call.
    """
    with _opened(source) as trace:
        waiting = [each for each in _pending(trace) if call_id is None or each.call.id == call_id]
        if len(waiting) != 1:
            names = ", ".join(f"{each.call.id}: {call_text(each.call)}" for each in waiting)
            raise CourseError(
                f"Say which call the decision is about ({names})."
                if waiting
                else "No such call waits for a decision: it was decided before, or never asked."
            )
        asked = waiting[0]
        runs = {"modify": decision.arguments, "reject": None, "abort": None}
        row = Decided(
            asked.step,
            asked.call.id,
            asked.call.name,
            asked.effect,
            asked.open_world,
            asked.rule,
            decision.action,
            decision.who,
            decision.why,
            before=asked.call.arguments,
            after=runs.get(decision.action, asked.call.arguments),
        )
        trace.add(row)
        return row


def settle(source: Source, happened: bool, result: str = "", who: str = "person") -> None:
    """Say whether the call that was cut off took effect; somebody has looked.

    If it did, `result` becomes its result. If it did not, it runs again on `resume`.
    Raises CourseError if no call is in doubt.
    """
    with _opened(source) as trace:
        began = in_doubt(trace)
        if began is None:
            raise CourseError("No call of this run is in doubt: there is nothing to settle.")
        if happened:
            text = result or f"Done; {who} has looked."
            trace.add(Observed(began.step, began.call, text, ok=True, happened="yes"))
        else:
            trace.add(Cleared(began.step, began.call.id, who))


def in_doubt(trace: Trace) -> Began | None:
    """The call that began and has neither a result nor a key that makes it safe to run again."""
    open_ids = {call.id for call in trace.open_calls()}
    found = None
    for event in trace.of(Began, Cleared, Replied):
        if isinstance(event, Began) and event.call.id in open_ids and event.key is None:
            found = event
        else:
            found = None
    return found


def fork(
    source: Trace | Run,
    step: int,
    edit: Callable[[Message], Message] | None = None,
    *,
    message: int = -1,
) -> Trace:
    """A trace that shares its past with another one, up to a message of a step, perhaps edited.

    What came after that message is left out; run on with `run_agent(model, tools, trace=…)`.

    Args:
        source: The run or trace; it is not changed.
        step: The step; 0 for the messages before the first step.
        edit: Makes the new message from the old one. Without it the fork repeats the original.
        message: Which message of the step, counted from 0; -1 is the last one.

    >>> from course_utils.agent import run_agent
    >>> from course_utils.models import scripted
    >>> run = run_agent(scripted(["Hello!"]), [], "Hi")
    >>> fork(run, 0, lambda m: Message("user", "Bye")).messages[-1].content
    'Bye'
    """
    trace = source.trace if isinstance(source, Run) else source
    if step == 0:
        return Trace([_edited_start(trace.start, edit, message)])
    places = [
        place
        for place, event in enumerate(trace.events)
        if isinstance(event, Replied | Observed | Told) and event.step == step
    ]
    if not places:
        last = trace.last_reply.step if trace.last_reply else 0
        raise CourseError(f"The run has no step {step}: its steps are 0 to {last}.")
    try:
        place = places[message]
    except IndexError:
        raise CourseError(
            f"Step {step} has {len(places)} messages: there is no message {message}."
        ) from None
    event = trace.events[place]
    kept = [_new_id(trace.start, step), *trace.events[1:place]]
    return Trace([*kept, _edited(event, edit) if edit else event])


def replay(trace: Trace | Run, tools: Sequence[Tool]) -> None:
    """Do again, in another world, what a trace did to its own: the same writes, in order.

    A fork run in a fresh world needs this: its past has not happened there.
    """
    trace = trace.trace if isinstance(trace, Run) else trace
    toolbox = Toolbox(tools, Limits(tool_seconds=None), RetryPolicy(attempts=1))
    for event in trace.of(Observed):
        if event.happened == "yes" and event.source != "stored":
            ready = toolbox.prepare(event.call)
            if isinstance(ready, str):
                raise CourseError(f"{call_text(event.call)} cannot be run: {ready}")
            outcome = toolbox.run(ready, toolbox.key(trace.start.run_id, event.call))
            if outcome.happened != "yes":
                raise CourseError(f"{call_text(event.call)} did not work: {outcome.content}")


@contextmanager
def _opened(source: Source) -> Iterator[Trace]:
    if isinstance(source, Run):
        source = source.trace
    if isinstance(source, Trace):
        yield source
        return
    with RunFile(source) as file:
        yield Trace(file.events, listener=file.add)


def _pending(trace: Trace) -> list[Asked]:
    open_ids = {call.id: call for call in trace.open_calls()}
    waiting: dict[str, Asked] = {}
    for event in trace.of(Asked, Decided, Replied):
        if isinstance(event, Replied):
            waiting = {}
        elif isinstance(event, Asked):
            waiting[event.call.id] = event
        elif event.call_id in waiting and event.action != "void":
            del waiting[event.call_id]
    return [each for name, each in waiting.items() if open_ids.get(name) == each.call]


def _new_id(start: Started, step: int) -> Started:
    # Another run, so its writes have keys of their own.
    return replace(start, run_id=f"{start.run_id}-fork{step}")


def _edited_start(
    start: Started, edit: Callable[[Message], Message] | None, message: int
) -> Started:
    messages = list(start.messages)
    if edit is not None:
        try:
            messages[message] = edit(messages[message])
        except IndexError:
            raise CourseError(
                f"Step 0 has {len(messages)} messages: there is no message {message}."
            ) from None
    return replace(_new_id(start, 0), messages=tuple(messages))


def _edited(event: Event, edit: Callable[[Message], Message]) -> Event:
    """The event behind a message, so that its view is the edited message."""
    old = event.messages()[0]
    new = edit(old)
    if not isinstance(new, Message) or new.role != old.role:
        raise CourseError(f"The edit of a {old.role} message must return a {old.role} message.")
    if isinstance(event, Observed):
        return replace(event, content=new.content, note="")
    if isinstance(event, Told):
        return replace(event, text=new.content)
    calls: tuple[ToolCall, ...] = new.tool_calls
    reply = replace(
        event.reply, text=new.content, content=new.content, tool_calls=calls, parse_errors=()
    )
    return replace(event, reply=reply, unreadable=())
