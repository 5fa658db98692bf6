"""Stacked bars: the text twin has every number, the picture a letter for every part."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.show.stacked import stacked

PARTS = [{"old": 0, "new": 20}, {"old": 20, "new": 10}]


def test_text_and_picture_say_the_same():
    view = stacked(["1", "2"], PARTS, "Tokens", "They grow.", "step")
    assert view.text.splitlines()[1].split() == ["step", "old", "new", "all"]
    assert [line.split() for line in view.text.splitlines()[3:]] == [
        ["1", "0", "20", "20"],
        ["2", "20", "10", "30"],
    ]
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', view.html)]
    legend, bars = widths[:2], widths[2:]
    assert legend == [22, 22]
    assert len(bars) == 3  # nothing is drawn for 0
    assert bars[0] == pytest.approx(bars[1]) and bars[1] == pytest.approx(2 * bars[2], abs=0.2)
    assert 'aria-label="They grow."' in view.html and "<figcaption>Tokens" in view.html


def test_parts_differ_by_a_letter_too():
    html = stacked(["1"], [{"a": 5, "b": 5, "c": 5, "d": 5}], "c", "a").html
    assert re.findall(r">([ABCD])</text>", html) == list("ABCDABCD")


@pytest.mark.parametrize(
    ("labels", "parts", "message"),
    [
        (["1", "2"], [{"a": 1}, {"b": 1}], "same parts"),
        (["1"], [dict.fromkeys("abcde", 1)], "at most 4"),
        (["1"], PARTS, "equally long"),
        (["1"], [{"a": -1}], "0 or more"),
        (["1"], [{"a": float("nan")}], "finite"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_error(labels, parts, message):
    with pytest.raises(CourseError, match=message):
        stacked(labels, parts, "c", "a")


def test_a_chart_needs_a_conclusion():
    with pytest.raises(CourseError, match="alt text"):
        stacked(["1"], [{"a": 1}], "c", " ")


@given(st.lists(st.tuples(st.text(), st.integers(0, 9), st.integers(0, 9)), max_size=4), st.text())
def test_any_text_gives_a_chart_without_foreign_tags(rows, name):
    labels = [label for label, _, _ in rows]
    parts = [{name: a, f"{name}2": b} for _, a, b in rows]
    html = stacked(labels, parts, f"c{name}", f"a{name}", name).html
    known = {"figure", "figcaption", "svg", "title", "rect", "text"}
    assert set(re.findall(r"<([a-zA-Z]+)", html)) <= known
