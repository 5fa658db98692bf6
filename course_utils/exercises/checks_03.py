"""Checks of notebook 03, the agent loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.feedback import Feedback

# What stands in the trace of exercise 03.1; a test compares it with the recorded run.
READ = {"asked": 3, "sent": 1, "looked": 0, "stop": "repeats"}
MISREAD = {
    "asked": "count the rows whose choice is send_email",
    "sent": "the outbox decides, and the observations say which calls were really done",
    "looked": "count the rows whose choice is get_weather",
    "stop": "it stands in the caption, after the word stopped",
}


@exercise(
    "03.1",
    title="Read a trace",
    hints=[
        "Each row is one call: what was chosen, and what came of it.",
        "A note under an observation says when a call was not done a second time.",
        "asked counts the calls, sent counts what the world did about them.",
    ],
)
def read_a_trace(answer: Any) -> Feedback:
    if not isinstance(answer, Mapping):
        return wrong(f"Give a dict with the keys {', '.join(READ)}, not {describe(answer)}.")
    missing = [key for key in READ if answer.get(key, ...) is ...]
    if missing:
        return wrong(f"The value of {missing[0]!r} is missing.")
    mistakes = [key for key in READ if _plain(answer[key]) != READ[key]]
    if not mistakes:
        return right("Three wishes, one e-mail, and nobody looked at the weather.")
    if answer["sent"] == READ["asked"]:
        return wrong("Asking is not doing: the model asked three times, the world did it once.")
    first = mistakes[0]
    verdict = partly if len(mistakes) < 3 else wrong
    return verdict(f"{first} is not {short(answer[first])}: {MISREAD[first]}.")


def _plain(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


RUNS = [(300, 60, 1), (300, 60, 2), (316, 59, 4), (100, 0, 5), (1000, 250, 20)]


def _tokens(first: int, growth: int, steps: int) -> int:
    return sum(first + growth * step for step in range(steps))


# Formulas that are nearly right: each with the sentence about it.
NEARLY: list[tuple[Callable[[int, int, int], float], str]] = [
    (
        lambda f, g, n: f + g * (n - 1),
        "That is the last prompt alone. Every prompt is read: add up all of them.",
    ),
    (lambda f, g, n: f + g * n, "That is the length of the next prompt, not what was read."),
    (lambda f, g, n: n * f, "That forgets the growth: the second prompt is longer than the first."),
    (
        lambda f, g, n: n * (f + g),
        "That lets each prompt grow by one step only; the third has grown by two.",
    ),
    (
        lambda f, g, n: n * f + g * (n - 1),
        "That lets each prompt grow by one step only; the third has grown by two.",
    ),
    (
        lambda f, g, n: n * f + g * n * (n + 1) / 2,
        "Nearly: the first prompt has not grown yet, so growth counts 0 + 1 + … + (steps - 1).",
    ),
    (
        lambda f, g, n: n * f + g * n * n,
        "Growth adds up to 0 + 1 + … + (steps - 1), which is about half of steps squared.",
    ),
    (
        lambda f, g, n: f + g * n * (n - 1) / 2,
        "That reads the first prompt once. It is read again in every step.",
    ),
    (
        lambda f, g, n: n * f + g * n * (n - 1),
        "Growth adds up to 0 + 1 + … + (steps - 1): half of steps times (steps - 1).",
    ),
]


@exercise(
    "03.2",
    title="What a run reads",
    hints=[
        "Write the prompts of three steps side by side: first, first + growth, first + 2 growth.",
        "The sum of 0 + 1 + … + (n - 1) is n (n - 1) / 2.",
        "return steps * first + growth * steps * (steps - 1) // 2",
    ],
)
def tokens_read(answer: Any) -> Feedback:
    if isinstance(answer, int | float):
        return wrong("Give the function itself, so that it can be tried on other runs.")
    found = [call(answer, *run) for run in RUNS]
    if None in found:
        return wrong("Your function returns None: does it end in a return?")
    bad = next((each for each in found if not _is_number(each)), None)
    if bad is not None:
        return wrong(f"Your function should return a number, not {describe(bad)}.")
    if all(abs(each - _tokens(*run)) < 0.5 for each, run in zip(found, RUNS, strict=True)):
        return right("It grows with the square of the steps: twice the steps, four times the cost.")
    for formula, sentence in NEARLY:
        if all(abs(each - formula(*run)) < 0.5 for each, run in zip(found, RUNS, strict=True)):
            return wrong(sentence)
    run, each = next(
        (run, each)
        for run, each in zip(RUNS, found, strict=True)
        if abs(each - _tokens(*run)) >= 0.5
    )
    return wrong(
        f"For first={run[0]}, growth={run[1]}, steps={run[2]} the prompts add up to "
        f"{_tokens(*run):,}, your function says {each:,}."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- 03.3: a loop, tried on models that are lists of replies


class RunsOn(SystemExit):
    """Ends a learner's loop that would never end; no `except Exception` catches it."""


class Chat:
    """A model for trying a loop: gives its replies in turn, the last one for ever."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies = replies
        self.prompts: list[list[dict[str, Any]]] = []

    def __call__(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        if len(self.prompts) > 30:
            raise RunsOn("it asked the model more than 30 times; does it know its limit?")
        self.prompts.append([dict(message) for message in messages])
        reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        return json.loads(json.dumps(reply))

    def results(self) -> list[str]:
        """The contents of the tool messages that the model was sent last."""
        last = self.prompts[-1] if self.prompts else []
        return [str(each.get("content")) for each in last if each.get("role") == "tool"]


def _says(text: str) -> dict[str, Any]:
    return {"text": text, "calls": []}


def _asks(*calls: tuple[str, str]) -> dict[str, Any]:
    made = [
        {"id": f"call_{n}", "name": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(calls, 1)
    ]
    return {"text": "", "calls": made}


def _add(a: int, b: int) -> int:
    return a + b


def _divide(a: int, b: int) -> float:
    return a / b


FUNCTIONS = {"add": _add, "divide": _divide}
ADD = ("add", '{"a": 2, "b": 3}')
# A call that cannot be run, and what a loop does with it that does not mind.
FAULTS = [
    (("subtract", "{}"), "a tool that does not exist"),
    (("add", '{"a": 2, "b": 3'), "arguments that are broken JSON"),
    (("add", '{"a": 2}'), "an argument that is missing"),
    (("add", "[2, 3]"), "arguments that are a list"),
    (("divide", '{"a": 1, "b": 0}'), "a tool that fails"),
]


@exercise(
    "03.3",
    title="Repair the published loop",
    hints=[
        'The limit is only reached after the for loop: return ("answer", text) inside of it.',
        "Put everything between the call and its result into a try: look up, json.loads, run.",
        'except Exception as error: result = json.dumps({"ok": False, "error": str(error)}). '
        "Append it as a tool message like any other result.",
    ],
)
def repaired_loop(answer: Any) -> Feedback:
    for judge in (_answers, _runs_calls, _survives, _stops):
        feedback = judge(answer)
        if feedback is not None:
            return feedback
    return right("It always ends, says why, and gives every call exactly one result.")


def _answers(loop: Any) -> Feedback | None:
    result = call(loop, Chat(_says("Hello!")), "Hi", dict(FUNCTIONS), 3)
    if result is None:
        return wrong("When the model answers, your loop returns None: return the reason and text.")
    if isinstance(result, str):
        if "hello" in result.casefold():
            return wrong('It returns the answer alone: return a pair, ("answer", text).')
        return wrong(f"The model answered Hello!, and your loop returned {result!r}.")
    if not isinstance(result, tuple | list) or len(result) != 2:
        return wrong(f"Return a pair of reason and text, not {describe(result)}.")
    if tuple(result) != ("answer", "Hello!"):
        return wrong(f'The model answered at once: return ("answer", "Hello!"), not {result!r}.')
    return None


def _runs_calls(loop: Any) -> Feedback | None:
    chat = Chat(_asks(ADD), _says("5"))
    result = call(loop, chat, "2 + 3?", dict(FUNCTIONS), 3)
    if tuple(result or ()) != ("answer", "5") or "5" not in " ".join(chat.results()):
        return wrong("The model called add(2, 3) and was not shown the result 5.")
    both = Chat(_asks(ADD, ("add", '{"a": 20, "b": 30}')), _says("5 and 50"))
    call(loop, both, "2 + 3, and 20 + 30?", dict(FUNCTIONS), 3)
    if len(both.results()) != 2:
        return wrong(f"A reply with two calls gave {len(both.results())} results: each needs one.")
    return None


def _survives(loop: Any) -> Feedback | None:
    for fault, what in FAULTS:
        chat = Chat(_asks(fault), _says("sorry"))
        try:
            result = loop(chat, "Go on.", dict(FUNCTIONS), 3)
        except RunsOn as error:
            return wrong(f"With {what} {error}")
        except Exception as error:
            return wrong(
                f"It does not survive {what}: {type(error).__name__}. Make the error a result."
            )
        if len(chat.prompts) == 1:
            return wrong(f"It gives up at {what}. Tell the model, and let it go on.")
        if not chat.results():
            return wrong(f"After {what} the call has no result: the model never learns why.")
        if tuple(result or ()) != ("answer", "sorry"):
            return wrong(f"After {what} the model answered, and your loop returned {result!r}.")
        if not any(word in chat.results()[0].casefold() for word in ("error", "false", "fail")):
            return wrong(f"After {what} the result does not say that it is an error.")
    return None


def _stops(loop: Any) -> Feedback | None:
    for steps in (1, 4):
        chat = Chat(_asks(ADD))
        result = call(loop, chat, "2 + 3?", dict(FUNCTIONS), steps)
        asked = len(chat.prompts)
        if asked != steps:
            return wrong(f"With max_steps={steps} it asked the model {asked} times.")
        if not isinstance(result, tuple | list) or len(result) != 2 or result[0] != "max_steps":
            return wrong(f'At the limit it should return ("max_steps", text), not {result!r}.')
    return None


# -- 03.4: who checks the condition


def _saw(tool: str, content: Any, ok: bool = True) -> dict[str, Any]:
    return {
        "tool": tool,
        "ok": ok,
        "content": content if isinstance(content, str) else json.dumps(content),
    }


COLD = _saw("get_weather", {"city": "Moscow", "temp_c": 2, "sky": "cloudy"})
FROST = _saw("get_weather", {"city": "Moscow", "temp_c": -12, "sky": "clear"})
TEN = _saw("get_weather", {"city": "Moscow", "temp_c": 10, "sky": "cloudy"})
MILD = _saw("get_weather", {"city": "Moscow", "temp_c": 12, "sky": "cloudy"})
DOWN = _saw("get_weather", {"ok": False, "error": "timeout", "hint": "No answer."}, ok=False)
DATE = _saw("get_future_date", "2026-11-18")
SENT = _saw("send_email", "Sent to Ana.")
UNSENT = _saw("send_email", {"ok": False, "error": "rejected", "hint": "No."}, ok=False)

# Observations in order, whether to complain, and the sentence for a wrong verdict.
STORIES = [
    ([SENT], True, "An e-mail went out and nobody looked at the weather: complain."),
    ([COLD, SENT], False, "2 degrees were seen before the e-mail: that is as it should be."),
    ([FROST, SENT], False, "-12 degrees are below 10 as well: no reason to complain."),
    ([MILD, SENT], True, "12 degrees were seen, and the e-mail still went out: complain."),
    ([TEN, SENT], True, "10 degrees are not below 10: complain about the e-mail."),
    ([SENT, COLD], True, "The weather was looked up after the e-mail. Order counts: complain."),
    ([DOWN, SENT], True, "The weather could not be read, and the e-mail still went out: complain."),
    ([COLD], False, "No e-mail went out, so there is nothing to complain about."),
    ([], False, "Nothing happened, so there is nothing to complain about."),
    ([MILD, UNSENT], False, "The e-mail failed (ok is False): nothing went out, do not complain."),
    ([DATE, COLD, SENT], False, "Other tools may come first; their results are not the weather."),
    ([MILD, COLD, SENT], False, "The last weather before the e-mail counts, and it was 2 degrees."),
    ([COLD, SENT, SENT], False, "This is about the condition only, not about repeats."),
]


@exercise(
    "03.4",
    title="Who checks the condition",
    hints=[
        "Go through the observations in order and remember the last temperature that was seen.",
        'json.loads(each["content"])["temp_c"], but only if the tool is get_weather and ok.',
        "At a send_email that is ok: if no temperature was seen yet, or it is 10 or more, return "
        "a sentence. After the loop return None.",
    ],
)
def condition(answer: Any) -> Feedback:
    failed = []
    for story, complain, sentence in STORIES:
        result = call(answer, [dict(each) for each in story])
        if result is not None and not isinstance(result, str):
            return wrong(
                f"Return a sentence to complain, None if all is well, not {describe(result)}."
            )
        if isinstance(result, str) and not result.strip():
            return wrong("An empty text is no complaint: return None, or a sentence.")
        if (result is not None) != complain:
            failed.append(sentence)
    if not failed:
        return right("The program checks the condition, so no prompt can talk it away.")
    if len(failed) == 1:
        return partly(failed[0])
    return wrong(f"{failed[0]} ({len(failed)} of {len(STORIES)} stories are judged wrongly.)")
