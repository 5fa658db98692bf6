"""Calls are found in every form, data stays data, broken calls get a name, nothing raises."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.parsing import KINDS, parse

CALL = '{"name": "get_weather", "arguments": {"city": "Moscow"}}'
EXPECTED = [("get_weather", {"city": "Moscow"})]


def found(text):
    return [(call.name, call.arguments) for call in parse(text).calls]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```json\n{CALL}",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
        f"[{CALL}]",
        CALL.replace("arguments", "parameters"),
        json.dumps({"name": "get_weather", "arguments": '{"city": "Moscow"}'}),
        json.dumps({"id": "x", "type": "function", "function": json.loads(CALL)}),
        '{"arguments": {"city": "Moscow"}, "name": "get_weather"}',
    ],
)
def test_every_form_gives_the_call_and_no_content(text):
    parsed = parse(text)
    assert found(text) == EXPECTED
    assert (parsed.content, parsed.errors) == ("", ())


@pytest.mark.parametrize("form", [CALL, f"```json\n{CALL}\n```", f"<tool_call>{CALL}</tool_call>"])
def test_prose_around_a_call_is_the_content(form):
    parsed = parse(f"Let me look {{briefly}}.\n{form}\nOne moment.")
    assert found(f"Let me look.\n{form}\nOne moment.") == EXPECTED
    assert parsed.content.split() == "Let me look {briefly}. One moment.".split()


@pytest.mark.parametrize("between", ["\n", "", ", ", "\nand then\n", "\n```\n```json\n"])
def test_several_calls_keep_their_order_and_get_different_ids(between):
    second = '{"id": "call_1", "name": "b", "arguments": {}}'
    parsed = parse(f"```json\n{CALL}{between}{second}\n```")
    assert [call.name for call in parsed.calls] == ["get_weather", "b"]
    assert [call.id for call in parsed.calls] == ["call_1", "call_2"]
    assert "```" not in parsed.content or "and then" in between


def test_tags_several_and_with_a_closing_tag_inside_a_string():
    inner = '{"name": "note", "arguments": {"text": "</tool_call> ```"}}'
    text = f"<tool_call>{inner}</tool_call>\n<tool_call>{CALL}</tool_call>"
    assert [name for name, _ in found(text)] == ["note", "get_weather"]
    assert found(text)[0][1] == {"text": "</tool_call> ```"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The answer is 4.",
        '{"temp": 2}',
        '```json\n{"city": "Moscow", "temp": 2}\n```',
        '{"name": "Bob", "age": 5}',
        '{"name": "Bob"}',
        '[{"name": "Bob"}, 2]',
        '{"name": "Bob", "age": 5,}',
        "{'name': 'Bob', 'age': 5}",
        '{"example": ' + CALL + "}",
        '{"text": ' + json.dumps(CALL) + "}",
        f"```python\ncall = {CALL}\n```",
        '{"name": "f", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "f", "description": "d", "arguments": {}}',
        "a set {1, 2}, a list [1], a template {{ name }}",
        "NaN {} [] [{}]",
    ],
)
def test_an_answer_that_contains_json_is_no_call_and_no_error(text):
    parsed = parse(text)
    assert (parsed.calls, parsed.errors, parsed.content) == ((), (), text)


BROKEN = [
    ('{"name": "f", "arguments": {"a": "ab', "truncated", '"ab'),
    ('{"name": "f", "arguments": {"a": 1}', "truncated", None),
    ('{"name": "f", "argum', "truncated", '"argum'),
    ('```json\n{"name": "f", "arguments": {"a": 1}\n```', "truncated", 43 + 1),
    ('<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>', "truncated", "</tool"),
    ("{'name': 'f', 'arguments': {}}", "single_quotes", "'name'"),
    ('{"name": "f", "arguments": {"a": \'b\'}}', "single_quotes", "'b'"),
    ('{"name": "f", "arguments": {"a": 1,}}', "trailing_comma", "}}"),
    ('{"name": "f", "arguments": {"a": [1,]}}', "trailing_comma", "]}}"),
    ('[{"name": "f", "arguments": {}},]', "trailing_comma", "]"),
    ('{{"name": "f", "arguments": {"a": 1}}}', "double_braces", '{"name"'),
    ('{"name": "f", "arguments": {{"a": 1}}}', "double_braces", '{"a"'),
    ('{"name": "f", "arguments": {"a": city}}', "unquoted_value", "city"),
    ('{"name": "f", "arguments": {"a": None}}', "unquoted_value", "None"),
    ('{"name": "f", "arguments": {"a": 2026-08-10}}', "unquoted_value", "-08"),
    ('{"name": "f", "arguments": {"a": NaN}}', "unquoted_value", "{"),
    ('{"name": "f", "arguments": {"a": 1e999}}', "invalid_json", "{"),
    ("<tool_call>5</tool_call>", "not_an_object", "5"),
    ("<tool_call>[1]</tool_call>", "not_an_object", "[1]"),
    ("<tool_call></tool_call>", "not_an_object", "</tool_call>"),
    ('[{"name": "f", "arguments": {}}, 1]', "not_an_object", "["),
    ('<tool_call>{"arguments": {}}</tool_call>', "missing_name", "{"),
    ('{"name": 5, "arguments": {}}', "missing_name", "{"),
    ('<tool_call>{"name": "f"}</tool_call>', "bad_arguments", "{"),
    ('{"name": "f", "arguments": [1]}', "bad_arguments", "{"),
    ('{"name": "f", "arguments": "{oops"}', "bad_arguments", "{"),
    ('{"name": "f", "arguments": {}, "parameters": {}}', "bad_arguments", "{"),
    (f"<tool_call>{CALL}", "unclosed_tag", "<tool_call>"),
    (f"<tool_call>{CALL}<tool_call>", "unclosed_tag", "<tool_call>"),
    (f"<tool_call>{CALL} please</tool_call>", "invalid_json", "please"),
    ('{name: "f", arguments: {}}', "invalid_json", "name"),
    ('{"name": "f" "arguments": {}}', "invalid_json", '"arguments"'),
    ('{"name": "f", "arguments": {"a": "two\nlines"}}', "invalid_json", "\nlines"),
    ('{"name": "f", "arguments": {"a": 1, "a": 2}}', "invalid_json", "{"),
    ('{"name": "f", "arguments": {"a": "\\ud83d"}}', "invalid_json", "{"),
    ('{"name": "f", "arguments": {"a": ' + "9" * 5000 + "}}", "invalid_json", "{"),
    ('{"name": "f", "arguments": {"a": ' + "[" * 200 + "]" * 200 + "}}", "invalid_json", "{"),
]


@pytest.mark.parametrize(("text", "kind", "at"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_call_is_a_named_error_with_its_position(text, kind, at):
    parsed = parse(f"Well: {text}")
    error = parsed.errors[0]
    assert error.kind == kind
    at = len(text) if at is None else at
    position = at if isinstance(at, int) else text.index(at)
    assert error.position == position + len("Well: ")
    if kind != "unclosed_tag" and not text.startswith("["):
        assert parsed.calls == ()
    assert parsed.content.endswith(text[-5:]) or parsed.calls


def test_every_kind_of_error_is_shown_above():
    assert {kind for _, kind, _ in BROKEN} == set(KINDS)


def test_a_good_call_survives_a_broken_neighbour():
    broken = '{"name": "f", "arguments": {"a": x}}'
    for text in (
        f"<tool_call>{broken}</tool_call>\n<tool_call>{CALL}</tool_call>",
        f"```json\n{broken}\n```\n```json\n{CALL}\n```",
        f"{broken}\n{CALL}",
        '{"name": "f", "arguments": {"a": 1}\n' + CALL,
    ):
        assert found(text) == EXPECTED
        assert len(parse(text).errors) == 1


def test_a_call_inside_the_text_of_a_broken_call_is_not_run():
    text = "{'name': 'send', 'arguments': {'body': '" + CALL + "'}}"
    assert parse(text).calls == ()
    assert [error.kind for error in parse(text).errors] == ["single_quotes"]


PIECES = [
    "{", "}", "[", "]", '"', "'", ",", ":", "\\", "\n", " ", "```", "```json\n", "```python\n",
    "<tool_call>", "</tool_call>", '"name"', '"arguments"', "'name': ", '"parameters": {',
    '{"name": "f", ', '"arguments": {"a": 1}', CALL, "{{", "NaN", "-1e999", "\\u00", "\ud800",
    "9" * 5000,
]  # fmt: skip


def check_sound(text):
    parsed = parse(text)
    for error in parsed.errors:
        assert error.kind in KINDS
        assert 0 <= error.position <= len(text)
    assert all(isinstance(call.arguments, dict) and call.name for call in parsed.calls)
    if not parsed.calls:
        assert parsed.content == text.strip()


@given(st.text())
def test_arbitrary_text_never_raises(text):
    check_sound(text)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_text_made_of_pieces_of_calls_never_raises(text):
    check_sound(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.sampled_from(PIECES[:24]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip
FORMS = [
    lambda body: body,
    lambda body: f"Sure: {body} Done.",
    lambda body: f"```json\n{body}\n```",
    lambda body: f"<tool_call>\n{body}\n</tool_call>",
    lambda body: f"{body}\n{body}",
    lambda body: f"[{body}, {body}]",
]


@given(
    st.dictionaries(st.text(), JSON, max_size=4),
    st.sampled_from(FORMS),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_any_arguments_come_back_equal_from_every_form(arguments, form, as_text, ascii, indent):
    given_as = json.dumps(arguments, ensure_ascii=ascii) if as_text else arguments
    body = json.dumps({"name": "f", "arguments": given_as}, ensure_ascii=ascii, indent=indent)
    calls = found(form(body))
    assert calls and all(call == ("f", arguments) for call in calls)
    assert parse(form(body)).errors == ()


@given(st.dictionaries(st.text(), JSON, max_size=3), st.data())
def test_a_call_cut_anywhere_is_never_a_call(arguments, data):
    body = json.dumps({"name": "f", "arguments": arguments})
    cut = data.draw(st.integers(0, len(body) - 1))
    parsed = parse(body[:cut])
    assert parsed.calls == ()
    if '"arguments"' in body[:cut]:
        assert parsed.errors


@pytest.mark.parametrize(
    "piece",
    ["{", "[", '{"', "[{", '{"a":', '{"name":', '{"name": "x", "arguments":', "<tool_call>{", "'",
     '{"name": "a", "arguments": {"a": [', "{'name': ", '"{[1,', '{"a": "\\"', "```py{", " "],
)  # fmt: skip
def test_long_and_deep_text_is_read_to_its_end(piece):
    many = piece * (100_000 // len(piece))
    check_sound(many)
    check_sound(many + CALL)
