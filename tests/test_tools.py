"""Schemas from functions and by hand, problems in sentences, and calls that never crash."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from course_utils.errors import CourseError
from course_utils.messages import ToolCall
from course_utils.tools import ArgumentsError, Tool, by_name, content, run_call, tool


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Item(BaseModel):
    title: str
    price: float = Field(ge=0)


class Node(BaseModel):
    value: int
    children: list[Node] = []


@tool
def order(
    number: Annotated[str, Field(pattern=r"^INV-\d{6}$")],
    day: date,
    items: list[Item],
    unit: Unit = Unit.CELSIUS,
    note: str | None = None,
    json: Literal["a", "b"] = "a",
):
    """Place an order.

    It is final.

    Args:
        number: The number
            of the invoice.
        day: The day.
        items: What is ordered.
        unit: The unit.
        note: A remark.
        json: A letter.

    Returns:
        What it was given.
    """
    return number, day, items, unit, note, json


GOOD = {"number": "INV-000001", "day": "2026-08-10", "items": [{"title": "pen", "price": 2}]}


def call(name, arguments):
    return ToolCall("call_7", name, arguments)


def hand(parameters, function=None):
    return Tool("t", "A tool.", parameters, function or (lambda **kw: kw))


def test_schema_of_a_function():
    function = order.schema()["function"]
    assert function["name"] == "order"
    assert function["description"] == "Place an order.\n\nIt is final."
    parameters = function["parameters"]
    assert list(parameters["properties"]) == ["number", "day", "items", "unit", "note", "json"]
    assert parameters["required"] == ["number", "day", "items"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["number"] == {
        "description": "The number of the invoice.",
        "pattern": r"^INV-\d{6}$",
        "type": "string",
    }
    assert parameters["properties"]["unit"]["enum"] == ["celsius", "fahrenheit"]
    item = parameters["properties"]["items"]["items"]
    assert list(item["properties"]) == ["title", "price"]  # a property may be called title
    assert item["additionalProperties"] is False
    assert "$ref" not in json.dumps(parameters) and '"title": "' not in json.dumps(parameters)
    Draft202012Validator.check_schema(parameters)


def test_recursive_types_keep_their_reference_and_still_validate():
    @tool
    def walk(tree: Node) -> None:
        """Walk.

        Args:
            tree: A tree.
        """
        return tree.children[0].value

    assert list(walk.parameters["$defs"]) == ["Node"]
    assert walk.run({"tree": {"value": 1, "children": [{"value": 2}]}}) == 2
    (problem,) = walk.validate({"tree": {"value": 1, "children": [{"value": "x"}]}})
    assert problem.argument == "tree.children[0].value"


def test_run_converts_to_the_annotated_types_and_keeps_defaults():
    number, day, items, unit, note, letter = order.run({**GOOD, "unit": "fahrenheit"})
    assert day == date(2026, 8, 10)
    assert items == [Item(title="pen", price=2)]
    assert (unit, note, letter) == (Unit.FAHRENHEIT, None, "a")
    assert order.run(GOOD)[3] is Unit.CELSIUS


def test_hand_written_schema_converts_too():
    def f(day: date, n: str):
        return day, n

    t = hand({"properties": {"day": {"type": "string"}, "n": {"type": ["string", "null"]}}}, f)
    assert t.run({"day": "2026-08-10", "n": None}) == (date(2026, 8, 10), None)
    (problem,) = t.validate({"day": "tomorrow", "n": "x"})
    assert problem.argument == "day" and "tomorrow" in problem.message


@pytest.mark.parametrize(
    ("change", "argument", "rule", "words"),
    [
        ({"day": ...}, "day", "required", ["missing", "format date"]),
        ({"number": 5}, "number", "type", ["a string", "the number 5"]),
        ({"number": None}, "number", "type", ["a string", "null"]),
        ({"number": "12"}, "number", "pattern", [r"^INV-\d{6}$", '"12"']),
        ({"unit": "kelvin"}, "unit", "enum", ['"celsius", "fahrenheit"', '"kelvin"']),
        ({"json": "c"}, "json", "enum", ['"a", "b"', '"c"']),
        ({"note": 3}, "note", "anyOf", ["a string or null", "the number 3"]),
        ({"day": "tomorrow"}, "day", "format", ["date", '"tomorrow"']),
        ({"units": "celsius"}, "units", "additionalProperties", ["not known", "mean 'unit'"]),
        ({"items": "pen"}, "items", "type", ["an array", '"pen"']),
        ({"items": [{"title": "a"}]}, "items[0].price", "required", ["missing", "a number"]),
        ({"items": [{"title": "a", "price": "x"}]}, "items[0].price", "type", ["number", '"x"']),
        ({"items": [{"title": "a", "price": -1}]}, "items[0].price", "minimum", ["at least 0"]),
        ({"items": [{"title": "a", "price": 1, "z": 2}]}, "items[0].z", "additionalProperties",
         ["not known"]),
        ({"items": [{"title": "a", "price": True}]}, "items[0].price", "type", ["true"]),
    ],
)  # fmt: skip
def test_each_problem_names_argument_expected_and_got(change, argument, rule, words):
    arguments = {k: v for k, v in {**GOOD, **change}.items() if v is not ...}
    (problem,) = order.validate(arguments)
    assert (problem.argument, problem.rule) == (argument, rule)
    for word in [repr(argument), *words]:
        assert word in problem.message
    with pytest.raises(ArgumentsError, match="do not fit 'order'"):
        order.run(arguments)


def test_several_problems_are_all_reported():
    assert {p.argument for p in order.validate({"number": 1})} == {"number", "day", "items"}


@pytest.mark.parametrize("arguments", [None, [], "x", 3])
def test_arguments_that_are_no_object(arguments):
    (problem,) = order.validate(arguments)
    assert problem.expected == "an object"


def test_two_missing_arguments_are_two_problems_not_four():
    t = hand({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})
    assert [p.argument for p in t.validate({})] == ["a", "b"]


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"properties": {}}])
def test_missing_parts_of_a_schema_are_filled_in(parameters):
    t = hand(parameters, lambda: "done")
    assert t.parameters == {"type": "object", "properties": {}}
    assert t.run({}) == "done"


def test_defaults_are_filled_in_also_nested_and_null():
    t = hand(
        {
            "$defs": {"P": {"type": "object", "properties": {"size": {"default": 10}}}},
            "properties": {
                "note": {"type": "string", "default": None},
                "page": {"$ref": "#/$defs/P"},
                "rows": {"type": "array", "items": {"properties": {"x": {"default": [1]}}}},
                "free": {"type": "string"},
            },
        }
    )
    given_arguments = {"page": {}, "rows": [{}, {"x": 2}]}
    expected = {"note": None, "page": {"size": 10}, "rows": [{"x": [1]}, {"x": 2}]}
    assert t.run(given_arguments) == expected
    assert given_arguments == {"page": {}, "rows": [{}, {"x": 2}]}
    assert t.validate({"note": None}) == []  # null is what "not given" looks like here
    assert t.validate({"free": None})[0].argument == "free"


def test_union_of_objects_reports_the_branch_that_was_meant():
    shape = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    t = hand({"properties": {"at": {"anyOf": [shape, {"type": "null"}]}}})
    assert t.validate({"at": {"x": "1"}})[0].argument == "at.x"
    assert t.validate({"at": None}) == []


def test_dotted_name_and_wire_form():
    inner = {"name": "calendar.create", "description": "Add an event."}
    for schema in (inner, {"type": "function", "function": inner}):
        t = Tool.from_schema(schema, lambda: 1)
        assert run_call(call("calendar.create", {}), [t]).content == "1"
    with pytest.raises(CourseError, match="no function to run"):
        Tool.from_schema(inner).run({})


def test_what_the_function_cannot_take_is_a_problem_of_the_call():
    t = hand({"properties": {"city": {"type": "string"}}}, lambda city: city)
    assert [p.rule for p in t.validate({})] == ["required"]
    assert [p.argument for p in t.validate({"city": "a", "when": 1})] == ["when"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"properties": {"a": {"type": "dict"}}}, "parameters.properties.a.type.*'object'"),
        ({"properties": {"a": {"pattern": "("}}}, r"parameters\.properties\.a\.pattern"),
        ({"properties": {"a": {"$ref": "#/$defs/B"}}}, "#/\\$defs/B"),
        ({"properties": {"a": {"$ref": "https://example.org/x.json"}}}, "example.org"),
        ({"properties": []}, "parameters.properties"),
        ({"required": "a"}, "parameters.required"),
        ({"type": "array"}, "'object'"),
        ([], "dict"),
    ],
)
def test_a_broken_schema_is_named(parameters, words):
    with pytest.raises(CourseError, match=words):
        hand(parameters)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "two words"}, "two words"),
        ({"name": ""}, "name"),
        ({"description": " "}, "no description"),
        ({"effect": "write"}, "read, reversible, irreversible"),
        ({"open_world": "yes"}, "open_world"),
        ({"function": 5}, "cannot be called"),
        ({"function": lambda b: b}, "'a'"),
    ],
)
def test_a_broken_tool_is_named(changes, words):
    fields = {
        "name": "t",
        "description": "d",
        "parameters": {"properties": {"a": {}}},
        "function": lambda a: a,
    }
    Tool(**fields)
    with pytest.raises(CourseError, match=words):
        Tool(**{**fields, **changes})


def no_docstring(a: int): ...


def no_type(a):
    """Do.

    Args:
        a: It.
    """


def no_argument(a: int):
    """Do."""


def typo(a: int):
    """Do.

    Args:
        a: It.
        b: Not there.
    """


def stars(*a: int):
    """Do.

    Args:
        a: It.
    """


def unresolved(a: Nowhere):  # noqa: F821
    """Do.

    Args:
        a: It.
    """


def no_schema(a: CourseError):
    """Do.

    Args:
        a: It.
    """


async def later():
    """Do."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (no_docstring, "'no_docstring' has no description"),
        (no_type, "'a' of 'no_type' has no type"),
        (no_argument, "'a' of 'no_argument' is not described"),
        (typo, "'b'"),
        (stars, "'a' of 'stars'"),
        (unresolved, "Nowhere"),
        (no_schema, "no_schema"),
        (later, "async"),
        (5, "int"),
    ],
)
def test_an_undocumented_or_untyped_function_is_named(function, words):
    with pytest.raises(CourseError, match=words):
        tool(function)


def test_decorator_options_and_direct_call():
    @tool(name="mail.send", effect="irreversible", open_world=True)
    def send(to: Annotated[str, Field(description="The reader.")]):
        """Send."""
        return f"sent to {to}"

    assert (send.name, send.effect, send.open_world) == ("mail.send", "irreversible", True)
    assert send("Ann") == send.run({"to": "Ann"}) == "sent to Ann"


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ясно", "ясно"),
        ({"небо": [1, None, True]}, '{"небо": [1, null, true]}'),
        (None, "null"),
        (2.5, "2.5"),
        (date(2026, 8, 10), '"2026-08-10"'),
        ([Point(1), Item(title="a", price=1)], '[{"x": 1}, {"title": "a", "price": 1.0}]'),
    ],
)
def test_content_of_a_result(value, text):
    assert content(value) == text


@pytest.mark.parametrize("value", [float("nan"), object(), {"a": object()}])
def test_a_result_that_is_no_json_is_an_error_result(value):
    result = run_call(call("t", {}), [hand(None, lambda: value)])
    assert json.loads(result.content)["error"] == "result_error"


def test_run_call_success_keeps_id_and_name():
    result = run_call(call("t", {"a": 1}), [hand({"properties": {"a": {}}})])
    assert (result.call_id, result.name, result.content, result.ok) == (
        "call_7", "t", '{"a": 1}', True,
    )  # fmt: skip


def failed(call, tools):
    result = run_call(call, tools)
    data = json.loads(result.content)
    assert list(data) == ["ok", "error", "hint"]
    assert result.ok is data["ok"] is False
    return data


def test_unknown_tool_lists_the_available_ones():
    data = failed(call("add", {}), [order, hand(None)])
    assert data["error"] == "unknown_tool"
    assert "'add'" in data["hint"] and "order, t" in data["hint"]
    assert failed(call("add", {}), [])["error"] == "unknown_tool"


def test_bad_arguments_do_not_run_the_tool():
    ran = []
    t = hand({"properties": {"a": {"type": "string"}}}, lambda a: ran.append(a))
    data = failed(call("t", {"a": 5}), [t])
    assert data["error"] == "invalid_arguments"
    assert "'a'" in data["hint"] and not ran


class HTTPStatus404Error(Exception): ...


class SpeechlessError(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("error", "code", "hint"),
    [
        (TimeoutError("no answer"), "timeout_error", "no answer"),
        (ZeroDivisionError("by zero"), "zero_division_error", "by zero"),
        (HTTPStatus404Error("gone"), "http_status404_error", "gone"),
        (ValueError(), "value_error", "The tool failed with ValueError and gave no reason."),
        (CourseError("Not so."), "course_error", "Not so."),
        (RecursionError("deep"), "recursion_error", "deep"),
        (
            SpeechlessError(),
            "speechless_error",
            "The tool failed with SpeechlessError and gave no reason.",
        ),
    ],
)
def test_an_exception_in_a_tool_is_data_without_a_stack_trace(error, code, hint):
    def broken():
        raise error

    data = failed(call("t", {}), [hand(None, broken)])
    assert (data["error"], data["hint"]) == (code, hint)


def test_keyboard_interrupt_passes_through():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_call(call("t", {}), [hand(None, interrupted)])


def test_duplicate_names_and_foreign_objects_are_refused():
    with pytest.raises(CourseError, match="'t'"):
        run_call(call("t", {}), [hand(None), hand(None)])
    with pytest.raises(CourseError, match="function"):
        by_name([no_type])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*order.parameters["properties"], "x", ""])


@given(st.dictionaries(NAMES, VALUES) | VALUES, st.sampled_from(["order", "nothing"]))
def test_whatever_a_model_gives_the_result_is_text(arguments: Any, name):
    result = run_call(ToolCall("call_1", name, arguments), [order])
    assert result.ok or list(json.loads(result.content)) == ["ok", "error", "hint"]
