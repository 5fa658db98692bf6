"""Tools: what a model may ask for, and what the program does when it asks.

A tool is a Python function plus what a model has to know about it: name, description and the JSON
schema of its arguments. pydantic makes the schema from a typed, documented function (why pydantic:
it can express every annotation, and it turns the JSON values of a call back into the same types,
so schema and conversion agree; see `schemas`). jsonschema checks arguments against any schema,
made or written by hand. Whatever a model gets wrong comes back to it as data, never as a crash.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from course_utils import arguments as checks
from course_utils import schemas
from course_utils.arguments import ArgumentProblem
from course_utils.errors import CourseError
from course_utils.messages import ToolCall, ToolResult

EFFECTS = ("read", "reversible", "irreversible")
NAME = re.compile(r"[\w.:/-]{1,128}")


class ArgumentsError(CourseError):
    """Arguments that do not fit a tool; `problems` lists what is wrong."""

    def __init__(self, name: str, problems: list[ArgumentProblem]) -> None:
        super().__init__(f"The arguments do not fit {name!r}. {' '.join(map(str, problems))}")
        self.problems = problems


class ResultError(CourseError):
    """A tool returned something that cannot be written as JSON."""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.

    `parameters` is a JSON schema of type object. `effect` says what a call does to the world:
    read, reversible or irreversible. `open_world` says that it can carry data out, which even a
    reading tool may do (fetching an address tells its owner something).

    >>> Tool("now", "Tell the time.", None, lambda: "12:00").run({})
    '12:00'
    """

    name: str
    description: str
    parameters: dict[str, Any] | None
    function: Callable[..., Any] | None
    effect: str = "read"
    open_world: bool = False
    # Made once from the fields above, because every call needs them.
    _validator: Any = field(default=None, init=False, repr=False, compare=False)
    _signature: Any = field(default=None, init=False, repr=False, compare=False)
    _types: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise CourseError(
                f"A tool's name has letters, digits and . _ - : / but no spaces: not {self.name!r}."
            )
        if not isinstance(self.description, str) or not self.description.strip():
            raise CourseError(f"Tool {self.name!r} has no description: say what it does.")
        if self.effect not in EFFECTS:
            raise CourseError(
                f"The effect of tool {self.name!r} must be one of {', '.join(EFFECTS)}, "
                f"not {self.effect!r}."
            )
        if not isinstance(self.open_world, bool):
            raise CourseError(f"open_world of tool {self.name!r} must be True or False.")
        if self.function is not None and not callable(self.function):
            raise CourseError(f"The function of tool {self.name!r} cannot be called.")
        if inspect.iscoroutinefunction(self.function):
            raise CourseError(
                f"Tool {self.name!r} is async; the course's tools are plain functions."
            )
        self._prepare(schemas.checked(copy.deepcopy(self.parameters), self.name))

    def _prepare(self, parameters: dict[str, Any]) -> None:
        from jsonschema import Draft202012Validator  # here, because its import takes a second

        checker = Draft202012Validator.FORMAT_CHECKER
        validator = Draft202012Validator(parameters, format_checker=checker)
        signature = _signature_of(self.function)
        if signature is not None:
            hints = schemas.annotations(self.function)
            self._types.update({name: TypeAdapter(hint) for name, hint in hints.items()})
            known, takes_any = _takes(signature)
            for name in parameters["properties"].keys() - known.keys():
                if not takes_any:
                    raise CourseError(
                        f"The schema of tool {self.name!r} lists {name!r}, which its function "
                        "does not take: rename one or add the parameter."
                    )
        for key, value in [
            ("parameters", parameters),
            ("_validator", validator),
            ("_signature", signature),
        ]:
            object.__setattr__(self, key, value)  # the way to set a field of a frozen dataclass

    @classmethod
    def from_schema(
        cls,
        schema: dict[str, Any],
        function: Callable[..., Any] | None = None,
        *,
        effect: str = "read",
        open_world: bool = False,
    ) -> Tool:
        """Make a tool from a schema in wire form, with or without its "function" wrapper.

        Without a function its calls can be checked, not run.

        >>> Tool.from_schema({"name": "calendar.create", "description": "Add an event."}).name
        'calendar.create'
        """
        inner = schema.get("function", schema) if isinstance(schema, dict) else None
        if not isinstance(inner, dict) or "name" not in inner:
            raise CourseError(f"A tool's schema must be a dict with a 'name', not {schema!r}.")
        description = inner.get("description", "")
        return cls(
            inner["name"], description, inner.get("parameters"), function, effect, open_world
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as before it was a tool."""
        return self._callable()(*args, **kwargs)

    def schema(self) -> dict[str, Any]:
        """The tool as chat-completion APIs and chat templates want it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": copy.deepcopy(self.parameters),
            },
        }

    def validate(self, arguments: Any) -> list[ArgumentProblem]:
        """Return what is wrong with the arguments of a call; an empty list if nothing is."""
        return self.prepared(arguments)[1]

    def complete(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the schema's defaults filled in, nested ones too."""
        return schemas.with_defaults(arguments, self.parameters, self.parameters)

    def run(self, arguments: dict[str, Any]) -> Any:
        """Check the arguments, fill in defaults, convert to the annotated types, and call.

        Raises ArgumentsError, or whatever the function raises.
        """
        function = self._callable()
        values, problems = self.prepared(arguments)
        if problems:
            raise ArgumentsError(self.name, problems)
        return function(**values)

    def prepared(self, arguments: Any) -> tuple[dict[str, Any], list[ArgumentProblem]]:
        """The values to call the function with, and what stands in the way.

        For whoever has to do something between the check and the call, and would check once.
        """
        problems = checks.find_problems(self._validator, arguments)
        if problems:
            return {}, problems
        complete = self.complete(arguments)
        problems = self._signature_problems(complete)
        return ({}, problems) if problems else self._convert(complete)

    def _callable(self) -> Callable[..., Any]:
        if self.function is None:
            raise CourseError(f"Tool {self.name!r} is only a schema: it has no function to run.")
        return self.function

    def _signature_problems(self, arguments: dict[str, Any]) -> list[ArgumentProblem]:
        """What a hand-written schema allows and the function cannot take."""
        if self._signature is None:
            return []
        known, takes_any = _takes(self._signature)
        listed = self.parameters["properties"]
        problems = [
            checks.missing(name, listed.get(name, True))
            for name, parameter in known.items()
            if name not in arguments and parameter.default is parameter.empty
        ]
        surplus = [name for name in arguments if name not in known and not takes_any]
        return problems + [checks.extra(n, arguments[n], list(known)) for n in surplus]

    def _convert(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[ArgumentProblem]]:
        """JSON values as the annotated Python types, and what pydantic refused."""
        converted, problems = dict(arguments), []
        for name, value in arguments.items():
            # null was allowed by the schema, or is its default: there is nothing to convert.
            if name not in self._types or value is None:
                continue
            try:
                converted[name] = self._types[name].validate_python(value)
            except ValidationError as error:
                for each in error.errors(include_url=False):
                    path = checks.path_text([name, *each["loc"]])
                    expected = each["msg"].removeprefix("Input should be ")
                    problems.append(checks.problem(path, each["type"], expected, each["input"]))
        return converted, problems


def _signature_of(function: Callable[..., Any] | None) -> inspect.Signature | None:
    try:
        return inspect.signature(function) if function else None
    except ValueError:  # some functions written in C do not tell
        return None


def _takes(signature: inspect.Signature) -> tuple[dict[str, inspect.Parameter], bool]:
    """The parameters that have a name, and whether any other name is accepted as well."""
    parameters = signature.parameters.values()
    known = {p.name: p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return known, any(p.kind is p.VAR_KEYWORD for p in parameters)


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    effect: str = "read",
    open_world: bool = False,
) -> Any:
    """Make a tool of a typed function with a Google-style docstring; use it as a decorator.

    Raises CourseError that names a missing type or description.

    >>> @tool(effect="irreversible")
    ... def send(to: str): "Send a letter.\\n\\nArgs:\\n    to: The reader."
    """

    def make(function: Callable[..., Any]) -> Tool:
        if isinstance(function, Tool) or not callable(function):
            raise CourseError(
                f"@tool makes a tool of a function, not of a {type(function).__name__}."
            )
        description, parameters = schemas.from_function(function)
        own_name = name or getattr(function, "__name__", "")
        return Tool(own_name, description, parameters, function, effect, open_world)

    return make if function is None else make(function)


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Index tools by name; CourseError if two share one, because a call could mean either."""
    index: dict[str, Tool] = {}
    for each in tools:
        if not isinstance(each, Tool):
            raise CourseError(
                f"Expected tools, but got a {type(each).__name__}: decorate it with @tool."
            )
        if each.name in index:
            raise CourseError(f"Two tools are called {each.name!r}: rename one of them.")
        index[each.name] = each
    return index


def content(value: Any) -> str:
    """A tool's return value as text for the model: a string as it is, all else as one-line JSON.

    Raises ResultError if it cannot be written as JSON.

    >>> content({"temp": 2, "sky": "ясно"})
    '{"temp": 2, "sky": "ясно"}'
    """
    if isinstance(value, str):
        return str(value)
    try:
        return json.dumps(to_jsonable_python(value), ensure_ascii=False, allow_nan=False)
    except (PydanticSerializationError, ValueError, TypeError) as error:
        reason = str(error).split("\n")[0]
        raise ResultError(f"The tool returned what JSON cannot express: {reason}") from error


def failure(call: ToolCall, error: str, hint: str) -> ToolResult:
    """The result of a call that did not work: data that a model can read and act on."""
    text = json.dumps({"ok": False, "error": error, "hint": hint}, ensure_ascii=False)
    return ToolResult(call.id, call.name, text, ok=False)


def run_call(call: ToolCall, tools: Iterable[Tool]) -> ToolResult:
    """Run one call of a model. What the model or the tool gets wrong is a result, not an exception.

    Raises CourseError only for a mistake of the programmer: two tools of one name.

    >>> run_call(ToolCall("call_1", "add", {}), []).content[:40]
    '{"ok": false, "error": "unknown_tool", "'
    """
    index = by_name(tools)
    if call.name not in index:
        available = f"the available tools are {', '.join(index)}" if index else "none are available"
        return failure(call, "unknown_tool", f"There is no tool {call.name!r}; {available}.")
    try:
        return ToolResult(call.id, call.name, content(index[call.name].run(call.arguments)))
    except ArgumentsError as error:
        return failure(call, "invalid_arguments", " ".join(map(str, error.problems)))
    except Exception as error:  # whatever a tool raises; KeyboardInterrupt is not among these
        return failure(call, _snake_case(type(error).__name__), reason(error))


def reason(error: BaseException) -> str:
    """What an exception says, or that it says nothing.

    >>> reason(KeyError())
    'The tool failed with KeyError and gave no reason.'
    """
    try:
        text = str(error)
    except Exception:  # its __str__ is the tool's code too, and may fail as well
        text = ""
    return text or f"The tool failed with {type(error).__name__} and gave no reason."


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
