"""What a program left behind: its word for it, and the host's record of its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from course_utils.errors import CourseError


@dataclass(frozen=True, repr=False)
class HostCall:
    """A tool that the host ran because a program asked for it, written down by the host.

    `arguments` are by parameter name where the names are known (else "0", "1", … by position).
    `result` is what the tool gave back, or the text of the error if not `ok`.
    """

    name: str
    arguments: dict[str, Any]
    result: Any
    ok: bool

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={short(value, 200)}" for key, value in self.arguments.items())
        return (
            f"{self.name}({arguments}) {'->' if self.ok else 'failed:'} {short(self.result, 200)}"
        )


@dataclass(frozen=True, repr=False)
class Execution:
    """One step: the program's own account of itself, and in `calls` what it really asked for.

    `output` is the value of the last line (plain data as it is, anything else as text), or the
    final answer; `logs` what was printed; `error` one line, or None.
    """

    code: str
    output: Any
    logs: str
    error: str | None
    is_final_answer: bool
    calls: tuple[HostCall, ...]

    def __repr__(self) -> str:
        parts = [self.logs.rstrip("\n")] if self.logs else []
        parts += [repr(call) for call in self.calls]
        if self.error is not None:
            parts.append(self.error)
        else:
            kind = "final answer" if self.is_final_answer else "output"
            parts.append(f"{kind}: {short(self.output, 2000)}")
        return "\n".join(parts)


def short(value: Any, most: int) -> str:
    """The repr of a value, cut after `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True)
class Offer:
    """A tool that programs may call: its name, its parameters in order if known, the function."""

    name: str
    parameters: tuple[str, ...] | None
    function: Callable[..., Any] | None

    def bind(self, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, for the record."""
        names = self.parameters or ()
        named = {names[n] if n < len(names) else str(n): value for n, value in enumerate(args)}
        for name, value in kwargs.items():
            while name in named:  # no such call succeeds, or the name is free: show both
                name += "="
            named[name] = value
        return named


def offers(tools: Iterable[Any]) -> dict[str, Offer]:
    """What programs may call, by name: from names, functions, and tools of any kind.

    A tool is anything with a `name` and either `parameters` (a JSON schema) or `inputs` (as in
    smolagents). Raises CourseError for what is none of these, and for names that occur twice.

    >>> offers(["search"])["search"].parameters is None
    True
    """
    found: dict[str, Offer] = {}
    for tool in tools:
        one = offer(tool)
        if not one.name.isidentifier():
            raise CourseError(f"{one.name!r} cannot be called from Python; rename the tool.")
        if one.name in found or one.name == "final_answer":
            raise CourseError(f"The name {one.name!r} is taken; each tool needs its own.")
        found[one.name] = one
    return found


def offer(tool: Any) -> Offer:
    """One tool as an offer; see `offers`."""
    if isinstance(tool, str):
        return Offer(tool, None, None)
    function = tool if callable(tool) else None
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(name, str):
        raise CourseError(f"{tool!r} is no tool: it has no name.")
    inputs = getattr(tool, "inputs", None)
    schema = getattr(tool, "parameters", None)
    if isinstance(inputs, dict):
        return Offer(name, tuple(inputs), function)
    if isinstance(schema, dict):
        return Offer(name, tuple(schema.get("properties", {})), function)
    return Offer(name, parameters_of(function), function)


def parameters_of(function: Callable[..., Any] | None) -> tuple[str, ...] | None:
    """The names of the parameters that a function takes by position, if it says them."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(each.name for each in parameters if each.kind in by_position)
    except (TypeError, ValueError):
        return None
