"""Reading a finished smolagents agent. Nothing of smolagents is imported: its objects are read.

smolagents keeps a run in `agent.memory.steps`; which tools a program called and what they returned
is not in there. A sandbox of this course keeps that in `executor.history`. Without it (smolagents'
local executor) the calls are read from the code, with the arguments that are written out in it,
and their results are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from course_utils.code_trace.calls import as_text, calls_of, executions
from course_utils.code_trace.run import CodeRun, CodeStep
from course_utils.errors import CourseError
from course_utils.messages import Message

# What smolagents' roles become in the prompt: models know no others.
ROLES = {"tool-call": "assistant", "tool-response": "user"}
LIMIT = "AgentMaxStepsError"


def read_run(agent: Any, task: str | None = None) -> CodeRun:
    """Read what the last run of a smolagents CodeAgent or ToolCallingAgent did.

    Args:
        agent: The agent after `agent.run(...)`.
        task: The task as it shall be shown; default: the text that the agent was given.

    Raises:
        CourseError: This is no smolagents agent, or it has not run yet.
    """
    steps = getattr(getattr(agent, "memory", None), "steps", None)
    if steps is None:
        raise CourseError(f"A smolagents agent has a memory of steps; {agent!r:.60} has none.")
    starts = [place for place, step in enumerate(steps) if hasattr(step, "task")]
    if not starts or starts[-1] + 1 == len(steps):
        raise CourseError("This agent has not run yet: call agent.run(task) first.")
    last = steps[starts[-1] + 1 :]
    system = agent.memory.system_prompt.system_prompt
    tools = {**agent.tools, **getattr(agent, "managed_agents", {})}
    inputs = {name: tuple(getattr(tool, "inputs", ())) for name, tool in tools.items()}
    read = _steps(agent, last, [*steps[: starts[-1] + 1]], inputs)
    return CodeRun(
        task=steps[starts[-1]].task if task is None else task,
        tools={name: _prompt_text(tool, system) for name, tool in tools.items()},
        steps=tuple(read),
        answer=_answer(last[-1]),
        stop_reason=_stop_reason(last[-1]),
        model=_model(agent, last),
        given=tuple(getattr(agent, "state", {})),
    )


def _steps(
    agent: Any, steps: Sequence[Any], earlier: list[Any], tools: dict[str, tuple[str, ...]]
) -> Iterator[CodeStep]:
    ran = executions(agent, steps)
    before: list[Message] = []
    for place, step in enumerate(steps):
        prompt = _messages(getattr(step, "model_input_messages", None) or ())
        if _is_limit(step):
            prompt = _last_prompt(agent, [*earlier, *steps[:place]])
        added = _not_in(before, prompt)
        before = prompt or before
        # A plan has no number of its own; it belongs to the action after it.
        after = (getattr(later, "step_number", None) for later in steps[place:])
        number = next(filter(None, after), len(steps))
        read = CodeStep(number, added=tuple(added), reread=len(prompt) - len(added))
        reply = _reply(agent, step, place - len(steps))
        yield _filled(read, step, reply, ran.get(place), tools)


def _filled(
    read: CodeStep, step: Any, reply: Any, ran: Any, tools: dict[str, tuple[str, ...]]
) -> CodeStep:
    usage = getattr(step, "token_usage", None)
    error, limit = getattr(step, "error", None), _is_limit(step)
    plan = getattr(step, "plan", None)
    text = plan if plan is not None else getattr(step, "model_output", None) or ""
    if limit:
        text = _answer(step) or ""
    code = getattr(step, "code_action", None)
    return replace(
        read,
        kind="forced" if limit else "action" if plan is None else "plan",
        text=text if isinstance(text, str) else as_text(text),
        code=code,
        calls=tuple(calls_of(step, code, ran, error is None, tools)),
        observation=getattr(step, "observations", None) or getattr(ran, "logs", None) or "",
        error="" if error is None or limit else str(getattr(error, "message", error)),
        tokens_in=getattr(usage, "input_tokens", 0),
        tokens_out=getattr(usage, "output_tokens", 0),
        cached=getattr(reply, "cached_tokens", 0),
        origin=getattr(reply, "origin", ""),
        is_final=limit or bool(getattr(step, "is_final_answer", False)),
    )


# -- messages and texts --------------------------------------------------------------------------


def _messages(messages: Sequence[Any]) -> list[Message]:
    return [
        Message(ROLES.get(role, role), _content(message.content))
        for message in messages
        for role in [str(getattr(message.role, "value", message.role))]
    ]


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", f"({part.get('type')})") for part in content)
    return content or ""


def _not_in(before: list[Message], now: list[Message]) -> list[Message]:
    """The messages of a prompt that the one before had not."""
    left, added = list(before), []
    for message in now:
        if message in left:
            left.remove(message)
        else:
            added.append(message)
    return added


def _last_prompt(agent: Any, earlier: list[Any]) -> list[Message]:
    """The prompt of the answer at the step limit: smolagents does not keep it, so it is built as
    `MultiStepAgent.provide_final_answer` builds it (smolagents 1.26)."""
    from jinja2 import Template

    texts = agent.prompt_templates["final_answer"]
    asked = Template(texts["post_messages"]).render(task=agent.task)
    seen = [message for step in earlier for message in step.to_messages()]
    first = Message("system", texts["pre_messages"])
    return [first, *_messages(seen), Message("user", asked)]


def _reply(agent: Any, step: Any, place: int) -> Any:
    """The course's Reply of a step, `place` counted from the end of the run.

    smolagents drops the message of a plan and of the answer at the step limit; a model that keeps
    its replies still has it, because each step asks the model once.
    """
    raw = getattr(getattr(step, "model_output_message", None), "raw", None)
    replies = getattr(agent.model, "replies", None) or ()
    if raw is not None or len(replies) < -place:
        return raw
    usage = getattr(step, "token_usage", None)
    fits = usage is not None and replies[place].prompt_tokens == usage.input_tokens
    return replies[place] if fits else None


def _answer(step: Any) -> str | None:
    answer = getattr(step, "action_output", None)
    if _is_limit(step):
        return _content(answer)
    if not getattr(step, "is_final_answer", False):
        return None
    if answer is None and getattr(step, "code_action", None) is None:
        return step.observations  # of a ToolCallingAgent: what its final_answer returned
    return as_text(answer)


def _is_limit(step: Any) -> bool:
    return type(getattr(step, "error", None)).__name__ == LIMIT


def _stop_reason(step: Any) -> str:
    if _is_limit(step):
        return "max_steps"
    return "answer" if getattr(step, "is_final_answer", False) else "unfinished"


def _model(agent: Any, steps: Sequence[Any]) -> str:
    replies = [getattr(getattr(s, "model_output_message", None), "raw", None) for s in steps]
    named = [reply.model for reply in replies if hasattr(reply, "model")]
    return named[-1] if named else str(getattr(agent.model, "model_id", None) or "")


def _prompt_text(tool: Any, system: str) -> str:
    """How the system prompt describes a tool, if it is in there word for word."""
    for name in ("to_code_prompt", "to_tool_calling_prompt"):
        if hasattr(tool, name) and (text := getattr(tool, name)()) in system:
            return text
    return ""
