"""Requests, their keys, and how a reply's text follows from its ids."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.models.seam import Request, canonical_grammar, reply_text
from course_utils.models.tokenizer import tokenizer

TOK = tokenizer("qwen2.5-coder")
BASE = Request((1, 2, 3))


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_ids": (1, 2, 4)},
        {"max_new_tokens": 9},
        {"stop": ("x",)},
        {"grammar": "{}"},
        {"temperature": 0.5},
        {"seed": 1},
        {"trial": 1},
    ],
)
def test_every_setting_changes_the_key(change):
    assert dataclasses.replace(BASE, **change).key("file") != BASE.key("file")


def test_the_model_file_is_in_the_key_and_top_k_is_not():
    assert BASE.key("file") != BASE.key("other file")
    assert dataclasses.replace(BASE, top_k=5).key("file") == BASE.key("file")


def test_the_key_does_not_change_between_versions_of_the_course():
    assert Request((785, 6722), 8, stop=("\n",)).key("ab") == (
        "e66622d1a2a676fe6dfd5a2226ee8b55dd3caa5b768943799583d30fd8da95ba"
    )


def test_escaped_and_real_control_tokens_have_different_keys():
    real = [TOK.end_id]
    spelled = TOK.encode("<|im_") + TOK.encode("end|>")
    assert TOK.decode(real) == TOK.decode(spelled)
    assert Request(tuple(real)).key("m") != Request(tuple(spelled)).key("m")


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_reply_text_never_holds_a_stop_string(text, stops):
    ids = TOK.encode(text)
    cut = reply_text(ids, stops, TOK.decode)
    assert TOK.decode(ids).startswith(cut)
    assert not any(mark in cut for mark in stops)


def test_the_earliest_stop_string_wins():
    assert reply_text(TOK.encode("one two three"), ["three", "two"], TOK.decode) == "one "


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prompt_ids": ()}, "prompt is empty"),
        ({"prompt_ids": (1,), "max_new_tokens": 0}, "at least 1, not 0"),
        ({"prompt_ids": (1,), "temperature": -1.0}, "0 or more, not -1.0"),
        ({"prompt_ids": (1,), "stop": ("",)}, "must not be empty"),
        ({"prompt_ids": (1,), "stop": (5,)}, "texts only"),
        ({"prompt_ids": (1,), "temperature": "hot"}, "a number, not 'hot'"),
        ({"prompt_ids": (1,), "top_k": -1}, "0 or more, not -1"),
        ({"prompt_ids": (1,), "max_new_tokens": "8"}, "max_new_tokens must be a whole number"),
        ({"prompt_ids": (1,), "seed": 1.5}, "seed must be a whole number"),
        ({"prompt_ids": (1,), "trial": None}, "trial must be a whole number"),
        ({"prompt_ids": (1,), "top_k": True}, "top_k must be a whole number"),
    ],
)
def test_impossible_requests_are_refused(arguments, words):
    with pytest.raises(CourseError, match=words):
        Request(**arguments)


def test_a_grammar_must_be_a_schema():
    with pytest.raises(CourseError, match="JSON schema"):
        canonical_grammar("root ::= 'a'")
    assert canonical_grammar({"b": 1, "a": 2}) == '{"b":1,"a":2}'
