"""Counting calls: each outcome, the intervals, the paired comparison, and the prompt set."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.evaluation import (
    OUTCOMES,
    PROMPTS,
    Task,
    clustered_interval,
    compare,
    interval,
    judge,
    outcome_rows,
    read_tasks,
    tally,
)
from course_utils.tools import Tool


def make_tool(name, **properties):
    parameters = {
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Tool.from_schema({"name": name, "description": "A tool.", "parameters": parameters})


TOOLS = [
    make_tool("get_weather", city={"type": "string"}),
    make_tool("count_days", days={"type": "integer"}),
    make_tool("save_note", text={"type": "string"}),
]
WEATHER = Task("w-1", "w", "en", "Weather?", "get_weather", {"city": {"one_of": ["Moscow"]}})
DAYS = Task("d-1", "d", "en", "When?", "count_days", {"days": {"one_of": [1]}})
NOTE = Task("n-1", "n", "ru", "Запиши.", "save_note", {"text": {"contains_one_of": ["молок"]}})
JOKE = Task("j-1", "j", "en", "Tell me a joke.")


def reply(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("task", "text", "outcome"),
    [
        (WEATHER, reply("get_weather", city="Moscow"), "valid"),
        (WEATHER, "```json\n" + reply("get_weather", city=" moscow ") + "\n```", "valid"),
        (NOTE, reply("save_note", text="Купить МОЛОКО"), "valid"),
        (JOKE, "A man walks into a bar.", "valid"),
        (JOKE, '{"answer": "A man walks into a bar."}', "valid"),
        (WEATHER, reply("save_note", text="Moscow"), "wrong tool"),
        (WEATHER, reply("get_weather", city="Москва"), "wrong arguments"),
        (WEATHER, reply("get_weather"), "wrong arguments"),
        (WEATHER, reply("get_weather", city="Moscow", unit="C"), "wrong arguments"),
        (DAYS, reply("count_days", days=True), "wrong arguments"),
        (DAYS, reply("count_days", days="1"), "wrong arguments"),
        (NOTE, reply("save_note", text="хлеб"), "wrong arguments"),
        (WEATHER, reply("get_temperature", city="Moscow"), "invented tool"),
        (WEATHER, "{'name': 'get_weather', 'arguments': {'city': 'Moscow'}}", "not JSON"),
        (JOKE, reply("get_weather", city="Moscow"), "called needlessly"),
        (JOKE, reply("get_joke"), "called needlessly"),
        (JOKE, "{'name': 'get_joke', 'arguments': {}}", "called needlessly"),
        (WEATHER, "\n".join([reply("get_weather", city="Moscow")] * 2), "called needlessly"),
        (WEATHER, "I have looked: it is cold in Moscow.", "failed to call"),
        (WEATHER, "", "failed to call"),
    ],
)
def test_each_reply_has_its_outcome(task, text, outcome):
    assert judge(task, text, TOOLS) == outcome


@given(st.text(alphabet="{}[]\":, '`<>/_namerguts\n") | st.text())
def test_every_text_has_an_outcome(text):
    assert judge(WEATHER, text, TOOLS) in OUTCOMES
    assert judge(JOKE, text, TOOLS) in ("valid", "called needlessly")


def test_a_rule_that_does_not_exist_is_named():
    task = Task("w-1", "w", "en", "Weather?", "get_weather", {"city": {"like": ["Moscow"]}})
    with pytest.raises(CourseError, match="like"):
        judge(task, reply("get_weather", city="Moscow"), TOOLS)


def test_tally_keeps_zeros_and_refuses_other_words():
    counts = tally(["valid", "not JSON", "valid"])
    assert tuple(counts) == OUTCOMES
    assert (counts["valid"], counts["not JSON"], counts["wrong tool"]) == (2, 1, 0)
    with pytest.raises(CourseError, match="'fine'"):
        tally(["fine"])


def test_outcome_rows_have_a_column_for_each_condition():
    rows = outcome_rows({"as is": ["valid", "not JSON"], "repair": iter(["valid", "valid"])})
    assert [row["outcome"] for row in rows] == [*OUTCOMES, "all"]
    assert rows[0] == {"outcome": "valid", "as is": 1, "repair": 2}
    assert rows[-1] == {"outcome": "all", "as is": 2, "repair": 2}


def test_interval_is_wilsons():
    # Worked by hand from Wilson's formula with z = 1.96 for 8 of 10.
    low, high = interval(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert interval(0, 10)[0] == 0 and interval(0, 10)[1] > 0.2


@given(st.integers(1, 200), st.data())
def test_interval_holds_the_share_and_narrows(trials, data):
    wins = data.draw(st.integers(0, trials))
    low, high = interval(wins, trials)
    assert 0 <= low <= wins / trials + 1e-9 and wins / trials - 1e-9 <= high <= 1
    wide, narrow = interval(wins, trials), interval(4 * wins, 4 * trials)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


@pytest.mark.parametrize("wins, trials", [(5, 4), (-1, 4), (0, 0)])
def test_impossible_counts_are_refused(wins, trials):
    with pytest.raises(CourseError, match="not possible"):
        interval(wins, trials)


def test_paraphrases_that_fail_together_widen_the_interval():
    wins = [True] * 12 + [False] * 12
    together = [name for name in "abcdefgh" for _ in range(3)]
    apart = [str(number) for number in range(24)]
    low, high = clustered_interval(wins, together)
    tight = clustered_interval(wins, apart)
    assert high - low > 1.3 * (tight[1] - tight[0])
    assert clustered_interval(wins, together) == (low, high)  # the same seed, the same answer


def test_clusters_need_names_and_company():
    with pytest.raises(CourseError, match="two clusters"):
        clustered_interval([True, False], ["a", "a"])
    with pytest.raises(CourseError, match="each task"):
        clustered_interval([True, False], ["a"])
    assert clustered_interval([True, True], ["a", "b"]) == (1.0, 1.0)


def test_comparison_counts_pairs():
    found = compare([True, True, False, False, False], [True, False, True, True, False])
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 2, 1)
    assert found.p_value == 1.0
    # Six to nothing: 2 * (1/2)**6; five to nothing is not yet below 0.05.
    assert compare([False] * 6, [True] * 6).p_value == pytest.approx(2 / 64)
    assert compare([False] * 5, [True] * 5).p_value == pytest.approx(2 / 32)
    with pytest.raises(CourseError, match="equally long"):
        compare([True], [True, False])


def test_tasks_are_read_or_the_line_is_named(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "a", "cluster": "a", "language": "en", "text": "Hi"}\n\n{"id": 1}\n')
    with pytest.raises(CourseError, match="Line 3 of tasks.jsonl"):
        read_tasks(path)


def test_the_prompt_set_is_what_the_notebook_says():
    tasks = read_tasks(PROMPTS / "02_prompts.jsonl")
    offered = json.loads((PROMPTS / "02_tools.json").read_text(encoding="utf-8"))
    names = {schema["function"]["name"] for schema in offered["precise"]}
    assert len(tasks) >= 40 and len({task.id for task in tasks}) == len(tasks)
    assert {task.language for task in tasks} == {"en", "ru"}
    assert {task.tool for task in tasks} == names | {None}
    assert min(Counter(task.cluster for task in tasks).values()) >= 2  # paraphrases, all of them
    assert any("а" <= letter <= "я" for task in tasks for letter in task.text)


def test_each_task_can_be_answered_rightly():
    offered = json.loads((PROMPTS / "02_tools.json").read_text(encoding="utf-8"))
    tools = [Tool.from_schema(schema) for schema in offered["precise"]]
    for task in read_tasks(PROMPTS / "02_prompts.jsonl"):
        arguments = {name: next(iter(rule.values()))[0] for name, rule in task.arguments.items()}
        text = reply(task.tool, **arguments) if task.tool else "Here is an answer in words."
        assert judge(task, text, tools) == "valid", task.id


def test_vague_tools_stand_for_the_precise_ones():
    offered = json.loads((PROMPTS / "02_tools.json").read_text(encoding="utf-8"))
    precise = {schema["function"]["name"]: schema["function"] for schema in offered["precise"]}
    stands_for = offered["vague_stands_for"]
    assert [schema["function"]["name"] for schema in offered["vague"]] == list(stands_for)
    for schema in offered["vague"]:
        target = stands_for[schema["function"]["name"]]
        renamed = {target["arguments"][n] for n in schema["function"]["parameters"]["properties"]}
        assert renamed == set(precise[target["tool"]]["parameters"]["properties"])
