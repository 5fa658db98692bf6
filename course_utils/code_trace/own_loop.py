"""A trace of the course's own loop in the same form."""

from __future__ import annotations

from typing import Any

from course_utils.code_trace.run import Call, CodeRun, CodeStep
from course_utils.errors import CourseError
from course_utils.messages import Message
from course_utils.trace import Step, Trace


def as_run(of: Any) -> CodeRun:
    """Read a CodeRun (returned as it is), a Trace, or a Run of `run_agent`.

    Raises:
        CourseError: It is none of these.

    >>> from course_utils.trace import Started
    >>> as_run(Trace([Started("r1", (Message("user", "Hi"),), ("add",))])).tools_offered()
    ['add']
    """
    if isinstance(of, CodeRun):
        return of
    trace = of if isinstance(of, Trace) else getattr(of, "trace", None)
    if not isinstance(trace, Trace):
        raise CourseError(
            f"A run is a CodeRun, a Trace or what run_agent returns, not {type(of).__name__}. "
            "For a smolagents agent: read_run(agent)."
        )
    start, steps, last = trace.start, trace.steps, trace.stopped
    answered = last is not None and last.reason == "answer"
    added = [list(start.messages), *(step.messages() for step in steps[:-1])]
    read = [
        _step(step, new, is_final=answered and step is steps[-1])
        for step, new in zip(steps, added, strict=False)
    ]
    tasks = [message.content for message in start.messages if message.role == "user"]
    return CodeRun(
        task=tasks[-1] if tasks else "",
        tools=dict.fromkeys(start.tools, ""),
        steps=tuple(read),
        answer=steps[-1].messages()[0].content if answered and steps else None,
        stop_reason=last.reason if last else "unfinished",
        model=steps[-1].replied.reply.model if steps else "",
    )


def _step(step: Step, added: list[Message], is_final: bool) -> CodeStep:
    said = step.replied
    seen = [event.messages()[0].content for event in step.observed]
    calls = [
        Call(event.call.name, _arguments(event.call.arguments), event.content, event.ok)
        for event in step.observed
    ]
    return CodeStep(
        number=step.number,
        text=said.reply.text,
        calls=tuple(calls),
        observation="\n".join(seen),
        error="\n".join(event.text for event in step.told),
        tokens_in=said.reply.prompt_tokens,
        tokens_out=said.reply.output_tokens,
        cached=said.reply.cached_tokens,
        origin=said.reply.origin,
        is_final=is_final,
        added=tuple(added),
        reread=max(0, said.context - len(added)),
    )


def _arguments(arguments: Any) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}
