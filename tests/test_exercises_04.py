"""The checks of notebook 04: right answers pass, wrong ones are told their own mistake."""

import json
import re
import traceback
import uuid

from course_utils.exercises import check, hint, known
from course_utils.exercises.checks_04 import RETRIED
from course_utils.exercises.testing import assert_classifies


def test_every_exercise_has_three_hints():
    assert known("04") == ["04.1", "04.2", "04.3", "04.4"]
    for each in known("04"):
        assert len({hint(each).message for _ in range(3)}) == 3


def test_ellipsis_is_not_attempted():
    assert {check(each, ...).ok for each in known("04")} == {None}


def test_a_stub_that_returns_ellipsis_is_not_attempted():
    def as_data(function, arguments):
        try:
            return function(**arguments)
        except Exception:
            return ...

    stubs = {"04.1": as_data, "04.3": lambda *action: ..., "04.4": lambda *story: ...}
    assert {check(each, stub).ok for each, stub in stubs.items()} == {None}


def observer(make):
    """A function for 04.1 that makes its text of an error with `make(code, error)`."""

    def as_data(function, arguments):
        try:
            return function(**arguments)
        except Exception as error:
            return make(getattr(error, "code", type(error).__name__), error)

    return as_data


def as_json(ok=False, **parts):
    return json.dumps({"ok": ok, **parts})


def test_as_data():
    def text_result(function, arguments):
        return str(observer(lambda c, e: as_json(error=c, hint=str(e)))(function, arguments))

    assert_classifies(
        "04.1",
        right=[
            observer(lambda code, e: as_json(error=code, hint=str(e))),
            observer(lambda code, e: as_json(error=code, hint=f"{e} Try again.", more=1)),
            observer(lambda code, e: json.dumps({"hint": str(e), "error": code, "ok": False})),
            text_result,
        ],
        wrong=[
            (lambda function, arguments: function(**arguments), "Refused"),
            (observer(lambda code, e: {"ok": False, "error": code, "hint": str(e)}), "a dict"),
            (observer(lambda c, e: str({"ok": False, "error": c, "hint": str(e)})), "no JSON"),
            (
                observer(lambda c, e: f'{{"ok": false, "error": "{c}", "hint": "{e}"}}'),
                "no JSON",
            ),
            (observer(lambda c, e: as_json(error=c, hint=traceback.format_exc())), "stack trace"),
            (observer(lambda code, e: as_json(error=code)), "'hint' is missing"),
            (observer(lambda c, e: json.dumps({"error": c, "hint": str(e)})), "'ok' is missing"),
            (observer(lambda code, e: as_json(True, error=code, hint=str(e))), "should be false"),
            (observer(lambda c, e: as_json(error=type(e).__name__, hint=str(e))), "own code"),
            (observer(lambda code, e: as_json(error=code, hint="It failed.")), "is lost"),
            (observer(lambda code, e: None), "return a text when the tool fails"),
            (lambda function, arguments: as_json(error="x", hint="y"), "give 5 as before"),
        ],
    )


def test_read_the_tries():
    assert_classifies(
        "04.2",
        right=[
            RETRIED,
            {**RETRIED, "later": " oslo "},
            dict(reversed(RETRIED.items())),
        ],
        wrong=[
            ({**RETRIED, "requests": 3}, "Paris alone was asked three times"),
            ({**RETRIED, "requests": 2}, "the first tries are requests"),
            ({**RETRIED, "requests": 4}, "failed for good reached the service"),
            ({**RETRIED, "errors_seen": 4}, "before the model could see them"),
            ({**RETRIED, "errors_seen": 0}, "begin with ok: false"),
            ({**RETRIED, "waits": 3}, "more than 0 seconds"),
            ({**RETRIED, "later": "Pariis"}, "does not make a city"),
            ({**RETRIED, "later": "Paris"}, "has been answered"),
            ({**RETRIED, "later": ...}, "'later' is missing"),
            ([5, 2, 2, "Oslo"], "dict with the keys"),
        ],
    )


def test_key_for():
    def sorted_pairs(run_id, name, arguments):
        return f"{run_id}|{name}|{json.dumps(arguments, sort_keys=True)}"

    def hashed(run_id, name, arguments):
        text = json.dumps([run_id, name, arguments], sort_keys=True)
        return str(uuid.uuid5(uuid.NAMESPACE_URL, text))

    assert_classifies(
        "04.3",
        right=[
            lambda run_id, name, args: json.dumps([run_id, name, args], sort_keys=True),
            sorted_pairs,
            hashed,
        ],
        wrong=[
            (lambda run_id, name, args: uuid.uuid4().hex, "same call twice"),
            (lambda run_id, name, args: json.dumps([run_id, name, args]), "another order"),
            (lambda run_id, name, args: f"{run_id}{name}{args}", "another order"),
            (lambda run_id, name, args: f"{run_id} {name}", "another invoice"),
            (lambda run_id, name, args: f"{run_id} {name} {args['invoice_id']}", "another amount"),
            (lambda run_id, name, args: json.dumps([run_id, args], sort_keys=True), "another tool"),
            (lambda run_id, name, args: json.dumps([name, args], sort_keys=True), "another run"),
            (lambda run_id, name, args: f"{run_id} {name} {sorted(args.items())}", "nested"),
            (lambda run_id, name, args: run_id + name + "".join(sorted(str(args))), "two calls"),
            (lambda run_id, name, args: hash((run_id, name)), "should be a text"),
            (lambda run_id, name, args: None, "not None"),
            ("run-1", "should be a function"),
        ],
    )


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def unsupported(answer, question, observations, *, ok_only=True, ask=True, read=float):
    """A right answer to 04.4, with faults to switch on."""
    seen = [each["content"] for each in observations if each["ok"] or not ok_only]
    known = {read(n) for text in [*seen, question if ask else ""] for n in NUMBER.findall(text)}
    return [float(n) for n in NUMBER.findall(answer) if read(n) not in known]


def test_unsupported():
    def pieces(answer, question, observations):
        known = question + " ".join(each["content"] for each in observations if each["ok"])
        return [float(n) for n in NUMBER.findall(answer) if n not in known]

    def unsigned(answer, question, observations):
        def numbers(text):
            return {float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)}

        good = [each["content"] for each in observations if each["ok"]]
        known = set().union(*map(numbers, [question, *good]))
        return numbers(answer) - known

    def digits(answer, question, observations):
        good = " ".join(each["content"] for each in observations if each["ok"])
        known = re.findall(r"-?\d+", question + " " + good)
        return [n for n in re.findall(r"-?\d+", answer) if n not in known]

    assert_classifies(
        "04.4",
        right=[
            unsupported,
            lambda *story: set(unsupported(*story)),
            lambda *story: tuple(str(n) for n in unsupported(*story)),
        ],
        wrong=[
            (lambda *story: unsupported(*story, ok_only=False), "an observation that failed"),
            (lambda *story: unsupported(*story, ask=False), "the user's own"),
            (lambda *story: unsupported(*story, read=str), "2.0 and 2 are one number"),
            (lambda *story: unsupported(*story, read=lambda n: int(float(n))), "two numbers"),
            (unsigned, "the sign counts"),
            (pieces, "only a piece"),
            (digits, "it should be"),
            (lambda answer, question, observations: [], "25 is said"),
            (lambda *story: bool(unsupported(*story)), "a list of numbers"),
            (lambda *story: None, "not None"),
            (lambda answer, question: [], "TypeError"),
        ],
    )
