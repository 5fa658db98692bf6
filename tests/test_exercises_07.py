"""The checks of notebook 07: right answers pass, wrong ones are told their own mistake."""

import nbformat

from course_utils import messages as m
from course_utils.cli import places
from course_utils.exercises import check, hint, known
from course_utils.exercises.checks_07 import CAUSE, COSTS, SENT
from course_utils.exercises.testing import assert_classifies
from course_utils.memory import TokenCounter, explain
from course_utils.models.tokenizer import tokenizer


def test_every_exercise_has_three_hints():
    assert known("07") == ["07.1", "07.2", "07.3", "07.4"]
    for each in known("07"):
        assert len({hint(each).message for _ in range(3)}) == 3


def test_ellipsis_is_not_attempted():
    assert {check(each, ...).ok for each in known("07")} == {None}


SYSTEM = {"role": "system", "content": "x"}
USER = {"role": "user", "content": "Hi"}


def test_own_tokens():
    def by_anchor(message, whole):
        return whole([SYSTEM, message]) - whole([SYSTEM])

    def behind_a_talk(message, whole):
        first = [SYSTEM, USER, {"role": "assistant", "content": "Yes?"}]
        return whole([*first, message]) - whole(first)

    def no_return(message, whole):
        whole([SYSTEM, message]) - whole([SYSTEM])

    def text_alone(message, whole):
        return len(message["content"].split())

    assert_classifies(
        "07.1",
        right=[
            by_anchor,
            behind_a_talk,
            lambda message, whole: whole([message, message]) - whole([message]),
            lambda message, whole: whole([m.system("x"), message]) - whole([m.system("x")]),
        ],
        wrong=[
            (lambda message, whole: whole([message]), "a prompt of its own"),
            (lambda message, whole: whole([message]) - 3, "default system message is still"),
            (text_alone, "the text alone"),
            (lambda message, whole: whole([SYSTEM, message]), "subtract all that is not"),
            (lambda message, whole: whole([message]) - whole([]), "comes out too small"),
            (
                lambda message, whole: whole([SYSTEM]) - whole([SYSTEM, message]),
                "less than nothing",
            ),
            (lambda message, whole: whole([SYSTEM, message]) - whole([SYSTEM]) + 3, "reply marker"),
            (no_return, "return a number"),
            (lambda message: 10, "TypeError"),
            (10, "function itself"),
        ],
    )


def test_the_published_own_tokens_is_the_packages():
    counter = TokenCounter(tokenizer("qwen2.5-coder"))
    first = m.system("x")
    for message in (m.user("hi! I'm bob"), m.assistant("hi!"), m.system("Be brief.")):
        by_difference = counter.whole([first, message]) - counter.whole([first])
        assert by_difference == counter.costs([first, message])[1]


def test_the_answer_of_budgets_is_what_explain_says():
    talk = [m.system("x")] + [m.user("x"), m.assistant("x")] * 3 + [m.user("x")]
    for budget, tokens in SENT.items():
        assert sum(step.kept_tokens for step in explain(talk, COSTS, budget)) == tokens


def test_budgets():
    assert_classifies(
        "07.2",
        right=[SENT, [16, 32, 64], {31: 16.0, 63: 32.0, 64: 64.0}, {"31": 16, "63": 32, "64": 64}],
        wrong=[
            ({31: 25, 63: 52, 64: 64}, "question was cut off"),
            ({**SENT, 63: 52}, "question was cut off"),
            ({31: 6, 63: 22, 64: 54}, "system message is sent with them"),
            ({31: 22, 63: 54, 64: 54}, "take its 10 tokens off first"),
            ({31: 32, 63: 64, 64: 64}, "more than the budget"),
            ({31: 31, 63: 63, 64: 64}, "That is the budget"),
            ({31: 21, 63: 60, 64: 60}, "keeps the oldest"),
            ({**SENT, 64: 32}, "with budget 64"),
            ({31: 16, 63: 32}, "budget 64 is missing"),
            ({31: 16, 63: ..., 64: 64}, "budget 63 is missing"),
            ({31: "16", 63: 32, 64: 64}, "a number of tokens"),
            (16, "dict with the keys"),
        ],
    )


def test_the_answer_of_cause_is_what_the_notebook_shows():
    notebook = nbformat.read(places.NOTEBOOKS / "07_trimming.ipynb", as_version=4)
    texts = [
        output.data.get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    shown = next(text for text in texts if text.startswith("Turn two: the record"))
    rows = [line.split() for line in shown.splitlines()[3:]]
    greeting, stored, question = (int(row[2]) for row in rows)
    assert [row[0] for row in rows] == ["human", "ai", "human"]
    assert stored == CAUSE["stored"]
    assert 45 - greeting - question == CAUSE["room"]
    assert int(rows[1][3]) > 45, "so the counter alone is no fix"


def test_cause():
    assert_classifies(
        "07.3",
        right=[CAUSE, {**CAUSE, "fix": " Return_full_text=False "}, {**CAUSE, "stored": 77.0}],
        wrong=[
            ({**CAUSE, "stored": 214}, "characters"),
            ({**CAUSE, "stored": 50}, "what our model reads"),
            ({**CAUSE, "stored": 11}, "answer alone"),
            ({**CAUSE, "room": 45}, "whole budget"),
            ({**CAUSE, "room": 38}, "not one of them only"),
            ({**CAUSE, "room": 25}, "counts with GPT-2"),
            ({**CAUSE, "fix": "counter"}, "still over the budget"),
            ({**CAUSE, "fix": "both"}, "one is enough"),
            ({**CAUSE, "fix": "temperature"}, "'return_full_text' or 'counter'"),
            ({**CAUSE, "room": [31]}, "off the budget"),
            ({"stored": 77, "room": 31}, "'fix' is missing"),
            ("return_full_text", "dict with the keys"),
        ],
    )


def torn(messages):
    opened, found = {}, []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if opened.pop(message["tool_call_id"], None) is None:
                found.append(place)
        for each in message.get("tool_calls", []):
            opened[each["id"]] = place
    return sorted({*found, *opened.values()})


def by_search(messages):
    def calls(message):
        return [each["id"] for each in message.get("tool_calls", [])]

    places = set()
    for place, message in enumerate(messages):
        before = [i for earlier in messages[:place] for i in calls(earlier)]
        after = [later.get("tool_call_id") for later in messages[place + 1 :]]
        if message["role"] == "tool" and message["tool_call_id"] not in before:
            places.add(place)
        if any(each not in after for each in calls(message)):
            places.add(place)
    return places


def only_results(messages):
    return [place for place in torn(messages) if messages[place]["role"] == "tool"]


def only_calls(messages):
    return [place for place in torn(messages) if messages[place]["role"] != "tool"]


def by_neighbours(messages):
    found = []
    for place, message in enumerate(messages):
        before = messages[place - 1] if place else {}
        if message["role"] == "tool" and not before.get("tool_calls"):
            found.append(place)
        after = messages[place + 1] if place + 1 < len(messages) else {}
        if message.get("tool_calls") and after.get("role") != "tool":
            found.append(place)
    return found


def without_order(messages):
    made = {each["id"] for x in messages for each in x.get("tool_calls", [])}
    answered = {x["tool_call_id"] for x in messages if x["role"] == "tool"}
    return [
        place
        for place, x in enumerate(messages)
        if (x["role"] == "tool" and x["tool_call_id"] not in made)
        or any(each["id"] not in answered for each in x.get("tool_calls", []))
    ]


def any_answer_will_do(messages):
    answered = {x["tool_call_id"] for x in messages if x["role"] == "tool"}
    return [
        place
        for place in torn(messages)
        if messages[place]["role"] == "tool"
        or not any(each["id"] in answered for each in messages[place]["tool_calls"])
    ]


def test_torn_pairs():
    assert_classifies(
        "07.4",
        right=[torn, by_search, lambda messages: tuple(reversed(torn(messages)))],
        wrong=[
            (only_results, "no result answers is torn"),
            (only_calls, "call was trimmed away"),
            (by_neighbours, "two calls in one message"),
            (without_order, "order counts"),
            (any_answer_will_do, "one has no result"),
            (lambda messages: bool(torn(messages)), "list of places"),
            (lambda messages: ["a"] if torn(messages) else [], "hold places"),
            (lambda messages: [], "call was trimmed away"),
            (lambda messages: list(range(len(messages))), "every pair whole"),
            (lambda messages: None, "list of places"),
        ],
    )
