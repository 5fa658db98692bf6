"""Checks of notebook 04, tool contracts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.calls import AnswerFailed, filled
from course_utils.exercises.feedback import Feedback


def attempt(function: Any, *args: Any) -> Any:
    """Call a learner's function; a stub that still returns ... counts as not attempted."""
    result = call(function, *args)
    if result is ...:
        raise AnswerFailed(Feedback("open", "Replace ... by your code and run the cells again."))
    return result


# -- 04.1: an exception becomes data


class Refused(ValueError):
    """An error of a tool that has a code for programs, as the world's errors have."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def _add(a: int, b: int) -> int:
    return a + b


def _pay(amount: str) -> str:
    raise Refused("'89,00' is not an amount. Use a point, such as 12.50.", "bad_amount")


def _visit(city: str) -> str:
    raise Refused('There is no city "Oz".\nCheck the spelling.', "city_not_found")


def _divide(a: int, b: int) -> float:
    return a / b


# Function, arguments, the code that must be in "error", words that must be in "hint".
FAILING = [
    (_pay, {"amount": "89,00"}, "bad_amount", "Use a point"),
    (_visit, {"city": "Oz"}, "city_not_found", 'no city "Oz"'),
    (_divide, {"a": 1, "b": 0}, "", "division by zero"),
]


@exercise(
    "04.1",
    title="An exception becomes data",
    hints=[
        "The model reads text: json.dumps makes JSON text of a dict.",
        "The dict has three keys: ok is False, error is the code, hint is what the error says.",
        'return json.dumps({"ok": False, "error": code, "hint": str(error)})',
    ],
)
def as_data(answer: Any) -> Feedback:
    result = attempt(answer, _add, {"a": 2, "b": 3})
    if result not in (5, "5"):
        return wrong(f"add(2, 3) works, and should give 5 as before, not {describe(result)}.")
    for function, arguments, code, words in FAILING:
        feedback = _error_text(attempt(answer, function, dict(arguments)), code, words)
        if feedback is not None:
            return feedback
    return right("One line of data: a name for programs, a sentence for the model, no stack trace.")


def _error_text(text: Any, code: str, words: str) -> Feedback | None:
    if isinstance(text, Mapping):
        return wrong("That is a dict. A tool message holds text: make JSON of it.")
    if not isinstance(text, str):
        return wrong(f"Return a text when the tool fails, not {describe(text)}.")
    if "Traceback" in text:
        return wrong("A stack trace is in it: that is for you, in a log, not for the model.")
    try:
        data = json.loads(text)
    except ValueError:
        return wrong(f"This is no JSON: {short(text)}. json.dumps takes care of the quotes.")
    if not isinstance(data, dict):
        return wrong(f"The JSON should be an object, not {describe(data)}.")
    missing = [key for key in ("ok", "error", "hint") if key not in data]
    if missing:
        return wrong(f"The key {missing[0]!r} is missing.")
    if data["ok"] is not False:
        return wrong(f"ok should be false: the tool failed. It is {data['ok']!r}.")
    if not isinstance(data["error"], str) or not data["error"]:
        return wrong(f"error should be a name as text, not {describe(data['error'])}.")
    if code not in data["error"]:
        return wrong(
            f"error is {data['error']!r}; this error carries its own code, {code!r}: "
            "programs decide by that."
        )
    if words.casefold() not in str(data["hint"]).casefold():
        return wrong(
            f"hint is {short(data['hint'])}: what the error itself says is lost, and with it "
            "what the model should do."
        )
    return None


# -- 04.2: what happened under the loop; a test compares this with the notebook's run

RETRIED = {"requests": 5, "errors_seen": 2, "waits": 2, "later": "Oslo"}
MISREAD = {
    "requests": "the requests are the failed tries, and the one that ended each call",
    "errors_seen": "count the observations that begin with ok: false; retries are not among them",
    "waits": "count the failed tries after which the loop waited more than 0 seconds",
    "later": "one failure is transient, and was given up because the service asked for too much",
}


@exercise(
    "04.2",
    title="Read what happened under the loop",
    hints=[
        "A permanent failure is a request too, though it was never tried again.",
        "Paris took three requests. The model saw one observation for it, and no failure.",
        "rate_limited will pass by itself; city_not_found will not.",
    ],
)
def read_the_tries(answer: Any) -> Feedback:
    answer = filled(answer, RETRIED)
    mistakes = [key for key in RETRIED if _plain(answer[key]) != _plain(RETRIED[key])]
    if not mistakes:
        return right("Five requests, three observations: the model sees what it can act on.")
    first, given = mistakes[0], answer[mistakes[0]]
    verdict = partly if len(mistakes) < 3 else wrong
    special = {
        ("requests", 3): "3 is the number of calls, and Paris alone was asked three times",
        ("requests", 2): "2 is the number of retries; the first tries are requests as well",
        ("requests", 4): "the call that failed for good reached the service as well",
        ("errors_seen", 4): "two of the failures were over before the model could see them",
        ("later", "pariis"): "asking again does not make a city of that name",
        ("later", "paris"): "Paris has been answered",
    }
    why = special.get((first, _plain(given)), MISREAD[first])
    return verdict(f"{first} is not {short(given)}: {why}.")


def _plain(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


# -- 04.3: a key for a write

PAY = {"invoice_id": "INV-004217", "amount_eur": 89.0}
SWAPPED = {"amount_eur": 89.0, "invoice_id": "INV-004217"}
# Another action, and the sentence for a key that does not tell it apart.
OTHERS = [
    (("run-1", "pay_invoice", {**PAY, "invoice_id": "INV-004218"}), "another invoice"),
    (("run-1", "pay_invoice", {**PAY, "amount_eur": 8.9}), "another amount"),
    (("run-1", "open_ticket", PAY), "another tool with the same arguments"),
    (("run-2", "pay_invoice", PAY), "another run: next month's payment would never happen"),
]


@exercise(
    "04.3",
    title="A key for a write",
    hints=[
        "Equal actions, equal keys: the key may depend on nothing but the three things given.",
        "Two dicts that are equal can be written in two orders. json.dumps has an option for that.",
        "return json.dumps([run_id, name, arguments], sort_keys=True)",
    ],
)
def key_for(answer: Any) -> Feedback:
    key = attempt(answer, "run-1", "pay_invoice", dict(PAY))
    if not isinstance(key, str) or not key:
        return wrong(f"The key should be a text that is not empty, not {describe(key)}.")
    if attempt(answer, "run-1", "pay_invoice", dict(PAY)) != key:
        return wrong("The same call twice gives two keys, so a second try would pay again.")
    if attempt(answer, "run-1", "pay_invoice", dict(SWAPPED)) != key:
        return wrong(
            "The same arguments in another order give another key: a model that writes the amount "
            "first would pay again."
        )
    for other, what in OTHERS:
        run_id, name, arguments = other
        if attempt(answer, run_id, name, dict(arguments)) == key:
            return wrong(f"The key stays the same for {what}. These are two actions.")
    nested = {"to": {"name": "Ana", "address": "ana@example.com"}, "lines": [1, 2]}
    turned = {"lines": [1, 2], "to": {"address": "ana@example.com", "name": "Ana"}}
    first, second = (attempt(answer, "run-1", "send", each) for each in (nested, turned))
    if first != second:
        return wrong("Inside an argument the order of keys still counts: nested dicts are equal.")
    if attempt(answer, "run-1", "send", {**nested, "lines": [2, 1]}) == first:
        return wrong("The order within a list means something: [1, 2] and [2, 1] are two calls.")
    return right("The same action has the same key, however often and in whatever order it comes.")


# -- 04.4: numbers that nothing stands behind


def _saw(content: Any, ok: bool = True) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"ok": ok, "content": text}


COLD = _saw({"city": "Moscow", "temp_c": 2, "sky": "cloudy"})
FROST = _saw({"city": "Oslo", "temp_c": -12, "sky": "clear"})
MILD = _saw({"city": "Paris", "temp_c": 21.5, "sky": "clear"})
HOT = _saw({"city": "Madrid", "temp_c": 33, "sky": "sunny"})
DOWN = _saw({"ok": False, "error": "timeout", "hint": "No answer within 30 s."}, ok=False)

# Answer, question, observations, the numbers without support, and the sentence for a mistake.
STORIES: list[tuple[str, str, list[dict[str, Any]], list[float], str]] = [
    ("It is 2 degrees.", "Weather in Moscow?", [COLD], [], "2 was observed"),
    (
        "It is 25 degrees in Moscow.",
        "Weather in Moscow?",
        [COLD],
        [25],
        "2 was observed and 25 is said: compare numbers, not pieces of text",
    ),
    (
        "It is 3 degrees in Madrid.",
        "Weather in Madrid?",
        [HOT],
        [3],
        "33 was observed, and 3 is only a piece of its text",
    ),
    ("It is 18 degrees.", "Weather in Rome?", [], [18], "nothing was observed, and 18 is said"),
    (
        "It is 30 degrees in Rome.",
        "Weather in Rome?",
        [DOWN],
        [30],
        "the 30 stands in an observation that failed; only successful ones count",
    ),
    (
        "I could not get the weather.",
        "Weather in Rome?",
        [DOWN],
        [],
        "an answer without numbers claims none",
    ),
    (
        "Of the 3 cities I know one: Moscow has 2 degrees.",
        "Weather in these 3 cities?",
        [COLD],
        [],
        "the 3 is the user's own, from the question",
    ),
    ("Oslo has -12 degrees.", "Weather in Oslo?", [FROST], [], "-12 was observed"),
    (
        "Oslo has 12 degrees.",
        "Weather in Oslo?",
        [FROST],
        [12],
        "-12 was observed and 12 is said: the sign counts",
    ),
    ("Paris has 21.5 degrees.", "Paris?", [MILD], [], "21.5 was observed, point and all"),
    (
        "Paris has 21 degrees.",
        "Paris?",
        [MILD],
        [21],
        "21.5 was observed and 21 is said; they are two numbers",
    ),
    (
        "Moscow has 2, Oslo has -12, Rome has 30 degrees.",
        "Moscow, Oslo, Rome?",
        [COLD, FROST, DOWN],
        [30],
        "each number needs its support; one invented among two true ones counts",
    ),
    ("It is 2.0 degrees.", "Weather in Moscow?", [COLD], [], "2.0 and 2 are one number"),
]


@exercise(
    "04.4",
    title="Numbers that nothing stands behind",
    hints=[
        r're.findall(r"-?\d+(?:\.\d+)?", text) finds the numbers of a text. Compare floats.',
        "Collect the numbers of the question and of the observations that are ok. Only then look "
        "at the answer.",
        "return [n for n in numbers(answer) if n not in known], where known holds the numbers of "
        'the question and of each["content"] for each in observations if each["ok"].',
    ],
)
def unsupported(answer: Any) -> Feedback:
    failed: list[str] = []
    for said, question, observations, wanted, why in STORIES:
        found = attempt(answer, said, question, [dict(each) for each in observations])
        numbers = _numbers(found)
        if numbers is None:
            return wrong(f"Return a list of numbers, not {describe(found)}.")
        if numbers != wanted:
            failed.append(f"{said!r}: it should be {wanted}, not {short(found)}; {why}.")
    if not failed:
        return right("No model is asked: the program knows what was observed, and compares.")
    if len(failed) == 1:
        return partly(failed[0])
    return wrong(f"{failed[0]} ({len(failed)} of {len(STORIES)} answers are judged wrongly.)")


def _numbers(found: Any) -> list[float] | None:
    """The numbers of an answer in order, each once; numbers written as text are accepted."""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Sequence | set):
        return None
    try:
        return sorted({float(each) for each in found})
    except (TypeError, ValueError):
        return None
