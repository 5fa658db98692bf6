"""The checks of notebook 06: right answers pass, wrong ones are told their own mistake."""

import re

import nbformat
import pytest

from course_utils.cli import places
from course_utils.exercises import check, hint, known
from course_utils.exercises.checks_06 import HISTORY
from course_utils.exercises.testing import assert_classifies
from course_utils.memory import checked_answer
from course_utils.messages import assistant, user
from course_utils.parsing import parse


def test_every_exercise_has_three_hints():
    assert known("06") == ["06.1", "06.2", "06.3", "06.4"]
    for each in known("06"):
        assert len({hint(each).message for _ in range(3)}) == 3


def test_read_a_history():
    assert_classifies(
        "06.1",
        right=[HISTORY, dict(reversed(HISTORY.items())), {**HISTORY, "note": "read twice"}],
        wrong=[
            ({**HISTORY, "fork": 7}, "before it came in"),
            ({**HISTORY, "fork": 5}, "on its way in"),
            ({**HISTORY, "fork": 6}, "in the state already"),
            ({**HISTORY, "fork": 1}, "second turn is lost"),
            ({**HISTORY, "stored": 3}, "answers are stored"),
            ({**HISTORY, "checkpoints": 3}, "every row"),
            ({**HISTORY, "calls": 9}, "it was next"),
            ({**HISTORY, "fork": ...}, "'fork' is missing"),
            ({"checkpoints": 9}, "'calls' is missing"),
            ([9, 3, 6, 4], "dict with the keys"),
        ],
    )


def test_the_history_in_the_notebook_has_these_numbers():
    """The table before exercise 06.1 is what its answer is read from."""
    cells = nbformat.read(places.NOTEBOOKS / "06_conversation_memory.ipynb", as_version=4).cells
    stub = next(at for at, cell in enumerate(cells) if cell.source.startswith("history ="))
    before = [c for c in cells[:stub] if c.cell_type == "code" and c.outputs][-1]
    text = before.outputs[-1].data["text/plain"]
    rows = [re.split(r"\s{2,}", row.strip()) for row in text.splitlines()]
    rows = [row for row in rows if re.fullmatch(r"-?\d+", row[0])]
    steps = {int(step): (following, int(count)) for step, following, count in rows}
    ends = [step for step, (following, _) in steps.items() if following == "nothing"]
    assert HISTORY == {
        "checkpoints": len(steps),
        "calls": sum(following == "model" for following, _ in steps.values()),
        "stored": max(count for _, count in steps.values()),
        "fork": sorted(ends)[-2],
    }


def test_merge_facts():
    def loops(old, new):
        result = dict(old)
        for key, value in new.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result

    def mutates(old, new):
        old.update(new)
        return {key: value for key, value in old.items() if value is not None}

    def crashes_on_missing(old, new):
        result = {**old, **new}
        for key, value in new.items():
            if value is None:
                del result[key]
                old[key]
        return result

    assert_classifies(
        "06.2",
        right=[
            loops,
            lambda old, new: {k: v for k, v in {**old, **new}.items() if v is not None},
            lambda old, new: dict(item for item in (old | new).items() if item[1] is not None),
        ],
        wrong=[
            (lambda old, new: new, "does not mention must stay"),
            (lambda old, new: {**new, **old}, "replace the old one"),
            (lambda old, new: {**old, **new}, "takes a fact away"),
            (lambda old, new: {k: v for k, v in {**old, **new}.items() if v}, "zero cats"),
            (lambda old, new: old.update(new), "returns None"),
            (lambda old, new: old, "not the old one"),
            (mutates, "changes a dict"),
            (crashes_on_missing, "KeyError"),
            (lambda old, new: [old, new], "Return a dict"),
            ({"name": "Bob"}, "should be a function"),
        ],
    )


def store_if(*refuses):
    def answer_only(reply, prompt):
        for refuse in refuses:
            if refuse(reply, prompt):
                raise ValueError("not an answer")
        return reply

    return answer_only


def whole(reply, prompt):
    return reply.startswith(prompt)


def control(reply, prompt):
    return "<|im_" in reply


def called(reply, prompt):
    return bool(parse(reply).calls)


def blank(reply, prompt):
    return not reply.strip()


def cuts(reply, prompt):
    return store_if(control, called, blank)(reply.removeprefix(prompt), prompt)


def returns_none(reply, prompt):
    return reply if not any(f(reply, prompt) for f in (whole, control, called, blank)) else None


def strips(reply, prompt):
    return f"{store_if(whole, control, called, blank)(reply, prompt)} "


def test_only_answers():
    assert_classifies(
        "06.3",
        right=[
            store_if(whole, control, called, blank),
            checked_answer,
            store_if(blank, called, lambda reply, prompt: prompt in reply, control),
        ],
        wrong=[
            (store_if(), "begins with its whole prompt"),
            (store_if(whole, called, blank), "<|im_"),
            (store_if(whole, control, blank), "tool call"),
            (store_if(whole, control, called), "no answer"),
            (store_if(whole, control, called, lambda r, p: not r), "nothing but blanks"),
            (store_if(whole, control, called, blank, lambda r, p: "{" in r), "JSON may be"),
            (store_if(whole, control, called, blank, lambda r, p: "user" in p), "plain answer"),
            (store_if(whole, control, blank, lambda r, p: r.startswith("{")), "fence"),
            (cuts, "whole prompt"),
            (returns_none, "raise ValueError"),
            (strips, "the reply itself"),
            (lambda reply, prompt: reply.begins(prompt), "crashed"),
            ("no", "should be a function"),
        ],
    )


def careful(chat, record, text):
    sent = [*record, user(text)]
    try:
        reply = chat(sent)
    except Exception:
        return record, None
    return (record, None) if not reply.strip() else ([*sent, assistant(reply)], reply)


def with_dicts(chat, record, text):
    sent = record + [{"role": "user", "content": text}]
    try:
        reply = chat(sent)
        if not reply.strip():
            raise ValueError("empty")
    except (ConnectionError, ValueError):
        return list(record), None
    return sent + [{"role": "assistant", "content": reply}], reply


def as_list(chat, record, text):
    return list(careful(chat, record, text))


def naive(chat, record, text):
    record.append(user(text))
    reply = chat(record)
    record.append(assistant(reply))
    return record, reply


def uncaught(chat, record, text):
    sent = [*record, user(text)]
    reply = chat(sent)
    return [*sent, assistant(reply)], reply


def keeps_the_question(chat, record, text):
    sent = [*record, user(text)]
    try:
        reply = chat(sent)
    except Exception:
        return sent, None
    return [*sent, assistant(reply)], reply


def stores_blanks(chat, record, text):
    sent = [*record, user(text)]
    try:
        reply = chat(sent)
    except Exception:
        return record, None
    return [*sent, assistant(reply)], reply


def blank_for_none(chat, record, text):
    new, reply = careful(chat, record, text)
    return new, reply or ""


def wrapped(change):
    def answer(chat, record, text):
        new, reply = careful(chat, record, text)
        return change(new, reply, len(record))

    return answer


def test_a_turn_that_fails():
    assert_classifies(
        "06.4",
        right=[careful, with_dicts, as_list],
        wrong=[
            (naive, "changes the list"),
            (uncaught, "ConnectionError"),
            (keeps_the_question, "no question without an answer"),
            (stores_blanks, "empty"),
            (blank_for_none, "return None for it"),
            (lambda chat, record, text: careful(chat, [], text), "question alone"),
            (lambda chat, record, text: (record, chat(record)), "without the new question"),
            (wrapped(lambda new, reply, n: (new[:-1], reply)), "lacks the answer"),
            (wrapped(lambda new, reply, n: (new[:n] + new[n + 1 :], reply)), "lacks the question"),
            (wrapped(lambda new, reply, n: (new[n:], reply)), "lost what was"),
            (wrapped(lambda new, reply, n: (reply, new)), "should be the answer"),
            (wrapped(lambda new, reply, n: new), "should be the answer"),
            (lambda chat, record, text: (record, "Your name is Bob."), "never calls"),
            (RecursionError, "two things"),
        ],
    )


@pytest.mark.parametrize("exercise", ["06.1", "06.2", "06.3", "06.4"])
def test_ellipsis_is_not_attempted(exercise):
    assert check(exercise, ...).ok is None
