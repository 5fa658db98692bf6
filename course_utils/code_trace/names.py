"""Names that model-written code uses although nothing has defined them: invented tools."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass

from course_utils.code_trace.run import FINAL, CodeRun

BUILTINS = set(dir(builtins))
# How Python, smolagents' own interpreter and its ToolCallingAgent say that a name is unknown.
UNKNOWN = re.compile(
    r"name '(\w+)' is not defined"
    r"|Forbidden function evaluation: '(\w+)'"
    r"|The variable `(\w+)` is not defined"
    r"|Unknown tool '?(\w+)'?"
)


@dataclass(frozen=True)
class Invented:
    """A name that does not exist. `failed` tells whether the code got as far as to use it."""

    step: int
    name: str
    failed: bool


def invented_names(run: CodeRun) -> list[Invented]:
    """The functions that a run calls although nobody offered or defined them, each once a step.

    From the syntax tree of the code, and from the errors that name an unknown name. What one step
    defines, later steps may use. Code that does not parse is left to the errors.

    >>> from course_utils.code_trace.run import CodeStep
    >>> run = CodeRun("Weather?", {"search": ""}, (CodeStep(1, code="weather_api('Paris')"),))
    >>> invented_names(run)
    [Invented(step=1, name='weather_api', failed=False)]
    """
    known = BUILTINS | set(run.tools) | set(run.given) | {FINAL}
    found = []
    for step in run.steps:
        called, defined = names_in(step.code or "")
        known |= defined
        failed = [next(filter(None, match.groups())) for match in UNKNOWN.finditer(step.error)]
        wanted = [*called, *(call.name for call in step.calls), *failed]
        found += [
            Invented(step.number, name, name in failed)
            for name in dict.fromkeys(wanted)
            if name in failed or name not in known
        ]
    return found


def names_in(code: str) -> tuple[list[str], set[str]]:
    """(names that are called, names that are defined) in a program; nothing if it does not parse.

    >>> names_in("x = f(g(1))")
    (['f', 'g'], {'x'})
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return [], set()
    called, defined = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.append(node.func.id)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            defined.add(node.name)
    return list(dict.fromkeys(called)), defined
