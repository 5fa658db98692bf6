"""The minutes rule: 45 s a code cell, 130 words a minute, 30 s a prediction, 8 min an exercise."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from course_utils.cli import places
from course_utils.cli.course_map import title_and_minutes
from course_utils.minutes import complaint, minutes

EXERCISE = new_code_cell("answer = ...", metadata={"tags": ["exercise"]})


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((), 0),
        (("word " * 130,), 1),
        ((("1 + 1",), ("2 + 2",)), 1.5),
        ((("predict('01.1', ...)",),), 0.75 + 0.5),
        ((("x = 'predict('",),), 0.75),
        ((EXERCISE,), 0.75 + 8),
        (("```\n" + "word " * 500 + "\n```", "| " + "word " * 500 + "|"), 0),
    ],
)
def test_each_kind_of_cell_takes_its_time(make_notebook, cells, expected):
    assert minutes(make_notebook(*cells)) == pytest.approx(expected)


@pytest.mark.parametrize("stated", [8.6, 10, 11.4])
def test_stated_minutes_within_15_percent_are_fine(make_notebook, stated):
    assert complaint(make_notebook("word " * 1300), stated) == ""


@pytest.mark.parametrize("stated", [8.4, 11.6, 0, 30])
def test_stated_minutes_beyond_15_percent_are_named_with_the_rule(make_notebook, stated):
    message = complaint(make_notebook("word " * 1300), stated)
    assert f"states {stated:g} minutes; the rule gives 10" in message


def test_a_notebook_must_state_its_minutes(make_notebook):
    assert "states no minutes; the rule gives 10" in complaint(make_notebook("word " * 1300), None)


@pytest.mark.parametrize("path", places.all_notebooks(), ids=lambda path: path.stem)
def test_every_notebook_states_its_minutes_by_the_rule(path):
    _, stated = title_and_minutes(path)
    notebook = nbformat.read(path, as_version=4)
    assert complaint(notebook, float(stated) if stated else None) == ""
