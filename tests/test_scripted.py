"""Scripted models recite, are labelled so, and run out loudly."""

import pytest

from course_utils.errors import CourseError
from course_utils.messages import Reply, user
from course_utils.models import scripted

SCHEMA = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def test_replies_come_in_order_and_are_labelled_scripted():
    model = scripted(["one", Reply("two", origin="live", model="x")])
    replies = [model.chat([user("a")]), model.chat([user("b")])]
    assert [r.text for r in replies] == ["one", "two"]
    assert {r.origin for r in replies} == {"scripted"}
    assert "scripted" in repr(replies[0])
    assert [m.content for p in model.prompts for m in p] == ["a", "b"]


def test_calls_are_parsed_from_scripted_text():
    text = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    assert scripted([text]).chat([user("a")], [SCHEMA]).tool_calls[0].arguments == {"x": 1}


def test_an_exhausted_script_says_so():
    model = scripted(["one"])
    model.chat([user("a")])
    with pytest.raises(CourseError, match="1 replies and was asked for one more"):
        model.chat([user("b")])
