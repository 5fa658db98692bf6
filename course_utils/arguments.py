"""What is wrong with the arguments of a call, in sentences that a model can act on.

The checking itself is done by the library jsonschema; here its errors become one sentence each,
which names the argument, what was expected and what came.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the import takes a second, and only the type hints below need it
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

TYPE_NAMES = {
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
# JSON Schema keyword -> the phrase for its value.
RULES = {
    "pattern": "a string that matches the pattern {}",
    "format": "a string in the format {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "a string of at least {} characters",
    "maxLength": "a string of at most {} characters",
    "minItems": "an array of at least {} items",
    "maxItems": "an array of at most {} items",
    "minProperties": "an object with at least {} keys",
    "maxProperties": "an object with at most {} keys",
}


@dataclass(frozen=True)
class ArgumentProblem:
    """One thing that is wrong with the arguments of a call.

    `argument` is a path such as `items[0].price` (empty for the arguments as a whole); `expected`
    and `got` are phrases; `message` is the whole sentence; `rule` is the JSON Schema keyword that
    was broken: required, type, additionalProperties, enum, pattern, …

    >>> str(problem("city", "type", "a string", 5))
    "Argument 'city' should be a string, but the call gave the number 5."
    """

    argument: str
    rule: str
    expected: str
    got: str
    message: str

    def __str__(self) -> str:
        return self.message


def problem(argument: str, rule: str, expected: str, value: Any) -> ArgumentProblem:
    """The problem that `value` stands where `expected` (a phrase) should."""
    got = describe_value(value)
    subject = f"Argument {argument!r}" if argument else "The value of 'arguments'"
    message = f"{subject} should be {expected}, but the call gave {got}."
    return ArgumentProblem(argument, rule, expected, got, message)


def missing(argument: str, schema: Any) -> ArgumentProblem:
    """The problem that an argument was not given."""
    expected = describe_schema(schema)
    message = f"Argument {argument!r} is missing: it should be {expected}, but the call gave none."
    return ArgumentProblem(argument, "required", expected, "nothing", message)


def extra(argument: str, value: Any, known: list[str]) -> ArgumentProblem:
    """The problem that an argument is not one of the known ones."""
    expected = f"one of the arguments {', '.join(known)}" if known else "no argument here"
    got = describe_value(value)
    message = f"Argument {argument!r} is not known (it came with {got}): expected {expected}."
    close = difflib.get_close_matches(argument.rpartition(".")[2], known, n=1)
    if close:
        message += f" Did you mean {close[0]!r}?"
    return ArgumentProblem(argument, "additionalProperties", expected, got, message)


def find_problems(validator: Draft202012Validator, arguments: Any) -> list[ArgumentProblem]:
    """All problems that the schema of this validator sees, in the order of the arguments' paths."""
    errors = sorted(validator.iter_errors(arguments), key=lambda error: path_text(error.path))
    found = [each for error in errors for each in _problems_of(error)]
    return list(dict.fromkeys(found))  # jsonschema reports "required" once per missing name


def path_text(path: Any) -> str:
    """Write a path of keys and indexes the way programs do: `items[0].price`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def _problems_of(error: ValidationError) -> list[ArgumentProblem]:
    schema, value = error.schema, error.instance
    path = path_text(error.absolute_path)
    if value is None and isinstance(schema, dict) and schema.get("default", ...) is None:
        return []  # `"type": "string", "default": null` means that null stands for "not given"
    if error.validator == "required":
        known = schema.get("properties", {})
        names = [name for name in error.validator_value if name not in value]
        return [missing(_child(path, name), known.get(name, True)) for name in names]
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = schema.get("properties", {})
        unknown = [name for name in value if error.message.find(repr(name)) >= 0]
        unknown = [name for name in unknown if name not in known]
        return [extra(_child(path, name), value[name], list(known)) for name in unknown]
    if error.validator in ("anyOf", "oneOf") and (branch := _branch_meant(error)):
        return [each for inner in branch for each in _problems_of(inner)]
    return [problem(path, error.validator or "false", _expected(error), value)]


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _branch_meant(error: ValidationError) -> list[ValidationError]:
    """Of several allowed shapes, the errors of the only one whose type fits the value."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        errors
        for errors in branches.values()
        if not any(e.validator in ("type", "const") and not e.path for e in errors)
    ]
    return fitting[0] if len(fitting) == 1 else []


def _expected(error: ValidationError) -> str:
    if error.validator in RULES:
        return RULES[error.validator].format(error.validator_value)
    if error.validator == "type":
        return _types(error.validator_value, error.schema)
    if error.validator == "uniqueItems":
        return "an array without repeated items"
    return describe_schema(error.schema)


def _types(types: str | list[str], schema: dict[str, Any]) -> str:
    names = [types] if isinstance(types, str) else types
    words = [TYPE_NAMES.get(name, name) for name in names]
    if "array" in names and isinstance(schema.get("items"), dict) and "type" in schema["items"]:
        words[names.index("array")] = f"an array, each item {describe_schema(schema['items'])}"
    return " or ".join(words)


def describe_schema(schema: Any) -> str:
    """A phrase for what a schema allows.

    >>> describe_schema({"type": ["string", "null"]})
    'a string or null'
    """
    if not isinstance(schema, dict) or not schema:
        return "a value"
    if "enum" in schema:
        return "one of " + ", ".join(_json(value) for value in schema["enum"])
    if "const" in schema:
        return _json(schema["const"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(describe_schema(each) for each in schema[union])
    for rule in ("pattern", "format"):
        if rule in schema:
            return RULES[rule].format(schema[rule])
    if "type" in schema:
        return _types(schema["type"], schema)
    return "a value that fits the schema"


def describe_value(value: Any) -> str:
    """A phrase for a JSON value, cut to a readable length.

    >>> describe_value("Paris")
    'the string "Paris"'
    """
    if value is None or isinstance(value, bool):
        return _json(value)
    if isinstance(value, (int, float)):
        return f"the number {_json(value)}"
    if isinstance(value, str):
        return f"the string {_json(value)}"
    if isinstance(value, list):
        return f"an array of {len(value)} item{'' if len(value) == 1 else 's'}"
    if isinstance(value, dict):
        keys = ", ".join(map(str, list(value)[:5])) + (", …" if len(value) > 5 else "")
        return f"an object with the keys {keys}" if value else "an empty object"
    return f"a {type(value).__name__}, which is not JSON"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= 60:
        return text
    return text[:57] + ('…"' if text.endswith('"') else "…")
