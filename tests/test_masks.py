"""Masks of constrained decoding: what a schema allows at each step, without any weights."""

import json

import pytest

from course_utils.errors import CourseError
from course_utils.models.masks import NotAllowed, allowed_tokens, complete, token_texts, walk
from course_utils.models.tokenizer import tokenizer

CALL = {
    "type": "object",
    "properties": {
        "name": {"enum": ["get_weather", "send_email"]},
        "city": {"type": "string"},
    },
    "required": ["name", "city"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tok():
    return tokenizer("qwen2.5-coder")


def test_every_token_of_a_right_reply_is_inside_its_mask(tok):
    ids = tok.encode('{"name": "send_email", "city": "Мадрид 🌧"}')
    masks = list(walk(CALL, ids, tok))
    assert len(masks) == len(ids) + 1
    assert all(mask[token] for mask, token in zip(masks, ids, strict=False))
    assert not any(mask[tok.end_id] for mask in masks[:-1])
    assert masks[-1][tok.end_id] and masks[-1].sum() == 2  # complete: only the two end tokens


def test_mask_narrows_to_the_enum(tok):
    after = tok.encode('{"name": "')
    texts = {tok.decode([token]) for token in allowed_tokens(CALL, after, tok)}
    names = CALL["properties"]["name"]["enum"]
    assert texts and all(any(name.startswith(text) for name in names) for text in texts)
    assert {"get", "send"} <= texts


def test_free_string_allows_most_of_the_vocabulary(tok):
    inside = allowed_tokens(CALL, tok.encode('{"name": "send_email", "city": "M'), tok)
    assert len(inside) > 100_000
    assert len(allowed_tokens(CALL, [], tok)) < 20


@pytest.mark.parametrize(
    ("text", "position"),
    [('Sure! {"name"', 0), ('{"name": "hack"', 4), ('{"city": "Paris"', 1)],
)
def test_token_outside_the_mask_is_named(tok, text, position):
    with pytest.raises(NotAllowed) as error:
        list(walk(CALL, tok.encode(text), tok))
    assert error.value.position == position
    assert str(position) in str(error.value)


def test_nothing_may_follow_a_complete_reply(tok):
    ids = tok.encode("true")
    assert complete({"type": "boolean"}, ids, tok)
    assert not complete({"type": "boolean"}, tok.encode("tr"), tok)
    with pytest.raises(NotAllowed):
        list(walk({"type": "boolean"}, [*ids, ids[0]], tok))


def test_control_token_is_not_text_of_the_same_look(tok):
    inside = tok.encode('{"name": "send_email", "city": "')
    allowed = set(allowed_tokens(CALL, inside, tok))
    assert tok.end_id not in allowed
    assert tok.encode("<")[0] in allowed


def test_id_outside_the_vocabulary_is_not_allowed(tok):
    for wrong in (-1, 10_000_000):
        with pytest.raises(NotAllowed):
            list(walk({"type": "string"}, [wrong], tok))


def test_schema_as_text_is_the_same_grammar(tok):
    assert allowed_tokens(json.dumps(CALL), [], tok) == allowed_tokens(CALL, [], tok)


@pytest.mark.parametrize("schema", [{"type": "banana"}, "{not json", {"$ref": "#/nowhere"}])
def test_unusable_schema_is_a_course_error(tok, schema):
    with pytest.raises(CourseError, match="schema"):
        allowed_tokens(schema, [], tok)


def test_token_texts_are_short_first(tok):
    assert token_texts(tok.encode("Hello! Hi"), tok, n=2) == ["!", " Hi"]
