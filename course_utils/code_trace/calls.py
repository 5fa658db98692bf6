"""Which tools a step called: from the sandbox's record, from the code, or from the reply."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from typing import Any

from course_utils.code_trace.run import FINAL, Call


def executions(agent: Any, steps: Sequence[Any]) -> dict[int, Any]:
    """Place of a step -> what the sandbox recorded of its code: the history's last ones."""
    executor = getattr(agent, "python_executor", None)
    history = list(getattr(executor, "history", None) or ())
    found = {}
    for place in reversed(range(len(steps))):
        code = getattr(steps[place], "code_action", None)
        if code is not None and history and history[-1].code == code:
            found[place] = history.pop()
    return found


def calls_of(
    step: Any, code: str | None, ran: Any, ok: bool, tools: dict[str, tuple[str, ...]]
) -> Iterator[Call]:
    """The calls of a step. `ran` is the sandbox's record of it, `ok` whether the step had no error,
    `tools` the parameter names of each tool."""
    if ran is not None:
        made = [Call(c.name, _plain(c.arguments), as_text(c.result), c.ok) for c in ran.calls]
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


def written_calls(code: str, tools: dict[str, tuple[str, ...]]) -> list[tuple[str, dict[str, Any]]]:
    """(tool, arguments that are written out) of each call of a tool in a program, in its order.

    `tools` are the parameter names of each; what is computed stays an expression in text.

    >>> written_calls('r = search("Paris", top=n)', {"search": ("query",)})
    [('search', {'query': 'Paris', 'top': 'n'})]
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
    return [(node.func.id, _written_arguments(node, tools[node.func.id])) for node in nodes]


def _written_arguments(node: ast.Call, names: tuple[str, ...]) -> dict[str, Any]:
    placed = {
        names[place] if place < len(names) else str(place): _literal(value)
        for place, value in enumerate(node.args)
    }
    return placed | {word.arg or "**": _literal(word.value) for word in node.keywords}


def _literal(node: ast.AST) -> Any:
    try:
        return _value(ast.literal_eval(node))
    except (ValueError, TypeError):
        return ast.unparse(node)


def as_text(value: Any) -> str:
    """Any value as text: a text as it is, anything else as JSON, or as it shows itself."""
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
        return {"0": _value(arguments)}
    return {str(name): _value(value) for name, value in arguments.items()}


def _value(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        return str(value)
