"""From a model's text to tool calls, or to an error that has a name.

A model only writes text. Whether a piece of it is a call is decided here, by shape: an object
whose keys are `name` and `arguments` (or `parameters`), bare, in a list, inside a fenced block or
inside `<tool_call>` tags. Any other JSON is part of the answer and stays where it is.

What looks like a call and cannot be read becomes a `ParseError`. It is never repaired here: a
repaired call is a guess about what the model wanted to do to the world.

How it reads: from left to right, from one possible beginning to the next, with the JSON decoder of
the standard library. Every part of the text is looked at a bounded number of times, so a long or
hostile reply costs no more than its length.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from course_utils.messages import ToolCall

KINDS = {
    "truncated": "the text ends before the call does",
    "single_quotes": "JSON needs double quotes, not single ones",
    "trailing_comma": "a comma before a closing bracket is not allowed in JSON",
    "double_braces": "the braces are doubled",
    "unquoted_value": "a value must be a number, true, false, null, or text in double quotes",
    "not_an_object": "a call must be a JSON object",
    "missing_name": 'a call needs a "name" that is text',
    "bad_arguments": '"arguments" must be a JSON object',
    "unclosed_tag": "<tool_call> is never closed with </tool_call>",
    "invalid_json": "this is not JSON",
}
MAX_DEPTH = 100  # deeper nesting would break other code, which walks arguments recursively
OPEN, CLOSE = "<tool_call>", "</tool_call>"
DATA_LANGUAGES = {"", "json", "jsonc", "json5", "text", "txt", "plaintext", "xml", "tool_call"}
ARGUMENT_KEYS = ("arguments", "parameters")

# It only tells shape and extent; with whole numbers as floats, huge ones cannot make it fail.
_DECODER = json.JSONDecoder(parse_int=float)
# The quantifiers with a plus (`*+`, `++`) never give characters back, so no text makes them slow.
_BEGINNING = re.compile(r"<tool_call>|```(?P<language>\w*+)\s*+|\{|\[(?=\s*+\{)")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)
_BROKEN_TOKEN = re.compile(
    r'"(?:[^"\\\n]++|\\[^\n])*+"?|[][{}]|```|</?tool_call>'
    r"""|\n[ \t]*+(?=[\[{]++\s*+["']name["'])"""
)
_ATTEMPT = re.compile(
    r"""\[?\s*+\{\s*+\{?\s*+["']?(?:name|id|type|function|arguments|parameters)["']?\s*+:"""
)
_NAME_KEY = re.compile(r"""\bname["']?\s*+:""")
_ARGUMENTS_KEY = re.compile(r"""\b(?:arguments|parameters)["']?\s*+:""")
_CUT_EARLY = re.compile(
    r"""[\[\s]*+\{\s*+\{?\s*+["']name["']\s*+:\s*+"""
    r"""(?:["'][^"'\n]*+(?:["']\s*+(?:,\s*+(?:["'](?P<key>\w*+)["']?\s*+)?)?)?)?\Z"""
)
_END_OF_REPLY = re.compile(r"\s*+(?:\Z|```|</tool_call>)")
_PADDING = re.compile(r"\s*+(?:```\w*+\s*+)?")
_GAP = re.compile(r"[\s,]*+(?:```\s*+)?")
_FENCE_BEFORE = re.compile(r"```\w*\s*")
_FENCE_AFTER = re.compile(r"\s*+(?:```|\Z)")
_SPACE = re.compile(r"\s*+")
_BETWEEN = re.compile(r"[\s,]*+")


@dataclass(frozen=True)
class ParseError:
    """A call that could not be read: which `kind` of fault (see KINDS), a sentence about it, and
    the position in the text, in characters from 0.

    >>> parse("<tool_call>{'name': 'f'}</tool_call>").errors[0].kind
    'single_quotes'
    """

    kind: str
    message: str
    position: int


@dataclass(frozen=True)
class Parsed:
    """What a text holds: its calls in order, the text outside of them, and the faults.

    >>> parse('Let me see. {"name": "f", "arguments": {}}').content
    'Let me see.'
    """

    calls: tuple[ToolCall, ...]
    content: str
    errors: tuple[ParseError, ...]


def parse(text: str) -> Parsed:
    """Find the tool calls in a model's reply.

    Calls are numbered call_1, call_2, … whatever id the model wrote, so ids within a reply always
    differ. `content` is the text without the calls; a call that could not be read stays in it and
    is named in `errors`. Never raises.

    >>> parse('```json\\n{"name": "add", "arguments": {"a": 2}}\\n```').calls[0].arguments
    {'a': 2}
    """
    reader = _Reader(text)
    position = 0
    while beginning := _BEGINNING.search(text, position):
        position = reader.step(beginning)
    calls = tuple(
        ToolCall(f"call_{number}", name, arguments)
        for number, (name, arguments) in enumerate(reader.calls, start=1)
    )
    return Parsed(calls, _without(text, reader.spans), tuple(reader.errors))


class _Fault(NamedTuple):
    """Where a JSON decoder gave up, and its reason."""

    position: int
    reason: str


class _Reader:
    """The state of reading one text: what was found, and what is known to be broken."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[ParseError] = []
        self.spans: list[tuple[int, int]] = []  # parts of the text that are calls
        self._broken: dict[int, _Fault] = {}  # brackets that never close, found on the way
        self._no_attempt_before = 0
        self._last_close = text.rfind(CLOSE)

    def step(self, beginning: re.Match[str]) -> int:
        """Read what begins here; return the position from which to search on."""
        if beginning.group() == OPEN:
            return self._tag(beginning.start())
        if beginning.group().startswith("`"):
            return self._fence(beginning)
        return self._value(beginning.start())

    def _fence(self, beginning: re.Match[str]) -> int:
        # A block of program code may well hold a dict of this shape: that is no call.
        inside = beginning.end()
        if beginning["language"].lower() in DATA_LANGUAGES:
            return inside
        if self.text.startswith(("{", "[", OPEN), inside):
            return inside
        end = self.text.find("```", inside)
        return len(self.text) if end < 0 else end + 3

    def _value(self, start: int) -> int:
        found = self._decode(start)
        if isinstance(found, _Fault):
            return self._maybe_attempt(start, found)
        value, end = found
        items = value if isinstance(value, list) else [value]
        if any(_looks_like_call(item) for item in items):
            self._keep(self._read_calls(start, end), start, end)
        return end  # never look inside: a call quoted within other JSON is data

    def _maybe_attempt(self, start: int, fault: _Fault) -> int:
        """Report broken JSON if it was meant to be a call; other broken JSON is just text."""
        if start < self._no_attempt_before or not _ATTEMPT.match(self.text, start):
            return start + 1
        end = _end_of_broken(self.text, start)
        keys = (_NAME_KEY, _ARGUMENTS_KEY)
        if all(key.search(self.text, start, end) for key in keys) or _cut_early(self.text, start):
            self.errors.append(_diagnose(self.text, fault))
            return end
        self._no_attempt_before = end
        return start + 1

    def _tag(self, start: int) -> int:
        position = _PADDING.match(self.text, start + len(OPEN)).end()
        calls: list[tuple[str, dict[str, Any]]] = []
        empty = position
        while self.text.startswith(("{", "["), position):
            found = self._decode(position)
            if isinstance(found, _Fault):
                self.errors.append(_diagnose(self.text, found))
                closed = self._closing_tag(found.position)
                return closed if closed else _end_of_broken(self.text, position)
            calls += self._read_calls(position, found[1])
            position = _GAP.match(self.text, found[1]).end()
        closed = self._closing_tag(position)
        if not closed:
            self._error("unclosed_tag", start)
        elif position == empty:
            self._error("not_an_object", position)
        elif not self.text.startswith(CLOSE, position):
            self._error("invalid_json", position, "there is more than the call inside the tag")
        else:
            self._keep(calls, start, closed)
        return closed or position

    def _closing_tag(self, position: int) -> int:
        """Where the tag that is open at `position` ends; 0 if it does not."""
        if position > self._last_close:
            return 0
        close = self.text.find(CLOSE, position)
        return 0 if self.text.find(OPEN, position, close) >= 0 else close + len(CLOSE)

    def _read_calls(self, start: int, end: int) -> list[tuple[str, dict[str, Any]]]:
        """The calls in text[start:end], which is JSON; what is wrong with others is reported."""
        try:
            value = _strict_json(self.text[start:end])
        except _Unusable as fault:
            self._error(fault.kind, start, str(fault))
            return []
        calls = []
        for item in value if isinstance(value, list) and value else [value]:
            try:
                calls.append(_read_call(item))
            except _Unusable as fault:
                self._error(fault.kind, start, str(fault))
        return calls

    def _keep(self, calls: list[tuple[str, dict[str, Any]]], start: int, end: int) -> None:
        if calls:
            self.calls += calls
            self.spans.append((start, end))

    def _error(self, kind: str, position: int, detail: str = "") -> None:
        self.errors.append(_error(self.text, kind, position, detail))

    def _decode(self, start: int) -> tuple[Any, int] | _Fault:
        """The JSON value that starts here and its end, or where decoding failed."""
        if start in self._broken:
            return self._broken[start]
        after = _SPACE.match(self.text, start + 1).end()
        if self.text[start] == "{" and self.text[after : after + 1] not in ('"', "}"):
            return _Fault(after, "Expecting property name")
        try:
            return _DECODER.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            fault = _Fault(error.pos, error.msg)
        except RecursionError:
            fault = _Fault(_too_deep_at(self.text, start), "nested too deeply")
        # All brackets still open at the fault are broken by it: no need to try each of them.
        self._broken.update(dict.fromkeys(_still_open(self.text, start, fault.position), fault))
        return fault


class _Unusable(Exception):
    """JSON that is not a usable call; leaves this module as a ParseError only."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(detail)
        self.kind = kind


def _looks_like_call(item: Any) -> bool:
    """Whether the object has the keys of a call and no others."""
    if not isinstance(item, dict):
        return False
    if isinstance(item.get("function"), dict) and item.keys() <= {"id", "type", "function"}:
        return _looks_like_call(item["function"])
    if not item.keys() <= {"id", "type", "name", *ARGUMENT_KEYS}:
        return False
    if "arguments" in item:
        return True
    parameters = item.get("parameters")
    # {"name": …, "parameters": {"type": "object", "properties": …}} describes a tool.
    describes = isinstance(parameters, dict) and {"type", "properties"} <= parameters.keys()
    return "name" in item and "parameters" in item and not describes


def _read_call(item: Any) -> tuple[str, dict[str, Any]]:
    """The name and arguments of one call; raises _Unusable."""
    if not isinstance(item, dict):
        raise _Unusable("not_an_object")
    if isinstance(item.get("function"), dict):
        item = item["function"]
    name = item.get("name")
    if not isinstance(name, str) or not name.strip():
        raise _Unusable("missing_name")
    given = [key for key in ARGUMENT_KEYS if key in item]
    if len(given) != 1:
        raise _Unusable("bad_arguments", "they are given twice" if given else "there are none")
    arguments = item[given[0]]
    if isinstance(arguments, str):
        try:
            arguments = _strict_json(arguments)
        except _Unusable as fault:
            raise _Unusable("bad_arguments", f"the text in it cannot be read: {fault}") from fault
    if not isinstance(arguments, dict):
        raise _Unusable("bad_arguments")
    return name, arguments


def decode(source: str) -> Any:
    """Decode JSON that a model wrote, as strictly as `parse` does; raises ValueError.

    NaN, repeated keys, half characters and more than MAX_DEPTH nested brackets are refused.

    >>> decode('{"a": [1]}')
    {'a': [1]}
    """
    try:
        return _strict_json(source)
    except _Unusable as fault:
        raise ValueError(str(fault)) from fault


def _strict_json(source: str) -> Any:
    """Decode JSON and refuse what Python lets pass: NaN, repeated keys, half characters."""

    def no_constant(word: str) -> Any:
        raise _Unusable("unquoted_value", f"{word} is not a JSON value")

    def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise _Unusable("invalid_json", "a key occurs twice in one object")
        return dict(pairs)

    if _too_deep_at(source, 0) < len(source):
        raise _Unusable("invalid_json", f"more than {MAX_DEPTH} brackets are nested")
    try:
        value = json.loads(source, parse_constant=no_constant, object_pairs_hook=no_repeats)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise _Unusable("invalid_json", "an escape stands for half a character") from error
    except json.JSONDecodeError as error:
        raise _Unusable("invalid_json", error.msg) from error
    except (ValueError, RecursionError) as error:  # 1e999, or thousands of digits
        raise _Unusable("invalid_json", "it is too large to read") from error
    return value


def _diagnose(text: str, fault: _Fault) -> ParseError:
    """Name the fault by what stands where decoding failed."""
    position, reason = fault
    here, before = text[position : position + 1], text[max(0, position - 200) : position].rstrip()
    wants_key = reason.startswith("Expecting property name")
    after_comma = before.endswith(",") and here in ("}", "]")
    # Newer Pythons point at the comma itself.
    if after_comma or reason.startswith("Illegal trailing comma"):
        return _error(text, "trailing_comma", position)
    if reason.startswith("Unterminated string") or _END_OF_REPLY.match(text, position):
        return _error(text, "truncated", position)
    if here == "'":
        return _error(text, "single_quotes", position)
    if here == "{" and wants_key:
        return _error(text, "double_braces", position)
    number_runs_on = reason.startswith("Expecting ',' delimiter") and before[-1:].isdigit()
    if number_runs_on and text[position - 1].isdigit() and here not in '"{}[]: ':
        return _error(text, "unquoted_value", position)
    if reason.startswith("Expecting value") and here not in "{}[],:":
        return _error(text, "unquoted_value", position)
    return _error(text, "invalid_json", position, reason[0].lower() + reason[1:])


def _error(text: str, kind: str, position: int, detail: str = "") -> ParseError:
    near = text[position : position + 20].split("\n")[0]
    reason = f"{KINDS[kind]}: {detail}" if detail else KINDS[kind]
    where = f"at character {position}" + (f", near {near!r}" if near.strip() else "")
    return ParseError(kind, f"The call cannot be read: {reason} ({where}).", position)


def _cut_early(text: str, start: int) -> bool:
    """Whether the text ends within the name of a call or the key that follows it."""
    match = _CUT_EARLY.match(text, start)
    return bool(match) and any(key.startswith(match["key"] or "") for key in ARGUMENT_KEYS)


def _still_open(text: str, start: int, end: int) -> list[int]:
    """The positions of the brackets in text[start:end] that are not closed there."""
    stack: list[int] = []
    for token in _TOKEN.finditer(text, start, end):
        if token.group() in ("{", "["):
            stack.append(token.start())
        elif token.group() in ("}", "]") and stack:
            stack.pop()
    return stack


def _too_deep_at(text: str, start: int) -> int:
    """The position of the bracket that opens one level more than MAX_DEPTH, or the text's end."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
        if depth > MAX_DEPTH:
            return token.start()
    return len(text)


def _end_of_broken(text: str, start: int) -> int:
    """Where a broken call ends: where its brackets balance, or where something else begins."""
    depth = 0
    for token in _BROKEN_TOKEN.finditer(text, start):
        if token.group() in ("{", "["):
            depth += 1
        elif token.group() in ("}", "]"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif not token.group().startswith('"'):
            return max(token.start(), start + 1)
    return len(text)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text without these parts, and without fences that held nothing else."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and _BETWEEN.fullmatch(text, merged[-1][1], start):
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    pieces, position = [], 0
    for start, end in merged:
        fence = text.rfind("```", max(position, start - 40), start)
        after = _FENCE_AFTER.match(text, end)
        if fence >= 0 and after and _FENCE_BEFORE.fullmatch(text, fence, start):
            start, end = fence, after.end()
        pieces.append(text[position:start])
        position = end
    return "".join([*pieces, text[position:]]).strip()
