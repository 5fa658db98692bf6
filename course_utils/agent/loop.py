"""The loop: ask the model, run its calls, show it the results, until there is a reason to stop."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from course_utils.agent.calls import Calls
from course_utils.agent.limits import Limits, StopReason
from course_utils.agent.run import Run
from course_utils.agent.save import saving
from course_utils.agent.stop import Stop
from course_utils.agent.toolbox import Toolbox
from course_utils.approval import Gate
from course_utils.errors import CourseError
from course_utils.messages import Message, Reply, system, user
from course_utils.retry import RetryPolicy
from course_utils.tools import Tool
from course_utils.trace import Asked, Decided, Observed, Replied, Started, Stopped, Trace

SYSTEM = (
    "You are a helpful assistant. Call a tool when you need information. "
    "When the tool results contain what you need, answer the user in one sentence."
)
FINAL = (StopReason.ANSWER, StopReason.DENIED)  # nothing is left to go on with
MOST_ERRORS = 3  # so many unreadable calls of a reply are explained to the model
# These say that the program is wrong, not the world.
PROGRAMMING = (TypeError, AttributeError, NameError, AssertionError, NotImplementedError)


class Model(Protocol):
    """Anything that can be asked: the course's models, a scripted one, `ReAct`, your own."""

    def chat(self, messages: Sequence[Message], tools: Any = None, **settings: Any) -> Reply:
        """The next message of the conversation."""


def run_agent(
    model: Model,
    tools: Sequence[Tool],
    task: str | Sequence[Message] | None = None,
    *,
    system_prompt: str = SYSTEM,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    gate: Gate | None = None,
    save: str | Path | None = None,
    trace: Trace | None = None,
    retry: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
    accept: Callable[[Trace], str | None] | None = None,
    view: Callable[[list[Message]], list[Message]] | None = None,
    run_id: str | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    **settings: Any,
) -> Run:
    """Let a model work on a task with tools, within limits, and say how it ended.

    Args:
        model: Anything with `.chat(messages, tools=…) -> Reply`.
        tools: What it may call.
        task: The user's message, or a whole conversation. Left out when a `trace` goes on.
        system_prompt: The standing instructions ("" for none).
        limits: Where to stop at the latest.
        gate: Decides about each call before it runs. Without a gate every call runs.
        save: A new file that keeps the run, event by event (see `resume`).
        trace: A run to go on with: a fork, for example.
        retry: How transient failures of tools are tried again, unseen by the model.
        accept: Looks at the trace when the model has answered, and returns a complaint if the
            program should not present that answer (see `needs_observation`).
        view: Chooses what of the conversation the model is sent, for example a trimmed one.
        run_id: A name for the run, part of every idempotency key. Default: a random one.
        clock: Seconds, for the wall-clock limit.
        sleep: Waits between tries.
        settings: Passed on to `model.chat`, for example `max_new_tokens=128`.

    Returns:
        A Run with answer, stop_reason and trace. What goes wrong on the way is in the trace; no
        exception leaves the loop, except one that says the calling program is wrong.

    >>> from course_utils.models import scripted
    >>> run_agent(scripted(["Hello!"]), [], "Hi").answer
    'Hello!'
    """
    toolbox = Toolbox(tools, limits, retry, sleep)
    if trace is not None and gate is None and any(trace.of(Asked, Decided)):
        raise CourseError("This run has a gate: give it one to go on, with gate=….")
    if trace is None:
        trace = new_trace(task, tools, system_prompt=system_prompt, run_id=run_id)
    loop = Loop(model, toolbox, trace, limits, gate, accept, view, clock, settings)
    try:
        with saving(trace, save):
            return loop.run()
    finally:
        toolbox.close()


def needs_observation(trace: Trace) -> str | None:
    """For `accept`: refuse an answer that no successful call of a tool stands behind."""
    if any(event.ok for event in trace.of(Observed)):
        return None
    return "The model answered without one successful call of a tool."


def new_trace(
    task: str | Sequence[Message] | None,
    tools: Sequence[Tool] = (),
    *,
    system_prompt: str = SYSTEM,
    run_id: str | None = None,
) -> Trace:
    """The trace of a run that is about to begin.

    `run_agent` makes one by itself. Give it one with `trace=` to keep hold of it: then even a run
    that is interrupted can be looked at, and resumed.
    """
    if not task:
        raise CourseError("The agent needs a task: a text, or a list of messages.")
    given = [user(task)] if isinstance(task, str) else task
    messages = [Message.from_dict(each) if isinstance(each, dict) else each for each in given]
    if system_prompt and messages[0].role != "system":
        messages.insert(0, system(system_prompt))
    names = tuple(tool.name for tool in tools)
    return Trace([Started(run_id or uuid.uuid4().hex[:12], tuple(messages), names)])


class Loop:
    """One run. All of its state is in the trace, so a run that was cut off goes on from there."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        trace: Trace,
        limits: Limits,
        gate: Gate | None = None,
        accept: Callable[[Trace], str | None] | None = None,
        view: Callable[[list[Message]], list[Message]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.model, self.toolbox, self.trace, self.limits = model, toolbox, trace, limits
        self.accept, self.view, self.settings = accept, view, settings or {}
        replies = list(trace.of(Replied))
        self.steps, self.tokens, self.cost = len(replies), 0, 0.0
        for event in replies:
            self._count(event.reply)
        # Time that earlier parts of the run have used counts, the pause in between does not.
        used = max((event.seconds for event in trace.of(Replied, Stopped)), default=0.0)
        self._clock, self._began = clock, clock() - used
        self.calls = Calls(toolbox, trace, gate, limits, self.time_left)

    def run(self) -> Run:
        """Go on until there is a reason to stop."""
        stopped = self.trace.stopped
        if stopped and stopped.reason in FINAL:
            return Run(self.trace)
        try:
            if self.trace.last_reply is not None:  # an earlier process may have been cut off
                self.calls.stop_if_due()
                self.act(self.trace.last_reply)
            while True:
                self.check_limits()
                self.act(self.decide())
        except Stop as stop:
            self.calls.leave_no_call_open(stop)
            self.trace.add(Stopped(stop.reason, stop.detail, self.seconds()))
            return Run(self.trace, stop.error)

    def check_limits(self) -> None:
        """Before each call of the model: is there anything left to spend?"""
        limits = self.limits
        if self.steps >= limits.max_steps:
            raise Stop(StopReason.MAX_STEPS, f"The limit of {limits.max_steps} steps is reached.")
        if limits.max_tokens is not None and self.tokens >= limits.max_tokens:
            detail = f"{self.tokens:,} of {limits.max_tokens:,} tokens are used."
            raise Stop(StopReason.TOKENS, detail)
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            detail = f"{self.cost:.4g} of {limits.max_cost:.4g} in money is spent."
            raise Stop(StopReason.MONEY, detail)
        if self.time_left() <= 0:
            raise Stop(StopReason.TIME, f"The time limit of {limits.max_seconds:g} s is over.")

    def decide(self) -> Replied:
        """Ask the model what to do next, and write down what it says."""
        messages = list(self.trace.messages)
        if self.view is not None:
            messages = self.view(messages)
        try:
            reply = self.model.chat(messages, tools=self.toolbox.offered or None, **self.settings)
        except PROGRAMMING:
            raise
        except Exception as error:
            raise Stop(StopReason.ERROR, f"The model gave no reply: {error}", error) from error
        self.steps += 1
        self._count(reply)
        said = Replied(
            self.steps,
            _unique_ids(reply),
            len(messages),
            self.toolbox.names,
            tuple(error.message for error in reply.parse_errors[:MOST_ERRORS]),
            round(self.seconds(), 3),
        )
        self.trace.add(said)
        return said

    def act(self, said: Replied) -> None:
        """Do what the reply asks for: run its calls, or stop with its answer."""
        reply = said.reply
        if reply.tool_calls:
            self.calls.run_open_calls(said)
        elif said.unreadable:
            if not self.trace.told:
                self.calls.tell_unreadable(said)
        elif not (reply.content or reply.text).strip():
            raise Stop(StopReason.EMPTY, "The model replied with nothing.")
        else:
            complaint = self.accept(self.trace) if self.accept is not None else None
            if complaint:
                raise Stop(StopReason.UNSUPPORTED, complaint)
            cut = reply.finish_reason == "length"
            note = "It was cut off at the length limit of a reply." if cut else ""
            raise Stop(StopReason.ANSWER, note)

    def seconds(self) -> float:
        """Seconds that the run has taken, over all of its parts."""
        return self._clock() - self._began

    def time_left(self) -> float:
        """Seconds until the wall-clock limit."""
        if self.limits.max_seconds is None:
            return float("inf")
        return self.limits.max_seconds - self.seconds()

    def _count(self, reply: Reply) -> None:
        self.tokens += reply.prompt_tokens + reply.output_tokens
        if self.limits.prices is not None:
            self.cost += self.limits.prices.cost(reply)


def _unique_ids(reply: Reply) -> Reply:
    """Calls keep their ids; where one is missing or stands twice, a number is added."""
    ids = [call.id for call in reply.tool_calls]
    if len(set(ids)) == len(ids) and all(ids):
        return reply
    used: set[str] = set()
    calls = []
    for call in reply.tool_calls:
        name, number = call.id or "call", 1
        new = name
        while new in used or (new != call.id and new in ids):
            number += 1
            new = f"{name}_{number}"
        used.add(new)
        calls.append(replace(call, id=new))
    return replace(reply, tool_calls=tuple(calls))
