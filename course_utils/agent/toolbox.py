"""The tools of one run: checking a call, running it, and turning what comes of it into data."""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from course_utils.agent.limits import Limits
from course_utils.agent.worker import Worker
from course_utils.approval import canonical
from course_utils.errors import CourseError
from course_utils.messages import ToolCall
from course_utils.retry import (
    RetryPolicy,
    call_with_retry,
    error_code,
    is_transient,
    retry_after,
    status_of,
)
from course_utils.tools import Tool, by_name, content, failure, reason
from course_utils.trace import Attempt

KEY = "idempotency_key"


@dataclass(frozen=True)
class Ready:
    """A call that has been checked; `values` are its arguments as the function wants them."""

    call: ToolCall
    tool: Tool
    values: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of running a tool; `happened` (yes, no, unknown) is about the world."""

    content: str
    ok: bool
    happened: str
    attempts: tuple[Attempt, ...] = ()


class Toolbox:
    """Tools by name, as the model is offered them and as they are run.

    A tool with a parameter `idempotency_key` gets it from the loop; the model is not shown it.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        limits: Limits,
        retry: RetryPolicy,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tools = by_name(tools)
        self._limits, self._retry, self._sleep = limits, retry, sleep
        self._worker = Worker()
        self._keyed = {name for name, tool in self._tools.items() if _takes_key(tool)}
        self.offered = [
            _without_key(tool) if name in self._keyed else tool
            for name, tool in self._tools.items()
        ]
        self._offered = {tool.name: tool for tool in self.offered}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._tools)

    def prepare(self, call: ToolCall) -> Ready | str:
        """A call that can be run, or the result of one that cannot.

        >>> Toolbox([], Limits(), RetryPolicy()).prepare(ToolCall("call_1", "now", {}))[:38]
        '{"ok": false, "error": "unknown_tool",'
        """
        tool = self._offered.get(call.name)
        if tool is None:
            known = f"the available tools are {', '.join(self.names)}" if self.names else None
            hint = f"There is no tool {str(call.name)[:60]!r}; {known or 'none are available'}."
            return failure(call, "unknown_tool", hint).content
        if tool.function is None:
            return failure(call, "no_function", f"{call.name!r} is only a description.").content
        values, problems = tool.prepared(call.arguments)
        if problems:
            return failure(call, "invalid_arguments", " ".join(map(str, problems))).content
        return Ready(call, tool, values)

    def key(self, run_id: str, call: ToolCall) -> str | None:
        """The idempotency key of a call, if its tool takes one.

        It is made from the run, the tool and the arguments: the same write of the same run has the
        same key however often it is retried, resumed or repeated.
        """
        if call.name not in self._keyed:
            return None
        text = f"{run_id}\n{call.name}\n{canonical(call.arguments)}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def run(
        self,
        ready: Ready,
        key: str | None = None,
        time_left: Callable[[], float] = lambda: float("inf"),
    ) -> Outcome:
        """Run a call: with its time limit, and again if that is safe and can help."""
        call, tool = ready.call, ready.tool
        values = ready.values if key is None else {**ready.values, KEY: key}
        failed: list[Attempt] = []
        limited, began = self._limits.tool_seconds, time.monotonic()

        def left() -> float:  # of the time of the call, and of the run
            spent = time.monotonic() - began if limited is not None else 0.0
            return min((limited or float("inf")) - spent, time_left())

        def once() -> Any:
            seconds = None if limited is None else max(0.0, left())
            return self._worker.call(lambda: tool.function(**values), seconds)

        # A write without a key is tried again only if it was surely refused the first time.
        safe = tool.effect == "read" or key is not None
        again = is_transient if safe else _refused_for_now
        try:
            value = call_with_retry(
                once, self._retry, sleep=self._sleep, failed=failed, time_left=left, when=again
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit: a tool must not end the program
            return self._failure(call, tool, error, tuple(failed))
        return self._success(call, tool, value, tuple(failed))

    def close(self) -> None:
        """Let the worker thread end."""
        self._worker.close()

    def _success(
        self, call: ToolCall, tool: Tool, value: Any, failed: tuple[Attempt, ...]
    ) -> Outcome:
        happened = "" if tool.effect == "read" else "yes"
        try:
            text = content(value)
        except CourseError as error:
            text = failure(call, "unreadable_result", str(error)).content
            return Outcome(text, False, happened, failed)
        longest = self._limits.max_result_chars
        if longest is not None and len(text) > longest:
            hint = (
                f"The call ran, but its result has {len(text):,} characters and at most "
                f"{longest:,} are passed on. Ask for less. It begins: {text[: longest // 4]}"
            )
            text = failure(call, "result_too_large", hint).content
            return Outcome(text, False, happened, failed)
        return Outcome(text, True, happened, failed)

    def _failure(
        self, call: ToolCall, tool: Tool, error: BaseException, failed: tuple[Attempt, ...]
    ) -> Outcome:
        hint = reason(error)[: self._limits.max_result_chars]
        happened = ""
        if tool.effect != "read":
            happened = "no" if _refused(error) else "unknown"
        if happened == "unknown":
            hint += " It is not known whether the call took effect."
        if is_transient(error):
            # The last try counts as well: the timeline of a trace shows all of them.
            failed = (*failed, Attempt(error_code(error), 0.0))
        return Outcome(failure(call, error_code(error), hint).content, False, happened, failed)


def _refused_for_now(error: BaseException) -> bool:
    return status_of(error) == 429 or (retry_after(error) is not None and is_transient(error))


def _refused(error: BaseException) -> bool:
    """Whether an error says that nothing was done: the course's refusals, bad values, 4xx."""
    if isinstance(error, TimeoutError | ChildProcessError):
        return False
    if is_transient(error):
        return _refused_for_now(error)
    status = status_of(error)
    return isinstance(error, CourseError | ValueError) or 400 <= (status or 0) < 500


def _takes_key(tool: Tool) -> bool:
    try:
        return KEY in inspect.signature(tool.function).parameters
    except (TypeError, ValueError):  # no function, or one that does not tell
        return False


def _without_key(tool: Tool) -> Tool:
    """The tool as the model sees it: its key is the loop's business."""
    parameters = copy.deepcopy(tool.parameters)
    parameters.get("properties", {}).pop(KEY, None)
    parameters["required"] = [name for name in parameters.get("required", []) if name != KEY]
    signature = inspect.signature(tool.function)
    others = [each for name, each in signature.parameters.items() if name != KEY]

    @functools.wraps(tool.function)
    def function(**values: Any) -> Any:
        return tool.function(**values)

    function.__signature__ = signature.replace(parameters=others)
    return replace(tool, parameters=parameters, function=function)
