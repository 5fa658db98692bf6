"""Checks of notebook 02, when JSON breaks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from course_utils.exercises import call, describe, exercise, partly, right, wrong
from course_utils.exercises.feedback import Feedback

OUTCOMES = (
    "valid",
    "wrong tool",
    "wrong arguments",
    "invented tool",
    "not JSON",
    "called needlessly",
    "failed to call",
)
READ = {
    "weather-paris-1": "failed to call",
    "weather-paris-3": "valid",
    "date-mixed-1": "wrong arguments",
    "joke-1": "called needlessly",
}
# What to say to the outcomes that are tempting, and to all others of a task.
TEMPTING = {
    ("weather-paris-1", "valid"): "it names the right tool, but only talks about it: nothing ran",
    ("weather-paris-1", "called needlessly"): "there is no call in it at all",
    ("weather-paris-1", "not JSON"): "it is prose; not JSON is for a call that cannot be read",
    (
        "weather-paris-3",
        "not JSON",
    ): "the call inside the tags is good JSON, and the parser reads it",
    ("weather-paris-3", "called needlessly"): "one call was needed, and one was made",
    ("date-mixed-1", "valid"): "2 weeks and 3 days are not 14 days",
    ("date-mixed-1", "wrong tool"): "it is the right tool; look at the number",
    ("joke-1", "invented tool"): (
        "the tool is invented, but no call at all was needed: judge starts from the task"
    ),
    ("joke-1", "failed to call"): "a joke needs no call",
    ("joke-1", "valid"): "a joke needs words, and this is a call",
}


@exercise(
    "02.1",
    title="Read four replies",
    hints=[
        "Start from the task: does it need a call at all? Only then look at the reply.",
        "Ask what a program would do with each: run something, refuse something, or nothing.",
        "One talks about a call, one is right in odd tags, one adds up wrongly, one needs words.",
    ],
)
def four_replies(answer: Any) -> Feedback:
    if not isinstance(answer, Mapping):
        return wrong(f"Give a dict from task to outcome, not {describe(answer)}.")
    if ... in answer.values():
        return Feedback("open", "Put an outcome in place of each ... and run the cells again.")
    given = {key: " ".join(str(value).split()).casefold() for key, value in answer.items()}
    known = {outcome.casefold(): outcome for outcome in OUTCOMES}
    unknown = [value for value in given.values() if value not in known]
    if unknown:
        return wrong(f"{unknown[0]!r} is none of the outcomes: {', '.join(OUTCOMES)}.")
    missing = [task for task in READ if task not in given]
    if missing:
        return wrong(f"The outcome of {missing[0]} is missing.")
    said = {task: known[given[task]] for task in READ}
    mistakes = [
        f"{task} is not {said[task]!r}: {TEMPTING.get((task, said[task]), 'read it again')}."
        for task in READ
        if said[task] != READ[task]
    ]
    if not mistakes:
        return right("All four, as a program would have it.")
    verdict = wrong if len(mistakes) > 2 else partly
    return verdict(f"{4 - len(mistakes)} of 4 are right. {mistakes[0]}")


BEFORE = {"a": "valid", "b": "valid", "c": "not JSON", "d": "wrong tool", "e": "valid"}
AFTER = {"a": "valid", "b": "wrong arguments", "c": "valid", "d": "not JSON", "e": "invented tool"}
LOST = {"b", "e"}


@exercise(
    "02.2",
    title="What a remedy breaks",
    hints=[
        "Look at the worked example: a gained task is not valid before, and valid after.",
        "A lost task is the mirror image: valid before, not valid after.",
        'return {id for id in before if before[id] == "valid" and after[id] != "valid"}',
    ],
)
def lost_tasks(answer: Any) -> Feedback:
    if isinstance(answer, (set, list, tuple, dict, int)):
        return wrong(
            "Give the function itself, so that it can be tried on other outcomes, not its result."
        )
    found = call(answer, dict(BEFORE), dict(AFTER))
    if found is None:
        return wrong("Your function returns None: does it end in a return?")
    if isinstance(found, int):
        return wrong(
            "Your function returns a number; which tasks were lost is asked, by their ids."
        )
    if not isinstance(found, (set, frozenset, list, tuple)):
        return wrong(f"Your function should return a set of ids, not {describe(found)}.")
    return _judge_lost(frozenset(found))


def _judge_lost(ids: frozenset[Any]) -> Feedback:
    mistakes = {
        frozenset({"c"}): "That is the worked example: tasks that were gained. Swap the two sides.",
        frozenset({"b", "c", "e"}): "You return every task that changed, the gained one as well.",
        frozenset({"b", "d", "e"}): (
            "A task that failed before and fails after in another way was not lost: "
            "it was never right."
        ),
        frozenset({"b", "c", "d", "e"}): (
            "You compare the words: a task may fail before and after in two ways. "
            "Ask only whether it is valid."
        ),
        frozenset({"a", "b", "e"}): "You return what was valid before, whatever came after.",
        frozenset(): "Your function finds no lost task where two were lost.",
    }
    if ids == LOST:
        return right(
            "Gained and lost together say what a remedy did; the share alone hides what it broke."
        )
    if ids in mistakes:
        return wrong(mistakes[ids])
    return wrong(
        f"For a trial of five tasks it should return {sorted(LOST)}, not {sorted(map(str, ids))}."
    )


GOOD_BOOKINGS = [
    {"name": "book_table", "arguments": {"people": 1, "time": "19:30"}},
    {"name": "book_table", "arguments": {"people": 8, "time": "09:00"}},
    {"name": "book_table", "arguments": {"people": 4, "time": "23:59"}},
]


def _booking(**changes: Any) -> dict[str, Any]:
    booking = copy.deepcopy(GOOD_BOOKINGS[0])
    booking["arguments"].update(changes)
    return booking


# What the schema must refuse, with the sentence for a schema that lets it pass.
BAD_BOOKINGS = [
    ("book a table", "It accepts a plain text: the whole reply must be an object."),
    ({}, "It accepts an empty object: list name and arguments as required."),
    (
        {"name": "book_table"},
        "It accepts a call without arguments: list both keys as required at the top.",
    ),
    (
        {"name": "order_pizza", "arguments": GOOD_BOOKINGS[0]["arguments"]},
        'It accepts another tool\'s name: hold name to a "const".',
    ),
    (
        {"name": "book_table", "arguments": {"people": 2}},
        "It accepts a booking without a time: the arguments need a list of required keys too.",
    ),
    (
        {"name": "book_table", "arguments": {"time": "19:30"}},
        "It accepts a booking without people: list them as required.",
    ),
    (_booking(people="two"), 'It accepts the text "two" for people: give people a type.'),
    (_booking(people=2.5), 'It accepts 2.5 people: the type is "integer", not "number".'),
    (_booking(people=0), 'It accepts 0 people: there is a "minimum".'),
    (_booking(people=9), 'It accepts 9 people: there is a "maximum".'),
    (_booking(time=1930), "It accepts the number 1930 as a time: a time is a string."),
    (_booking(time="half past seven"), 'It accepts words as a time: use a "pattern".'),
    (
        _booking(time="at 19:30 or so"),
        "It accepts a time with words around it: a pattern looks anywhere in the text unless it "
        "begins with ^ and ends with $.",
    ),
    (_booking(time="19:3"), "It accepts 19:3: minutes have two digits."),
    (_booking(time="25:00"), "It accepts 25:00: hours end at 23."),
    (_booking(time="19:75"), "It accepts 19:75: minutes end at 59."),
    (
        _booking(wine=True),
        'It accepts an argument nobody asked for: close the arguments with "additionalProperties".',
    ),
]


@exercise(
    "02.3",
    title="A schema that allows one call",
    hints=[
        "Start from call_schema: an object with a const name and arguments, both required.",
        'people: type integer, minimum and maximum. time: type string with a "pattern".',
        'A pattern for the time: "^([01][0-9]|2[0-3]):[0-5][0-9]$". Do not forget '
        '"additionalProperties": False inside the arguments.',
    ],
)
def booking_schema(answer: Any) -> Feedback:
    if isinstance(answer, str):
        return wrong("Give the schema as a Python dict, not as text.")
    if not isinstance(answer, Mapping):
        return wrong(f"A JSON schema is a dict here, not {describe(answer)}.")
    if "function" in answer or "parameters" in answer:
        return wrong(
            "This describes a tool to a model. Asked for is the schema of the reply: an object "
            "with the keys name and arguments."
        )
    if "people" in answer.get("properties", {}):
        return wrong("This is the schema of the arguments alone: the reply also holds the name.")
    try:
        Draft202012Validator.check_schema(answer)
    except SchemaError as error:
        return wrong(f"This is not a valid JSON schema: {error.message}.")
    validator = Draft202012Validator(answer)
    for good in GOOD_BOOKINGS:
        error = next(validator.iter_errors(good), None)
        if error:
            return wrong(f"It refuses the right call {good}: {error.message}.")
    passed = [sentence for bad, sentence in BAD_BOOKINGS if validator.is_valid(bad)]
    if not passed:
        return right("Under this schema every reply is a call that the tool can run.")
    if len(passed) == 1:
        return partly(passed[0])
    return wrong(f"{passed[0]} (It lets {len(passed)} wrong replies pass in all.)")


@exercise(
    "02.4",
    title="From vague to precise",
    hints=[
        "The model sees the name, the description, and each argument's name, type, description.",
        "Literal[...] becomes an enum; Annotated[str, Field(pattern=...)] becomes a pattern.",
        'def cancel_order(order_id: Annotated[str, Field(pattern="^ORD-[0-9]{5}$")], '
        'reason: Literal["damaged", "late", "unwanted"]) with a docstring of a sentence and Args.',
    ],
)
def precise_tool(answer: Any) -> Feedback:
    if hasattr(answer, "args_schema"):
        return wrong("This is LangChain's tool: use the course's, from course_utils.tools.")
    schema = answer.schema() if callable(getattr(answer, "schema", None)) else answer
    if callable(schema):
        return wrong("This is a plain function still: put @tool above it.")
    if not isinstance(schema, Mapping):
        return wrong(f"Give the tool (or its schema), not {describe(answer)}.")
    schema = schema.get("function", schema)
    words = str(schema.get("description", "")).casefold()
    name = str(schema.get("name", "")).casefold()
    if "cancel" not in name or "order" not in name:
        return wrong(f"The name {name!r} should say what is done to what: cancel, and an order.")
    if len(words.split()) < 4:
        return wrong(
            "The description is too short to tell this tool from another: say what it does."
        )
    if not any(word in words for word in ("undo", "undone", "final", "irrevers", "permanent")):
        return wrong("The description does not say that a cancelled order cannot be brought back.")
    return _judge_parameters(schema.get("parameters") or {})


def _judge_parameters(parameters: Mapping[str, Any]) -> Feedback:
    try:
        # Its format checker also reads the patterns, of which Python must make sense.
        Draft202012Validator.check_schema(parameters)
    except SchemaError as error:
        return wrong(f"The parameters are not a valid JSON schema: {error.message}.")
    properties = parameters.get("properties", {})
    if len(properties) != 2:
        return wrong(f"It should take the order's number and the reason, not {list(properties)}.")
    for key, each in properties.items():
        if len(key) < 3:
            return wrong(f"An argument called {key!r} says nothing: name it after what it holds.")
        if not str(each.get("description", "")).strip():
            return wrong(f"Argument {key!r} has no description.")
    if set(parameters.get("required", [])) != set(properties):
        return wrong("Both arguments are needed: a call without one of them must be refused.")
    validator = Draft202012Validator(parameters)
    reasons = [key for key in properties if "reason" in key or "why" in key]
    if len(reasons) != 1:
        return wrong("One argument should be named after the reason, and only one.")
    reason = reasons[0]
    number = next(key for key in properties if key != reason)
    good = {number: "ORD-00042", reason: "late"}
    error = next(validator.iter_errors(good), None)
    if error:
        return wrong(f"It refuses order ORD-00042 with the reason late: {error.message}.")
    for bad in ("42", "ORD-42", "ORD-000042", "my ORD-00042 order"):
        if validator.is_valid({**good, number: bad}):
            return wrong(f"It accepts {bad!r} as an order's number: give it a pattern from ^ to $.")
    for bad in ("because", "LATE", ""):
        if validator.is_valid({**good, reason: bad}):
            return wrong(
                f"It accepts the reason {bad!r}: list the three reasons (Literal or enum)."
            )
    return right("A model can now tell what this does, when to use it, and what to put in.")
