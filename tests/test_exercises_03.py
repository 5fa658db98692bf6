"""The checks of notebook 03: right answers pass, wrong ones are told their own mistake."""

import json

import nbformat
import pytest

from course_utils.cli import places
from course_utils.exercises import check, hint, known
from course_utils.exercises.checks_03 import READ
from course_utils.exercises.loop_trial import Chat, RunsOn
from course_utils.exercises.testing import assert_classifies


def test_every_exercise_has_three_hints():
    assert known("03") == ["03.1", "03.2", "03.3", "03.4"]
    for each in known("03"):
        assert len({hint(each).message for _ in range(3)}) == 3


def test_ellipsis_is_not_attempted():
    assert {check(each, ...).ok for each in known("03")} == {None}


def test_read_a_trace():
    assert_classifies(
        "03.1",
        right=[
            READ,
            {**READ, "stop": " Repeats "},
            dict(reversed(READ.items())),
        ],
        wrong=[
            ({**READ, "sent": 3}, "asking is not doing"),
            ({**READ, "sent": 2}, "outbox decides"),
            ({**READ, "looked": 1}, "get_weather"),
            ({**READ, "asked": 4}, "choice is send_email"),
            ({**READ, "stop": "max_steps"}, "after the word stopped"),
            ({"asked": 3, "sent": 1, "looked": 0}, "'stop' is missing"),
            ({**READ, "sent": ...}, "'sent' is missing"),
            ([3, 1, 0, "repeats"], "dict with the keys"),
        ],
    )


def test_the_key_to_the_trace_is_what_the_notebook_shows():
    cells = nbformat.read(next(places.NOTEBOOKS.glob("03_*.ipynb")), as_version=4).cells
    cell = next(cell for cell in cells if "jacket_run = run_agent" in cell.source)
    shown = " ".join(output.data["text/plain"] for output in cell.outputs)
    shown = " ".join(shown.split())
    assert {
        "asked": shown.count("send_email("),
        "sent": shown.count("Sent to Ana.") - shown.count("Note: this was done in step"),
        "looked": shown.count("get_weather("),
        "stop": shown.split("stopped: ")[1].split()[0],
    } == READ


def test_tokens_read():
    def added(first, growth, steps):
        total, prompt = 0, first
        for _ in range(steps):
            total += prompt
            prompt += growth
        return total

    def cumulative_but_one_short(first, growth, steps):
        return sum(first + growth * step for step in range(1, steps))

    def no_return(first, growth, steps):
        steps * first + growth * steps * (steps - 1) // 2

    assert_classifies(
        "03.2",
        right=[
            added,
            lambda f, g, n: n * f + g * n * (n - 1) // 2,
            lambda f, g, n: (f + f + g * (n - 1)) * n / 2,
        ],
        wrong=[
            (lambda f, g, n: n * f, "forgets the growth"),
            (lambda f, g, n: f + g * (n - 1), "last prompt alone"),
            (lambda f, g, n: f + g * n, "next prompt"),
            (lambda f, g, n: n * (f + g), "grow by one step only"),
            (lambda f, g, n: n * f + g * (n - 1), "grow by one step only"),
            (lambda f, g, n: n * f + g * n * (n + 1) // 2, "has not grown yet"),
            (lambda f, g, n: n * f + g * n**2, "half of steps squared"),
            (lambda f, g, n: f + g * n * (n - 1) // 2, "first prompt once"),
            (lambda f, g, n: n * f + g * n * (n - 1), "half of steps times"),
            (cumulative_but_one_short, "the prompts add up to"),
            (no_return, "end in a return"),
            (lambda f, g: f + g, "TypeError"),
            (lambda f, g, n: str(n * f), "return a number"),
            (1506, "function itself"),
        ],
    )


def loop(chat, task, functions, max_steps, *, fault="", stop="max_steps", again=0, pair=True):
    """A loop that works, with one fault of those named in `fault`."""
    messages = [{"role": "user", "content": task}]
    for _ in range(max_steps + again):
        reply = chat(messages)
        if not reply["calls"]:
            return ("answer", reply["text"]) if pair else reply["text"]
        messages.append({"role": "assistant", "content": reply["text"], "calls": reply["calls"]})
        for call in reply["calls"][: 1 if fault == "first call only" else None]:
            try:
                function = functions.get(call["name"]) if fault == "None" else None
                function = function or functions[call["name"]]
                result = json.dumps(function(**json.loads(call["arguments"])))
            except Exception as error:
                if fault == "silent":
                    continue
                if fault == "gives up":
                    return "error", str(error)
                text = "" if fault == "no word" else f"error: {error!r}"
                result = text or "(nothing)"
            messages.append({"role": "tool", "id": call["id"], "content": result})
    return stop, "The limit is reached."


def with_fault(**changes):
    return lambda chat, task, functions, max_steps: loop(
        chat, task, functions, max_steps, **changes
    )


def published(chat, task, functions, max_steps):
    messages = [{"role": "user", "content": task}]
    for _ in range(max_steps):
        reply = chat(messages)
        if not reply["calls"]:
            break
        for call in reply["calls"]:
            result = str(functions.get(call["name"])(**json.loads(call["arguments"])))
            messages.append({"role": "tool", "id": call["id"], "content": result})
    return "The limit of steps is reached."


def half_repaired(chat, task, functions, max_steps):
    messages = [{"role": "user", "content": task}]
    for _ in range(max_steps):
        reply = chat(messages)
        if not reply["calls"]:
            return "answer", reply["text"]
        for call in reply["calls"]:
            function = functions.get(call["name"])
            if function is None:
                result = "error: unknown tool"
            else:
                result = str(function(**json.loads(call["arguments"])))
            messages.append({"role": "tool", "id": call["id"], "content": result})
    return "max_steps", "The limit is reached."


def reads_json_carefully(chat, task, functions, max_steps):
    messages = [{"role": "user", "content": task}]
    for _ in range(max_steps):
        reply = chat(messages)
        if not reply["calls"]:
            return "answer", reply["text"]
        for call in reply["calls"]:
            function = functions.get(call["name"])
            try:
                arguments = json.loads(call["arguments"])
            except json.JSONDecodeError:
                arguments = None
            if function is None or arguments is None:
                result = "error"
            else:
                result = str(function(**arguments))
            messages.append({"role": "tool", "id": call["id"], "content": result})
    return "max_steps", "The limit is reached."


def for_ever(chat, task, functions, max_steps):
    messages = [{"role": "user", "content": task}]
    while True:
        reply = chat(messages)
        if not reply["calls"]:
            return "answer", reply["text"]
        for call in reply["calls"]:
            try:
                result = str(functions[call["name"]](**json.loads(call["arguments"])))
            except Exception as error:
                result = f"error: {error!r}"
            messages.append({"role": "tool", "id": call["id"], "content": result})


def recursive(chat, task, functions, max_steps, messages=None):
    messages = messages or [{"role": "user", "content": task}]
    if max_steps == 0:
        return "max_steps", ""
    reply = chat(messages)
    if not reply["calls"]:
        return ["answer", reply["text"]]
    for call in reply["calls"]:
        try:
            result = {
                "ok": True,
                "result": functions[call["name"]](**json.loads(call["arguments"])),
            }
        except Exception as error:
            result = {"ok": False, "error": type(error).__name__}
        messages = [*messages, {"role": "tool", "content": json.dumps(result)}]
    return recursive(chat, task, functions, max_steps - 1, messages)


def test_repaired_loop():
    def prints(chat, task, functions, max_steps):
        chat([{"role": "user", "content": task}])

    def never_runs(chat, task, functions, max_steps):
        for _ in range(max_steps):
            reply = chat([{"role": "user", "content": task}])
            if not reply["calls"]:
                return "answer", reply["text"]
        return "max_steps", ""

    assert_classifies(
        "03.3",
        right=[loop, recursive, with_fault(fault="None")],
        wrong=[
            (published, "The limit of steps is reached."),
            (prints, "returns None"),
            (with_fault(pair=False), "answer alone"),
            (half_repaired, "arguments that are broken JSON"),
            (reads_json_carefully, "an argument that is missing"),
            (with_fault(fault="first call only"), "gave 1 results"),
            (with_fault(fault="silent"), "never learns why"),
            (with_fault(fault="gives up"), "gives up at"),
            (with_fault(fault="no word"), "does not say that it is an error"),
            (with_fault(again=1), "asked the model 2 times"),
            (with_fault(stop="answer"), "At the limit"),
            (for_ever, "more than 30 times"),
            (never_runs, "not shown the result"),
            (lambda chat, task: ("answer", ""), "TypeError"),
            (("answer", "Hello!"), "should be a function"),
        ],
    )


def test_a_loop_without_end_is_ended():
    chat = Chat({"text": "", "calls": []})
    with pytest.raises(RunsOn):
        while True:
            chat([])


def seen(observations, *, below=10, last=True, needs_ok=True, order=True, mail_ok=True):
    degrees = None
    events = observations if order else sorted(observations, key=lambda e: e["tool"])
    for each in events:
        if each["tool"] == "get_weather" and (each["ok"] or not needs_ok):
            found = json.loads(each["content"]).get("temp_c", -99)
            degrees = found if last or degrees is None else degrees
        if each["tool"] == "send_email" and (each["ok"] or not mail_ok):
            if degrees is None or degrees >= below:
                return f"An e-mail went out at {degrees} degrees."
    return None


def but(**changes):
    return lambda observations: seen(observations, **changes)


def test_condition():
    def by_index(observations):
        for place, each in enumerate(observations):
            if each["tool"] == "send_email" and each["ok"]:
                before = [
                    json.loads(e["content"])["temp_c"]
                    for e in observations[:place]
                    if e["tool"] == "get_weather" and e["ok"]
                ]
                if not before or not before[-1] < 10:
                    return "The condition was not met."

    def in_reverse(observations):
        mails = [n for n, e in enumerate(observations) if e["tool"] == "send_email" and e["ok"]]
        for mail in mails:
            for each in reversed(observations[:mail]):
                if each["tool"] == "get_weather" and each["ok"]:
                    if json.loads(each["content"])["temp_c"] >= 10:
                        return "Too warm."
                    break
            else:
                return "Nobody looked."
        return None

    def any_weather(observations):
        tools = [each["tool"] for each in observations]
        if "send_email" in tools and "get_weather" not in tools:
            return "Nobody looked."
        return None

    def by_words(observations):
        cold = any("temp_c" in each["content"] for each in observations)
        return None if cold else "No temperature."

    assert_classifies(
        "03.4",
        right=[seen, by_index, in_reverse],
        wrong=[
            (but(below=11), "10 degrees are not below 10"),
            (but(below=0), "2 degrees were seen"),
            (but(last=False), "The last weather before the e-mail counts"),
            (but(needs_ok=False), "could not be read"),
            (but(order=False), "after the e-mail"),
            (but(mail_ok=False), "nothing went out"),
            (any_weather, "12 degrees were seen"),
            (by_words, "stories are judged wrongly"),
            (lambda observations: None, "nobody looked at the weather"),
            (lambda observations: "No!", "stories are judged wrongly"),
            (lambda observations: seen(observations) is not None, "not the bool"),
            (lambda observations: seen(observations) or "", "no complaint"),
            (lambda observations: observations[0]["tool"], "IndexError"),
            (None, "should be a function"),
        ],
    )
