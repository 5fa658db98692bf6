"""Reading a finished smolagents agent. Nothing of smolagents is imported: its objects are read.

smolagents keeps a run in `agent.memory.steps`; which tools a program called and what they returned
is not in there. A sandbox of this course keeps that in `executor.history`. Without it (smolagents'
local executor) the calls are read from the code, with the arguments that are written out in it,
and their results are unknown.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from course_utils.code_trace.run import FINAL, Call, CodeRun, CodeStep
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
    read = _steps(agent, last, [*steps[: starts[-1] + 1]], set(tools))
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
    agent: Any, steps: Sequence[Any], earlier: list[Any], tools: set[str]
) -> Iterator[CodeStep]:
    ran = _executions(agent, steps)
    before: list[Message] = []
    numbers = iter(range(1, len(steps) + 1))
    for place, step in enumerate(steps):
        prompt = _messages(getattr(step, "model_input_messages", None) or ())
        if _is_limit(step):
            prompt = _last_prompt(agent, [*earlier, *steps[:place]])
        same = _common(before, prompt)
        before = prompt or before
        # A plan has no number of its own; it belongs to the action after it.
        number = getattr(step, "step_number", None) or next(numbers)
        read = CodeStep(number, added=tuple(prompt[same:]), reread=same)
        yield _filled(read, step, ran.get(place), tools, agent)


def _filled(read: CodeStep, step: Any, ran: Any, tools: set[str], agent: Any) -> CodeStep:
    reply = getattr(getattr(step, "model_output_message", None), "raw", None)
    usage = getattr(step, "token_usage", None)
    error, limit = getattr(step, "error", None), _is_limit(step)
    plan = getattr(step, "plan", None)
    text = plan if plan is not None else getattr(step, "model_output", None) or ""
    if limit:
        text, reply = _answer(step) or "", _last_reply(agent, usage)
    observed = getattr(step, "observations", None) or getattr(ran, "logs", None) or ""
    code = getattr(step, "code_action", None)
    return replace(
        read,
        kind="forced" if limit else "action" if plan is None else "plan",
        text=text if isinstance(text, str) else _text(text),
        code=code,
        calls=tuple(_calls(step, code, ran, error is None, tools)),
        observation=observed,
        error="" if error is None or limit else str(getattr(error, "message", error)),
        tokens_in=getattr(usage, "input_tokens", 0),
        tokens_out=getattr(usage, "output_tokens", 0),
        cached=getattr(reply, "cached_tokens", 0),
        origin=getattr(reply, "origin", ""),
        is_final=limit or bool(getattr(step, "is_final_answer", False)),
    )


# -- calls ---------------------------------------------------------------------------------------


def _executions(agent: Any, steps: Sequence[Any]) -> dict[int, Any]:
    """Place of a step -> what the sandbox recorded of its code: the history's last ones."""
    executor = getattr(agent, "python_executor", None)
    history = list(getattr(executor, "history", None) or ())
    found = {}
    for place in reversed(range(len(steps))):
        code = getattr(steps[place], "code_action", None)
        if code is not None and history and history[-1].code == code:
            found[place] = history.pop()
    return found


def _calls(step: Any, code: str | None, ran: Any, ok: bool, tools: set[str]) -> Iterator[Call]:
    if ran is not None:
        made = [Call(c.name, _plain(c.arguments), _text(c.result), c.ok) for c in ran.calls]
    elif code is not None:
        made = [Call(name, arguments, None, ok) for name, arguments in written_calls(code, tools)]
    else:
        made = list(_direct_calls(step, ok))
    return (call for call in made if call.name != FINAL)


def _direct_calls(step: Any, ok: bool) -> Iterator[Call]:
    """The calls of a ToolCallingAgent. It joins all observations of a step by line breaks."""
    message = getattr(step, "model_output_message", None)
    asked = getattr(step, "tool_calls", None) or getattr(message, "tool_calls", None) or ()
    seen = getattr(step, "observations", None)
    lines = (seen or "").split("\n")
    error = str(getattr(step, "error", "") or "")
    for place, call in enumerate(asked):
        call = getattr(call, "function", call)
        one = seen if len(asked) == 1 or len(lines) != len(asked) else lines[place]
        yield Call(call.name, _plain(call.arguments), one if ok else error, ok)


def written_calls(code: str, tools: set[str]) -> list[tuple[str, dict[str, Any]]]:
    """(tool, arguments that are written out) of each call of a tool in a program, in its order.

    Arguments by place get the names "1", "2", …; what is computed stays an expression in text.

    >>> written_calls('r = search("Paris", top=n)', {"search"})
    [('search', {'1': 'Paris', 'top': 'n'})]
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return []
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in tools
    ]
    nodes.sort(key=lambda node: (node.end_lineno, node.end_col_offset))
    return [
        (
            node.func.id,
            {str(place): _literal(value) for place, value in enumerate(node.args, 1)}
            | {word.arg or "**": _literal(word.value) for word in node.keywords},
        )
        for node in nodes
    ]


def _literal(node: ast.AST) -> Any:
    try:
        return _value(ast.literal_eval(node))
    except (ValueError, TypeError):
        return ast.unparse(node)


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


def _common(before: list[Message], now: list[Message]) -> int:
    same = 0
    while same < min(len(before), len(now)) and before[same] == now[same]:
        same += 1
    return same


def _last_prompt(agent: Any, earlier: list[Any]) -> list[Message]:
    """The prompt of the answer at the step limit: smolagents does not keep it, so it is built as
    `MultiStepAgent.provide_final_answer` builds it (smolagents 1.26)."""
    from jinja2 import Template

    texts = agent.prompt_templates["final_answer"]
    asked = Template(texts["post_messages"]).render(task=agent.task)
    seen = [message for step in earlier for message in step.to_messages()]
    first = Message("system", texts["pre_messages"])
    return [first, *_messages(seen), Message("user", asked)]


def _last_reply(agent: Any, usage: Any) -> Any:
    """smolagents drops that answer's message; a model that keeps its replies still has it."""
    replies = getattr(agent.model, "replies", None) or [None]
    last = replies[-1]
    fits = usage is not None and getattr(last, "prompt_tokens", None) == usage.input_tokens
    return last if fits else None


def _answer(step: Any) -> str | None:
    answer = getattr(step, "action_output", None)
    if _is_limit(step):
        return _content(answer)
    if not getattr(step, "is_final_answer", False):
        return None
    if answer is None and getattr(step, "code_action", None) is None:
        return step.observations  # of a ToolCallingAgent: what its final_answer returned
    return _text(answer)


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


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)  # also of a subclass that carries more
    if value is None:
        return "None"
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def _plain(arguments: Any) -> dict[str, Any]:
    """Arguments as JSON can keep them."""
    if not isinstance(arguments, dict):
        return {"1": _value(arguments)}
    return {str(name): _value(value) for name, value in arguments.items()}


def _value(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        return str(value)
