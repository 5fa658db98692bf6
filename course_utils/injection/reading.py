"""Two ways to keep what was read away from what decides: typed fields, and a plan made before.

The quarantined reader is the *dual LLM* pattern (Willison, 2023, "The Dual LLM pattern for building
AI assistants that can resist prompt injection"); the fixed plan is *plan-then-execute* (Beurer-
Kellner et al., 2025, "Design Patterns for Securing LLM Agents against Prompt Injections").
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from course_utils.errors import CourseError
from course_utils.injection.attacks import UserTask
from course_utils.injection.escaping import escape
from course_utils.injection.orders import read_through
from course_utils.messages import Message, Reply, ToolCall, system, user
from course_utils.tools import Tool, content

Fields = Mapping[str, Mapping[str, Any]]
Reader = Callable[[str, Fields], dict[str, Any]]
REFERENCE = re.compile(r"\$(\d+)(?:\.(\w+))?")
PLAN = (
    "Write all tool calls that the request needs, in order, one JSON object a line. "
    "Write $1 where the result of the first call belongs."
)


def fields_only(tool: Tool, fields: Fields, reader: Reader) -> Tool:
    """The same tool; instead of its text come the fields that a reader found in it.

    What is not of the field's type (its JSON schema) becomes null: a number cannot hold an order.
    The message of an error is text from outside as well: the model is only told that there was one.
    """
    from jsonschema import Draft202012Validator

    checks = {name: Draft202012Validator(dict(schema)) for name, schema in fields.items()}

    @functools.wraps(tool.function)
    def function(**arguments: Any) -> dict[str, Any]:
        try:
            text = content(tool.function(**arguments))
        except Exception as error:
            raise CourseError(
                f"{tool.name} failed ({type(error).__name__}); what it said is withheld."
            ) from None
        found = reader(text, fields)
        return {
            name: found.get(name) if check.is_valid(found.get(name)) else None
            for name, check in checks.items()
        }

    return replace(tool, function=function)


def model_reader(model: Any, max_new_tokens: int = 40) -> Reader:
    """A reader that is a model without tools, held to the schema of the fields.

    The text is escaped: it must not forge a turn in the reader's prompt either.
    """

    def read(text: str, fields: Fields) -> dict[str, Any]:
        if not fields:
            return {}
        schema = {
            "type": "object",
            "properties": {name: dict(each) for name, each in fields.items()},
            "required": list(fields),
            "additionalProperties": False,
        }
        wish = system(f"Fill in {', '.join(fields)} from the text, as JSON.")
        reply = model.chat(
            [wish, user(escape(text))], grammar=schema, max_new_tokens=max_new_tokens
        )
        try:
            found = json.loads(reply.text)
        except ValueError:  # cut off at the limit
            return {}
        return found if isinstance(found, dict) else {}

    return read


def worst_reader(task: UserTask) -> Reader:
    """A reader without a model that believes the last thing a text says."""

    def read(text: str, fields: Fields) -> dict[str, Any]:
        shown, values = read_through(text), {}
        for name, pattern in task.find.items():
            found = re.findall(pattern, shown)
            if found:
                number = fields[name]["type"] in ("integer", "number")
                values[name] = int(found[-1]) if number else found[-1]
        return values

    return read


class PlanFirst:
    """A model that is asked for all calls before anything is read, and for nothing afterwards.

    The calls are made in their order, `$1` (or `$1.field`) stands for the result of the first.
    What a tool returns can become an argument's *value*; it cannot add, drop or choose a call.

    `planner(tools)` returns the calls; see `model_planner`.
    """

    name = "plan-first"

    def __init__(self, planner: Callable[[Sequence[Message], Sequence[Tool]], Reply]) -> None:
        self.planner = planner
        self._plan: tuple[ToolCall, ...] | None = None
        self._made = 0

    def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **settings: Any
    ) -> Reply:
        """The next call of the plan, with the results so far filled in."""
        reply = Reply("Done.", origin="scripted", model=self.name, content="Done.")
        if self._plan is None:
            reply = self.planner(messages, tools or ())
            self._plan = reply.tool_calls
        if self._made >= len(self._plan):
            return replace(reply, text="Done.", content="Done.", tool_calls=())
        results = [each.content for each in messages if each.role == "tool"]
        call = self._plan[self._made]
        self._made += 1
        values = {name: _filled(value, results) for name, value in call.arguments.items()}
        return replace(reply, content="", tool_calls=(replace(call, arguments=values),))


def model_planner(model: Any, **settings: Any) -> Callable[..., Reply]:
    """A planner that asks a model."""

    def plan(messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        wishes = [each for each in messages if each.role == "user"]
        return model.chat([system(PLAN), *wishes], tools=tools, **settings)

    return plan


def _filled(value: Any, results: Sequence[str]) -> Any:
    if not isinstance(value, str):
        return value
    whole = REFERENCE.fullmatch(value)
    if whole:
        return _result(whole, results)
    return REFERENCE.sub(lambda found: str(_result(found, results)), value)


def _result(found: re.Match[str], results: Sequence[str]) -> Any:
    number, field = int(found.group(1)), found.group(2)
    if not 1 <= number <= len(results):
        return found.group()  # no such step: the tool will refuse it
    text = results[number - 1]
    if field is None:
        return text
    try:
        return json.loads(text)[field]
    except (ValueError, KeyError, TypeError):
        return found.group()
