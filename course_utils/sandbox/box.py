"""The sandbox as the host sees it: one warm worker, asked to run one program after another."""

from __future__ import annotations

import copy
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from course_utils.errors import CourseError
from course_utils.sandbox import variants
from course_utils.sandbox.execution import Execution, HostCall, Offer, offers
from course_utils.sandbox.worker import Worker, WorkerEnded, read_json

MAX_RESULT = 1_000_000  # characters of a tool's result as JSON
MAX_ERROR = 10_000  # characters of an error, of the program or of a tool
LOST = "The sandbox starts anew: variables and functions of earlier steps are gone."


class Sandbox:
    """A place for programs that nobody has read: no files, no network, limits on everything.

    `call(name, args, kwargs)` runs a tool on the host and returns plain data; validation and
    approval belong there. Without it the tools themselves are called. `tools` are the only names
    that programs can call; `imports` the only modules they can import. `seconds` is the time of
    the program alone, without what tools (or people who approve) take; `memory_mb` its memory,
    `output_chars` how much of its prints is kept, `max_calls` the tool calls of one step.
    `variant` is "deno", "bubblewrap", or None for the first that runs here.

    Raises SandboxUnavailable if none does. The worker starts with the first `run` (seconds) and
    stays; variables and functions stay with it, and whatever else a program changed in there: of
    an Execution, only `calls` is the host's own record. `random` begins with the same seed in
    each worker, so that runs can be repeated.

    >>> with Sandbox() as sandbox:  # doctest: +SKIP
    ...     sandbox.run("6 * 7").output
    42
    """

    def __init__(
        self,
        call: Callable[[str, list[Any], dict[str, Any]], Any] | None = None,
        *,
        tools: Iterable[Any] = (),
        imports: Iterable[str] = (),
        seconds: float = 10,
        memory_mb: int = 512,
        output_chars: int = 20_000,
        max_calls: int = 100,
        variant: str | None = None,
    ) -> None:
        for name, value in {
            "seconds": seconds,
            "memory_mb": memory_mb,
            "max_calls": max_calls,
            "output_chars": output_chars,
        }.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise CourseError(f"{name} has to be a number above 0, not {value!r}.")
        self.call = call
        self.imports = variants.checked_imports(imports)
        self.seconds, self.memory_mb = seconds, memory_mb
        self.output_chars, self.max_calls = int(output_chars), max_calls
        self.variant = variants.choose(variant)
        self._worker: Worker | None = None
        self._busy = threading.Lock()
        self._steps = 0
        self.offered: dict[str, Offer] = {}
        self._withdrawn: set[str] = set()
        self.offer(tools)

    def offer(self, tools: Iterable[Any]) -> None:
        """Replace the tools that programs may call."""
        offered = offers(tools)
        silent = [name for name, each in offered.items() if each.function is None]
        if self.call is None and silent:
            raise CourseError(
                f"Nothing says how to run {', '.join(silent)}: give Sandbox a `call`, or tools "
                "that are functions."
            )
        self._withdrawn |= set(self.offered) - set(offered)
        self.offered = offered

    def run(self, code: str, variables: dict[str, Any] | None = None) -> Execution:
        """Run a program and wait for it; never raises for what the program does.

        `variables` are plain data, put beside what earlier steps left.
        """
        variables = checked_variables(variables or {})
        if not self._busy.acquire(blocking=False):
            raise CourseError("A program is running in this sandbox; no tool can start another.")
        try:
            return self._run(code, variables)
        finally:
            self._busy.release()

    def _run(self, code: str, variables: dict[str, Any]) -> Execution:
        self._steps += 1
        request = {"step": self._steps, "code": code, "variables": variables}
        request |= {"tools": list(self.offered), "imports": self.imports}
        request["withdrawn"] = sorted(self._withdrawn - set(self.offered))
        self._withdrawn = set()
        return _Step(self, code, self._ready_worker()).run(request)

    def close(self) -> None:
        """End the worker; the next `run` would start another."""
        if self._worker is not None:
            self._end()
            self._worker = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready_worker(self) -> Worker:
        if self._worker is not None and not self._worker.idle():
            self.close()  # it ended, or spoke, while no program was running
        if self._worker is None:
            command, setup = variants.prepare(self.variant, self.memory_mb)
            setup |= {"output_chars": self.output_chars}
            self._worker = Worker(command, setup)
            self._end = weakref.finalize(self, self._worker.kill)  # a cell run again drops it
        return self._worker


class _Step:
    """One program in one worker: reads messages until the program is done or stopped."""

    def __init__(self, sandbox: Sandbox, code: str, worker: Worker) -> None:
        self.sandbox, self.code, self.worker = sandbox, code, worker
        self.logs: list[str] = []
        self.printed = 0
        self.full = False
        self.calls: list[HostCall] = []
        self.deadline = time.monotonic() + sandbox.seconds

    def run(self, request: dict[str, Any]) -> Execution:
        try:
            self.worker.send(request, self.left())
            while (result := self.next_message()) is None:
                pass
            self.worker.pause()
            return self.execution(result["output"], result["error"], result["is_final"])
        except TimeoutError:
            limit = f"{self.sandbox.seconds:g} s"
            error = f"The program was stopped after {limit}, its time limit. {LOST}"
        except WorkerEnded as ended:
            error = f"The program was stopped: {ended}. {LOST}"
        except BaseException:  # Ctrl-C, or an error of the call handler itself
            self.sandbox.close()
            raise
        self.sandbox.close()
        return self.execution(None, error, False)

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def next_message(self) -> dict[str, Any] | None:
        """Take one message; the result if it was the last one."""
        kind, value = self.worker.receive(self.left())
        if kind == "done":
            return read_result(value)
        if kind == "print":
            self.printed += len(value)
            if self.full or self.printed > self.sandbox.output_chars:
                raise WorkerEnded("it printed more than its limit")
            if value:
                self.logs.append(value)
        elif kind == "full" and not self.full:
            self.full = True
            self.logs.append(
                "\n..._This content has been truncated to stay below "
                f"{self.sandbox.output_chars} characters_...\n"
            )
        elif kind == "call":
            self.worker.send(self.answer(read_json(value)), self.left())
        elif kind == "broken":
            raise WorkerEnded(f"it broke the sandbox's Python ({value})")
        else:
            raise WorkerEnded("it spoke out of turn")
        return None

    def answer(self, call: Any) -> dict[str, Any]:
        """Run one tool for the program, write it down, and say what goes back."""
        match call:
            case {"name": str(name), "args": list(args), "kwargs": dict(kwargs)}:
                pass
            case _:
                raise WorkerEnded("it asked for a call that is none")
        tool = self.sandbox.offered.get(name)
        if tool is None:
            raise WorkerEnded(f"it asked for {name!r:.80}, which is no tool that it was offered")
        if len(self.calls) >= self.sandbox.max_calls:
            limit = self.sandbox.max_calls
            return {"error": f"{name} was not called: {limit} calls are the limit of one step."}
        arguments = copy.deepcopy(tool.bind(args, kwargs))  # as asked, whatever the tool does
        try:
            result = self.handle(tool, args, kwargs)
            text = json.dumps(result, allow_nan=False)
            if len(text) > MAX_RESULT:
                raise ValueError(f"the result is longer than {MAX_RESULT} characters")
        except Exception as error:  # whatever a tool raises is news for the program
            problem = f"{type(error).__name__}: {error}"[:MAX_ERROR]
            self.calls.append(HostCall(name, arguments, problem, False))
            return {"error": f"{name} failed: {problem}"}
        value = json.loads(text)  # as the program gets it, whatever becomes of the tool's object
        self.calls.append(HostCall(name, arguments, value, True))
        return {"value": value}

    def handle(self, tool: Offer, args: list[Any], kwargs: dict[str, Any]) -> Any:
        began = time.monotonic()
        try:
            if self.sandbox.call is not None:
                return self.sandbox.call(tool.name, args, kwargs)
            return tool.function(*args, **kwargs)
        finally:
            self.deadline += time.monotonic() - began  # a tool's time is not the program's

    def execution(self, output: Any, error: str | None, is_final: bool) -> Execution:
        logs = "".join(self.logs)
        error = error and error[:MAX_ERROR]
        return Execution(self.code, output, logs, error, is_final, tuple(self.calls))


def read_result(text: str) -> dict[str, Any]:
    """The result of a program, if it has the shape of one."""
    result = read_json(text)
    match result:
        case {"output": _, "error": str() | None, "is_final": bool()}:
            return result
    raise WorkerEnded("its result has the wrong shape")


def checked_variables(variables: dict[str, Any]) -> dict[str, Any]:
    """The variables, if each is plain data. Raises CourseError naming one that is not."""
    for name, value in variables.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise CourseError(f"{name!r} is no name for a variable.")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise CourseError(
                f"The variable {name!r} cannot go into the sandbox, which takes plain JSON data: "
                f"{error}."
            ) from error
    return variables
