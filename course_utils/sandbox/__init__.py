"""Where model-written Python runs: outside the notebook's process, with nothing in reach.

    from course_utils.sandbox import Sandbox

    with Sandbox(tools=[search]) as sandbox:
        done = sandbox.run("for city in cities: print(search(city))", {"cities": ["Paris"]})
    done.logs, done.calls

Read in this order: execution, box (the host's side), worker (the process and its lines),
variants, deno, bubblewrap (how it is started), then inside/ (what runs there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from course_utils.sandbox.box import Sandbox
from course_utils.sandbox.execution import Execution, HostCall
from course_utils.sandbox.variants import SandboxUnavailable

if TYPE_CHECKING:
    from course_utils.sandbox.smolagents_executor import SandboxExecutor

__all__ = ["Execution", "HostCall", "Sandbox", "SandboxUnavailable", "sandbox_executor"]


def sandbox_executor(
    call: Callable[[str, list[Any], dict[str, Any]], Any] | None = None,
    *,
    additional_authorized_imports: tuple[str, ...] | list[str] = (),
    **limits: Any,
) -> SandboxExecutor:
    """A sandbox in the shape that smolagents wants: `CodeAgent(tools, model, executor=…)`.

    `call` and `limits` are those of Sandbox. Programs may import what smolagents allows by
    itself, and `additional_authorized_imports`. Raises SandboxUnavailable where none can run.

    >>> agent = CodeAgent([search], model, executor=sandbox_executor())  # doctest: +SKIP
    """
    from course_utils.sandbox.smolagents_executor import SandboxExecutor

    return SandboxExecutor(call, additional_authorized_imports, **limits)
