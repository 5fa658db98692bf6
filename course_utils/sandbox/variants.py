"""The two places where programs can run, and how each is started.

`deno`        Python compiled to WebAssembly (Pyodide) in Deno, with no permission at all;
              Linux, macOS and Windows. The set-up installs it.
`bubblewrap`  the system's own Python in namespaces of its own; Linux with the program bwrap.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError

NAMES = ("deno", "bubblewrap")  # in the order in which they are chosen
INSIDE = Path(__file__).parent / "inside"


class SandboxUnavailable(CourseError):
    """Model-written code cannot run here, and does not; the message says what to type."""


@dataclass(frozen=True)
class Command:
    """What to start.

    `data_mb` caps the process's memory from outside, where that is possible. `pid_pipe` is a pipe
    (its two ends) in which the number of the process that runs programs will stand.
    """

    arguments: list[str]
    environment: dict[str, str]
    data_mb: int | None = None
    pid_pipe: tuple[int, int] | None = None


def module_of(name: str) -> Any:
    """The module of a variant: with `problem()`, `command(memory_mb)`, `setup(memory_mb)`."""
    from course_utils.sandbox import bubblewrap, deno

    if name not in NAMES:
        raise CourseError(f"No sandbox is called {name!r}. There are: {', '.join(NAMES)}.")
    return {"deno": deno, "bubblewrap": bubblewrap}[name]


def problem_of(name: str) -> str | None:
    """Why a variant cannot run here, in a few words; None if it can."""
    return module_of(name).problem()


def choose(wanted: str | None) -> str:
    """The variant to use. Raises SandboxUnavailable if it, or any, cannot run here."""
    problems = {}
    for name in [wanted] if wanted else NAMES:
        problem = problem_of(name)
        if problem is None:
            return name
        problems[name] = problem
    reasons = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
    raise SandboxUnavailable(
        f"Model-written code runs in a sandbox only, and none can be used here ({reasons}). "
        "Type: python -m course_utils sandbox"
    )


def prepare(name: str, memory_mb: int) -> tuple[Command, dict[str, Any]]:
    """What to start for a variant, and the first request it gets."""
    module = module_of(name)
    runner = (INSIDE / "runner.py").read_text(encoding="utf-8")
    return module.command(memory_mb), {"runner": runner} | module.setup(memory_mb)


def checked_imports(imports: Iterable[str]) -> list[str]:
    """Names of modules that a program may import; those of the standard library are there.

    Raises CourseError for a module that no sandbox has.
    """
    if isinstance(imports, str):
        raise CourseError(f"imports has to be a list of module names, not {imports!r}.")
    names = sorted(set(imports))
    known = sys.stdlib_module_names | {"*"}
    foreign = [name for name in names if name.split(".")[0] not in known]
    if foreign:
        raise CourseError(
            f"The sandbox has Python's own modules only; it cannot offer {', '.join(foreign)}."
        )
    return names
