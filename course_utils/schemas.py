"""JSON schemas of tools: made from a Python function, or written by hand and checked.

Why pydantic makes them: it knows every type that Python annotations can say (enums, dates, nested
models, unions, constraints in `Annotated`), and the same library later turns the JSON values of a
call back into those types, so that schema and conversion cannot disagree. What it adds for its
own purposes is removed: "title" keys repeat the names and cost tokens, and `$ref`s make a small
model look up a type elsewhere that it reads better in place.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import docstring_parser
from pydantic import ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError

from course_utils.errors import CourseError

# Keywords whose value maps names (not keywords) to schemas, and those that hold plain data.
NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
DATA = ("enum", "const", "default", "examples", "required", "dependentRequired")
PYTHON_TYPES = {
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "None": "null",
}


def from_function(function: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
    """Return the description and the parameters schema of a typed, documented function.

    Types come from the annotations, descriptions from a Google-style docstring (or from
    `Annotated[…, Field(description=…)]`). Raises CourseError that names what is missing.

    >>> def add(a: int): "Add one.\\n\\nArgs:\\n    a: A number."
    >>> from_function(add)[1]["properties"]
    {'a': {'description': 'A number.', 'type': 'integer'}}
    """
    name = getattr(function, "__name__", repr(function))
    doc = docstring_parser.parse(
        inspect.getdoc(function) or "", style=docstring_parser.DocstringStyle.GOOGLE
    )
    if not (doc.description or "").strip():
        raise CourseError(
            f"The function {name!r} has no description: begin its docstring with a sentence that "
            "says what it does, because that sentence is all the model knows about it."
        )
    types, parameters = annotations(function), _parameters(function, name)
    documented = {p.arg_name: " ".join((p.description or "").split()) for p in doc.params}
    for unknown in documented.keys() - parameters.keys():
        raise CourseError(
            f"The docstring of {name!r} describes {unknown!r}, which is not one of its parameters."
        )
    fields: dict[str, Any] = {}
    for index, (key, parameter) in enumerate(parameters.items()):
        if key not in types:
            raise CourseError(
                f"Parameter {key!r} of {name!r} has no type: annotate it, for example {key}: str."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        said = {"description": documented[key]} if documented.get(key) else {}
        # Under their own names, some parameters ("json", "copy") would hide pydantic's methods.
        fields[f"argument_{index}"] = (types[key], Field(default, alias=key, **said))
    schema = _generate(name, fields)
    for key, property_schema in schema["properties"].items():
        if not property_schema.get("description"):
            raise CourseError(
                f"Parameter {key!r} of {name!r} is not described: add a line "
                f"'{key}: …' under 'Args:' in its docstring."
            )
    return doc.description.strip(), schema


def annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters, with `Annotated` kept; CourseError if unresolvable."""
    try:
        types = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        name = getattr(function, "__name__", repr(function))
        raise CourseError(f"The annotations of {name!r} cannot be read: {error}.") from error
    types.pop("return", None)
    return types


def _parameters(function: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    for key, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise CourseError(
                f"Parameter {key!r} of {name!r} has no name that a call could use: a tool takes "
                "named parameters only, no *args, no **kwargs, nothing before a '/'."
            )
    return parameters


def _generate(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    try:
        model = create_model(name, __config__=ConfigDict(arbitrary_types_allowed=False), **fields)
        schema = model.model_json_schema()
    except PydanticUserError as error:
        reason = str(error.message).split("\n")[0]
        raise CourseError(
            f"A parameter of {name!r} has a type that no JSON schema can express: {reason}"
        ) from error
    schema = _tidy(schema)
    inlined = _inline(schema, schema.get("$defs", {}))
    used = {ref.rpartition("/")[2] for ref, _ in references(inlined)}
    kept = {key: value for key, value in inlined.pop("$defs", {}).items() if key in used}
    inlined.pop("description", None)
    result = {"type": "object", "properties": {}, **inlined}
    return {**result, "$defs": kept} if kept else result


def _map(schema: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to every schema directly inside this one."""
    if isinstance(schema, list):
        return [change(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for key, value in schema.items():
        if key in DATA:
            result[key] = value
        elif key in NAMED_SCHEMAS and isinstance(value, dict):
            result[key] = {name: change(each) for name, each in value.items()}
        else:
            result[key] = change(value)
    return result


def _tidy(schema: Any) -> Any:
    """Drop titles; close every object that lists its properties to other keys."""
    result = _map(schema, _tidy)
    if isinstance(result, dict):
        result.pop("title", None)
        result.pop("discriminator", None)  # it points at definitions that are inlined here
        if "properties" in result or result.get("type") == "object":
            result.setdefault("additionalProperties", False)
    return result


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    """Replace each `$ref` by what it refers to, unless that refers to itself."""
    if isinstance(schema, dict) and "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if _is_recursive(name, definitions):
            return schema
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inline(definitions[name], definitions), **beside}
    return _map(schema, lambda each: _inline(each, definitions))


def _is_recursive(name: str, definitions: dict[str, Any]) -> bool:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for ref, _ in references(definitions[waiting.pop()]):
            target = ref.rpartition("/")[2]
            if target == name:
                return True
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return False


def references(schema: Any, path: str = "parameters") -> Iterator[tuple[str, str]]:
    """Every `$ref` in a schema, with the path of the schema that holds it."""
    if isinstance(schema, list):
        for index, each in enumerate(schema):
            yield from references(each, f"{path}[{index}]")
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"], path
        for key, value in schema.items():
            if key in NAMED_SCHEMAS and isinstance(value, dict):
                for name, each in value.items():
                    yield from references(each, f"{path}.{key}.{name}")
            elif key not in DATA:
                yield from references(value, f"{path}.{key}")


_SOUND: set[str] = set()  # schemas that have passed the check, as text


def checked(parameters: Any, name: str) -> dict[str, Any]:
    """Return a parameters schema made complete (`type`, `properties`); CourseError if broken."""
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, dict):
        raise CourseError(
            f"The parameters of tool {name!r} must be a JSON schema (a dict), "
            f"not {type(parameters).__name__}."
        )
    parameters = {"type": "object", "properties": {}, **parameters}
    from jsonschema import Draft202012Validator  # here, because its import takes a second
    from jsonschema.exceptions import SchemaError

    checker = Draft202012Validator.FORMAT_CHECKER  # so that a broken pattern counts as well
    # A tool that is wrapped, or made again for the next run, has the schema that was checked then.
    known = repr(parameters)
    try:
        if known not in _SOUND:
            Draft202012Validator.check_schema(parameters, format_checker=checker)
            _SOUND.add(known)
    except SchemaError as error:
        path = ".".join(["parameters", *map(str, error.path)])
        said = PYTHON_TYPES.get(str(error.instance))
        advice = f" Did you mean {said!r}?" if said else ""
        raise CourseError(
            f"The schema of tool {name!r} is broken at {path}: {error.instance!r} "
            f"is not a valid value there.{advice}"
        ) from error
    if parameters["type"] != "object":
        raise CourseError(
            f"The parameters of tool {name!r} must have the type 'object', because arguments are "
            f"given by name, not {parameters['type']!r}."
        )
    for ref, path in references(parameters):
        if resolve(parameters, ref) is None:
            raise CourseError(f"The schema of tool {name!r} has a $ref at {path} to nothing: {ref}")
    return parameters


def resolve(root: dict[str, Any], ref: str) -> Any:
    """What a local `$ref` such as `#/$defs/Item` refers to, or None. Nothing is ever fetched."""
    if not ref.startswith("#"):
        return None
    target: Any = root
    for part in ref.removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or part not in target:
            return None
        target = target[part]
    return target


def with_defaults(value: Any, schema: Any, root: dict[str, Any]) -> Any:
    """Return a copy of a JSON value in which absent keys have the schema's defaults."""
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        target = resolve(root, schema["$ref"])
        schema = {**target, **schema, "$ref": None} if isinstance(target, dict) else {}
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [with_defaults(each, schema["items"], root) for each in value]
    if not isinstance(value, dict):
        return value
    result = dict(value)
    for name, each in schema.get("properties", {}).items():
        if name in value:
            result[name] = with_defaults(value[name], each, root)
        elif isinstance(each, dict) and "default" in each:
            result[name] = copy.deepcopy(each["default"])
    return result
