"""The trimming explorer: its view says what trimming does, and the widget shows that view."""

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.cli.places import ROOT
from course_utils.errors import CourseError
from course_utils.memory import BudgetTooSmall, Rules, explain, trim
from course_utils.messages import Message, ToolCall
from course_utils.widgets import consequences, trimming_explorer, trimming_view

ROLES = ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]
HISTORY = [{"role": role, "content": f"text {place}"} for place, role in enumerate(ROLES, 1)]
COSTS = [10, 6, 5, 12, 20, 7, 9, 6]
TOOLS = [
    Message("user", "Weather?"),
    Message("assistant", tool_calls=(ToolCall("call_1", "look", {}),)),
    Message("tool", "Rain.", tool_call_id="call_1"),
    Message("assistant", "It rains."),
    Message("user", "Thanks."),
]


def facts(html):
    """The cells of the table in a view's HTML, row by row, and everything else as one text."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.S)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S) for row in rows]
    return cells, re.sub(r"<[^>]*>", " ", html)


def test_the_worked_example_keeps_four_messages_and_32_tokens():
    view = trimming_view(HISTORY, COSTS, 52)
    assert view.text.splitlines()[0] == ("Budget 52 tokens: 4 of 8 messages sent, 32 of 75 tokens.")
    assert "!" not in view.text
    rows, _ = facts(view.html)
    assert [row[5] for row in rows[1:]] == [
        *["✓ yes", "✗ no", "✗ no", "✗ no", "✗ no", "✓ yes", "✓ yes", "✓ yes"]
    ]
    assert [row[7] for row in rows[1:]] == ["10", "", "", "64", "52", "32", "25", "16"]


@pytest.mark.parametrize(
    ("budget", "rules", "expected"),
    [
        (52, Rules(), []),
        (15, Rules(), ["No user message is left. trim raises BudgetTooSmall here."]),
        (
            9,
            Rules(keep_system=False),
            ["The system message is gone, and its instructions with it."],
        ),
        (
            52,
            Rules(start_with_user=False),
            ["It begins with an assistant's message: what that answers is gone."],
        ),
        (
            30,
            Rules(newest_first=False),
            ["The newest message is not sent: the model answers something older."],
        ),
        (62, Rules(whole_messages=False), ["Message 4 is cut: only 10 of its 12 tokens are sent."]),
        (5, Rules(start_with_user=False), ["10 tokens are more than the budget of 5.", "No user"]),
    ],
)
def test_what_follows_from_a_rule_switched_off_is_said(budget, rules, expected):
    found = consequences(HISTORY, explain(HISTORY, COSTS, budget, rules), budget, rules)
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))
    view = trimming_view(HISTORY, COSTS, budget, rules)
    assert [line[2:] for line in view.text.splitlines() if line.startswith("! ")] == found


def test_a_result_without_its_call_is_said():
    rules = Rules(keep_pairs=False, start_with_user=False)
    found = consequences(TOOLS, explain(TOOLS, [9, 9, 2, 2, 2], 6, rules), 6, rules)
    assert found == ["A tool result is sent without the call that it answers."]


@settings(max_examples=200, deadline=None)
@given(
    head=st.booleans(),
    body=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.integers(1, 9)), min_size=1),
    budget=st.integers(0, 60),
)
def test_no_consequence_means_that_trim_keeps_the_same(head, body, budget):
    parts = [("system", 3)] * head + body
    messages = [Message(role, str(place)) for place, (role, _) in enumerate(parts)]
    costs = [cost for _, cost in parts]
    steps = explain(messages, costs, budget)
    found = consequences(messages, steps, budget)
    if not any(role == "user" for role, _ in parts):
        assert found and "trim raises" not in found[-1]
        return
    try:
        kept = trim(messages, budget, lambda some: sum(costs[int(m.content)] for m in some))
    except BudgetTooSmall:
        assert found[-1].endswith("trim raises BudgetTooSmall here.")
    else:
        assert found == []
        assert kept == [messages[step.index] for step in steps if step.kept]


def test_html_and_text_say_the_same_and_markup_is_not_obeyed():
    poisoned = [{"role": "user", "content": "<script>alert(1)</script>"}]
    view = trimming_view(poisoned, [5], 3, Rules(whole_messages=False))
    rows, shown = facts(view.html)
    assert "<script" not in view.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in rows[1]
    for line in ("Budget 3 tokens: 1 of 1 message sent, 3 of 5 tokens.", "only 3 of its 5 tokens"):
        assert line in view.text and line in shown
    assert rows[1][5:] == ["✂ in part", "cut: 3 of 5 tokens fit", "3"]
    assert "in part" in view.text


def test_a_call_without_text_is_named():
    assert "calls look" in trimming_view(TOOLS, [1] * 5, 9).text


@pytest.mark.parametrize(
    ("messages", "costs", "budget", "named"),
    [
        ([], [], 5, "empty"),
        (HISTORY, [1, 2], 5, "8 messages"),
        (HISTORY, COSTS, -1, "0 or more"),
        (HISTORY, COSTS, None, "0 or more"),
        (HISTORY, COSTS, "52", "0 or more"),
        (HISTORY, ["10", *COSTS[1:]], 5, "0 or more"),
        (None, COSTS, 5, "list of messages"),
        (HISTORY, [-1, *COSTS[1:]], 5, "0 or more"),
    ],
)
@pytest.mark.parametrize("show", [trimming_view, trimming_explorer])
def test_what_cannot_be_shown_is_named(show, messages, costs, budget, named):
    with pytest.raises(CourseError, match=named):
        show(messages, costs, budget)


def test_a_budget_of_nothing_and_messages_that_cost_nothing_can_be_shown():
    assert "0 of 0 tokens" in trimming_view(HISTORY, [0] * 8, 0).text


def controls(explorer):
    slider, switches, html = explorer.widget.children
    return slider, {switch.description: switch for switch in switches.children}, html


def test_slider_and_switches_show_what_the_static_twin_shows():
    explorer = trimming_explorer(HISTORY, COSTS, 52)
    slider, switches, html = controls(explorer)
    assert html.value == trimming_view(HISTORY, COSTS, 52).html
    slider.value = 30
    switches["newest first"].value = False
    expected = trimming_view(HISTORY, COSTS, 30, Rules(newest_first=False))
    assert (html.value, repr(explorer)) == (expected.html, expected.text)
    assert (explorer.budget, explorer.rules) == (30, Rules(newest_first=False))


def test_budget_and_rules_can_be_set():
    explorer = trimming_explorer(HISTORY, COSTS, 52)
    explorer.budget, explorer.rules = 48, Rules(whole_messages=False)
    slider, switches, html = controls(explorer)
    assert (slider.value, switches["whole messages only"].value) == (48, False)
    assert html.value == trimming_view(HISTORY, COSTS, 48, Rules(whole_messages=False)).html


def test_the_fifth_switch_is_there_when_there_are_tool_results():
    assert len(controls(trimming_explorer(HISTORY, COSTS, 52))[1]) == 4
    assert "call and result together" in controls(trimming_explorer(TOOLS, [1] * 5, 5))[1]
    kept_off = trimming_explorer(HISTORY, COSTS, 52, Rules(keep_pairs=False))
    assert kept_off.rules == Rules(keep_pairs=False)


def test_the_slider_reaches_from_nothing_to_everything_and_to_the_budget_given():
    assert (controls(trimming_explorer(HISTORY, COSTS, 52))[0].max) == 75
    assert (controls(trimming_explorer(HISTORY, COSTS, 90))[0].max) == 90
    assert (controls(trimming_explorer(HISTORY, COSTS, 52))[0].min) == 0


def test_the_static_twin_stands_beside_the_widget_in_the_output():
    data = trimming_explorer(HISTORY, COSTS, 52)._repr_mimebundle_()
    twin = trimming_view(HISTORY, COSTS, 52)
    assert data.pop("application/vnd.jupyter.widget-view+json")["model_id"]
    assert data == {"text/html": twin.html, "text/plain": twin.text}


def test_ipywidgets_is_loaded_by_the_widgets_alone():
    code = (
        "import sys; from course_utils.widgets import trimming_view, trimming_explorer\n"
        "h = [{'role': 'user', 'content': 'Hi'}]; trimming_view(h, [5], 9)\n"
        "before = 'ipywidgets' in sys.modules; trimming_explorer(h, [5], 9)\n"
        "print(before, 'ipywidgets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("False True", "")
    users = [
        path.relative_to(ROOT / "course_utils").as_posix()
        for path in (ROOT / "course_utils").rglob("*.py")
        if re.search(r"^\s*(import|from) ipywidgets", path.read_text(encoding="utf-8"), re.M)
    ]
    assert sorted(users) == ["widgets/explorer.py", "widgets/trace_stepper.py"]
