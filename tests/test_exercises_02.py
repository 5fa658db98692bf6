"""The checks of notebook 02: right answers pass, wrong ones are told their own mistake."""

import copy
import json
from typing import Annotated, Literal

from langchain_core.tools import tool as langchain_tool
from pydantic import Field

from course_utils import evaluation
from course_utils.evaluation import PROMPTS, judge, read_tasks
from course_utils.exercises import check, checks_02, hint, known
from course_utils.exercises.testing import assert_classifies
from course_utils.models.recordings import RECORDINGS, read_file
from course_utils.tools import Tool, tool


def test_every_exercise_has_three_hints():
    assert known("02") == ["02.1", "02.2", "02.3", "02.4"]
    for each in known("02"):
        assert len({hint(each).message for _ in range(3)}) == 3


FOUR = {
    "weather-paris-1": "failed to call",
    "weather-paris-3": "valid",
    "date-mixed-1": "wrong arguments",
    "joke-1": "called needlessly",
}


def test_four_replies():
    assert_classifies(
        "02.1",
        right=[
            FOUR,
            {task: outcome.upper() for task, outcome in FOUR.items()},
            {**FOUR, "joke-2": "valid"},
        ],
        wrong=[
            ({**FOUR, "weather-paris-1": "valid"}, "only talks about it"),
            ({**FOUR, "weather-paris-3": "not JSON"}, "good JSON"),
            ({**FOUR, "date-mixed-1": "valid"}, "not 14 days"),
            ({**FOUR, "joke-1": "invented tool"}, "starts from the task"),
            ({**FOUR, "joke-1": "wrong arguments"}, "read it again"),
            ({**FOUR, "joke-1": "hallucinated"}, "none of the outcomes"),
            ({"joke-1": "called needlessly"}, "is missing"),
            (dict.fromkeys(FOUR, "valid"), "1 of 4"),
            (list(FOUR.values()), "dict from task to outcome"),
        ],
    )


def test_the_key_to_the_four_replies_is_what_judge_says():
    """The replies that the learner reads are the recorded ones, so the key must be theirs."""
    offered = json.loads((PROMPTS / "02_tools.json").read_text(encoding="utf-8"))
    tools = [Tool.from_schema(schema) for schema in offered["precise"]]
    path = RECORDINGS / "02_when_json_breaks.jsonl"
    instructions = "If one of the tools can do what the user asks, call it. Otherwise answer"
    found = {}
    for task in read_tasks(PROMPTS / "02_prompts.jsonl"):
        asked = f"<|im_start|>user\n{task.text}<|im_end|>\n<|im_start|>assistant\n"
        for record in read_file(path):
            if record["settings"]["grammar"] or not record["prompt"].endswith(asked):
                continue
            if instructions in record["prompt"] and "get_invoice_status" in record["prompt"]:
                found[task.id] = judge(task, record["text"], tools)
    assert {task: found[task] for task in FOUR} == FOUR


def test_lost_tasks():
    def loop(before, after):
        lost = []
        for id, outcome in before.items():
            if outcome == "valid" and after[id] != "valid":
                lost.append(id)
        return lost

    def subtract(before, after):
        def valid(outcomes):
            return {id for id, outcome in outcomes.items() if outcome == "valid"}

        return frozenset(valid(before) - valid(after))

    def no_return(before, after):
        {id for id in before if before[id] == "valid" and after[id] != "valid"}

    def misspelt(before, after):
        return {id for id in befor if before[id] == "valid"}  # noqa: F821

    assert_classifies(
        "02.2",
        right=[
            loop,
            subtract,
            lambda b, a: {id for id in b if b[id] == "valid" and a[id] != "valid"},
            lambda before, after: tuple(i for i in after if before[i] == "valid" != after[i]),
        ],
        wrong=[
            (lambda b, a: {i for i in b if b[i] != "valid" and a[i] == "valid"}, "gained"),
            (lambda b, a: {i for i in b if b[i] != a[i]}, "compare the words"),
            (lambda b, a: {i for i in b if (b[i] == "valid") != (a[i] == "valid")}, "gained one"),
            (lambda b, a: {i for i in a if a[i] != "valid"}, "never right"),
            (lambda b, a: {i for i in b if b[i] == "valid"}, "whatever came after"),
            (lambda b, a: sum(b[i] == "valid" != a[i] for i in b), "by their ids"),
            (lambda b, a: {i for i in b if b[i] == "Valid"}, "no lost task"),
            ({"b", "e"}, "function itself"),
            (no_return, "end in a return"),
            (misspelt, "NameError"),
        ],
    )


TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]$"


def booking(people=None, time=None, *, required=True, closed=True, **top):
    arguments = {
        "type": "object",
        "properties": {
            "people": people or {"type": "integer", "minimum": 1, "maximum": 8},
            "time": time or {"type": "string", "pattern": TIME},
        },
    }
    if required:
        arguments["required"] = ["people", "time"]
    if closed:
        arguments["additionalProperties"] = False
    return {
        "type": "object",
        "properties": {"name": {"const": "book_table"}, "arguments": arguments},
        "required": ["name", "arguments"],
        **top,
    }


def without(schema, *path):
    schema = copy.deepcopy(schema)
    inner = schema
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return schema


def test_booking_schema():
    listed = {"type": "object", "enum": []}
    by_enum = booking({"enum": [1, 2, 3, 4, 5, 6, 7, 8]}, additionalProperties=False)
    by_enum["properties"]["name"] = {"enum": ["book_table"]}
    assert_classifies(
        "02.3",
        right=[
            booking(),
            by_enum,
            booking(
                {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
                {"type": "string", "pattern": r"^(?:[01]\d|2[0-3]):[0-5]\d$"},
            ),
        ],
        wrong=[
            (booking({"type": "number", "minimum": 1, "maximum": 8}), '"integer", not "number"'),
            (booking({"type": "integer", "minimum": 1}), "maximum"),
            (booking({"type": "integer", "maximum": 8}), "minimum"),
            (booking({"type": "integer", "minimum": 2, "maximum": 8}), "refuses the right call"),
            (booking(time={"type": "string"}), "words as a time"),
            (booking(time={"type": "string", "pattern": TIME[1:-1]}), "words around it"),
            (booking(time={"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"}), "hours end at 23"),
            (booking(time={"pattern": TIME}), "a time is a string"),
            (booking(required=False), "without a time"),
            (booking(closed=False), "additionalProperties"),
            (without(booking(), "properties", "name", "const"), "another tool's name"),
            (without(booking(), "required"), "required"),
            (booking()["properties"]["arguments"], "arguments alone"),
            ({"name": "book_table", "parameters": {}}, "schema of the reply"),
            ({"type": "dict"}, "not a valid JSON schema"),
            (listed, "refuses the right call"),
            ("{}", "not as text"),
            (None, "not None"),
        ],
    )


def cancel_order(
    order_id: Annotated[str, Field(pattern="^ORD-[0-9]{5}$")],
    reason: Literal["damaged", "late", "unwanted"],
) -> str:
    """Cancel an order for good; this cannot be undone.

    Args:
        order_id: ORD- and five digits, such as ORD-00042.
        reason: Why the customer wants it.
    """
    return "cancelled"


def changed(**changes):
    """The schema of the right answer with parts replaced: description, name, or an argument."""
    schema = tool(cancel_order).schema()
    function = schema["function"]
    for key, value in changes.items():
        if key in ("name", "description"):
            function[key] = value
        elif key == "required":
            function["parameters"]["required"] = value
        else:
            function["parameters"]["properties"][key] = value
    return schema


def test_precise_tool():
    plain = {"type": "string", "description": "Its number."}
    short = {"type": "string", "pattern": "^ORD-[0-9]+$", "description": "Its number."}
    vague = changed()
    vague["function"]["parameters"]["properties"] = {
        "x": {"type": "string", "description": "The number."},
        "y": {"type": "string", "description": "The reason."},
    }
    renamed = tool(name="order_cancel")(cancel_order)
    three = changed(extra={"type": "string", "description": "More."})
    assert_classifies(
        "02.4",
        right=[
            tool(cancel_order),
            tool(effect="irreversible")(cancel_order),
            renamed,
            tool(cancel_order).schema()["function"],
        ],
        wrong=[
            (cancel_order, "@tool"),
            (changed(name="proc"), "'proc'"),
            (changed(name="cancel"), "what is done to what"),
            (changed(description="Cancels."), "too short"),
            (changed(description="Cancel an order of a customer."), "brought back"),
            (vague, "says nothing"),
            (three, "number and the reason"),
            (changed(order_id={"type": "string", "pattern": "^ORD-[0-9]{5}$"}), "no description"),
            (changed(required=["order_id"]), "Both arguments are needed"),
            (changed(order_id=plain), "give it a pattern"),
            (changed(order_id={**plain, "pattern": "^ORD-([0-9]{5}$"}), "'regex'"),
            (changed(order_id={**plain, "type": "str"}), "not a valid JSON schema"),
            (changed(order_id=5), "not a valid JSON schema"),
            (langchain_tool(cancel_order), "LangChain's tool"),
            (changed(order_id=short), "'ORD-42'"),
            (changed(reason={"type": "string", "description": "Why."}), "three reasons"),
            (changed(reason={"enum": ["damaged"], "description": "Why."}), "with the reason late"),
            (None, "not None"),
        ],
    )


def test_a_half_filled_dict_of_outcomes_is_not_attempted():
    assert check("02.1", {**FOUR, "joke-1": ...}).ok is None
    assert check("02.1", dict.fromkeys(FOUR, ...)).ok is None


def test_ellipsis_is_not_attempted():
    assert {check(each, ...).ok for each in known("02")} == {None}


def test_the_outcomes_asked_for_are_those_that_are_counted():
    # The checks import nothing of the package, so they hold the seven words a second time.
    assert checks_02.OUTCOMES == evaluation.OUTCOMES
