"""The sandbox as an executor of smolagents; observations read as those of its local executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor
from smolagents.utils import BASE_BUILTIN_MODULES

from course_utils.sandbox.box import Sandbox, checked_variables
from course_utils.sandbox.execution import Execution


class SandboxExecutor(PythonExecutor):
    """Runs the steps of a CodeAgent in a Sandbox, and keeps them in `history`.

    One executor serves one agent. A failed step raises InterpreterError, which the agent shows
    to the model; what was printed before is in `state`, where smolagents looks for it.
    """

    def __init__(
        self,
        call: Callable[[str, list[Any], dict[str, Any]], Any] | None,
        additional_authorized_imports: Iterable[str] = (),
        **limits: Any,
    ) -> None:
        imports = [*BASE_BUILTIN_MODULES, *additional_authorized_imports]
        self.sandbox = Sandbox(call, imports=imports, **limits)
        self.history: list[Execution] = []
        self.state: dict[str, Any] = {"_print_outputs": ""}
        self._variables: dict[str, Any] = {}
        self._final_answer: Callable[..., Any] = lambda answer: answer

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Offer these tools (and managed agents) to the programs, and nothing else."""
        self._final_answer = tools.get("final_answer", self._final_answer)
        self.sandbox.offer(tool for name, tool in tools.items() if name != "final_answer")

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Put plain data in reach of the next program; it stays with the worker's state."""
        self._variables |= checked_variables(variables)

    def __call__(self, code_action: str) -> CodeOutput:
        """Run one step. Raises InterpreterError with the line that failed."""
        done = self.sandbox.run(code_action, self._variables)
        self._variables = {}
        self.history.append(done)
        self.state["_print_outputs"] = done.logs
        if done.error is not None:
            raise InterpreterError(done.error)
        output = self._final_answer(done.output) if done.is_final_answer else done.output
        return CodeOutput(output=output, logs=done.logs, is_final_answer=done.is_final_answer)

    def close(self) -> None:
        """End the worker."""
        self.sandbox.close()

    cleanup = close  # the name by which agents call it
