"""Checks of notebook 03, the agent loop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.calls import filled
from course_utils.exercises.feedback import Feedback
from course_utils.exercises.loop_trial import first_fault

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
    answer = filled(answer, READ)
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
    feedback = first_fault(answer)
    if feedback is not None:
        return feedback
    return right("It always ends, says why, and gives every call exactly one result.")


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
