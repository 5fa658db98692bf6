"""The claim check: what it must flag, what it must let pass, and how often it is wrong."""

import ast
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.claims import KINDS, Finding, check_claims, score
from course_utils.code_trace import Call, CodeRun, CodeStep


def read(name):
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))["run"]


RUNS, UNSEEN = read("claims_runs.toml"), read("claims_runs_unseen.toml")


def build(record):
    """A CodeRun of one record of the file."""
    steps = []
    for number, part in enumerate(record["step"], 1):
        code = part.get("code")
        ast.parse(code or "")  # a slip in the file would be judged as the agent's
        calls = tuple(Call(**call) for call in part.get("calls", ()))
        results = "\n".join(call.result for call in calls if call.ok)
        seen = part.get("logs", results if code is None or "print(" in code else "")
        if code is not None:
            seen = f"Execution logs:\n{seen}\nLast output from code snippet:\nNone"
        error = part.get("error", "")
        steps.append(
            CodeStep(number, part.get("text", ""), code, calls, "" if error else seen, error)
        )
    if record.get("forced"):
        steps.append(CodeStep(len(steps) + 1, record["answer"], kind="forced", is_final=True))
    else:
        steps[-1] = CodeStep(**{**vars(steps[-1]), "is_final": True})
    tools = dict.fromkeys(record["tools"], "")
    stop = "max_steps" if record.get("forced") else "answer"
    return CodeRun(record["task"], tools, tuple(steps), record["answer"], stop)


BY_ID = {record["id"]: record for record in RUNS}
PUBLISHED = ["weather-glued", "bond-from-the-role", "script-never-run"]
# What the rules cannot see, as `check_claims` says: a word of state that they do not know, a number
# that code computed from an invented one, a wrong conclusion; and a difference that words worked
# out looks invented.
MISSED = {"vague-but-invented", "computed-from-nothing", "wrong-conclusion-from-right-numbers"}
FALSE_ALARMS = {"difference-in-words"}


def kinds(run):
    return {finding.kind for finding in check_claims(run)}


def test_the_set_is_large_enough_to_say_both():
    assert sum(record["good"] for record in RUNS) >= 12
    assert sum(not record["good"] for record in RUNS) >= 12
    assert len(BY_ID) == len(RUNS)
    assert {kind for record in RUNS for kind in record.get("kinds", ())} == set(KINDS)


@pytest.mark.parametrize("record", RUNS, ids=BY_ID)
def test_bad_runs_are_flagged_for_what_is_wrong_and_good_ones_pass(record):
    got = kinds(build(record))
    if record["good"]:
        assert bool(got) == (record["id"] in FALSE_ALARMS), got
    elif record["id"] in MISSED:
        assert not got
    else:
        assert set(record["kinds"]) <= got


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_failures_are_flagged(name):
    assert set(BY_ID[name]["kinds"]) <= kinds(build(BY_ID[name]))


def test_precision_and_recall_by_exact_counts():
    counted = score((build(record), record["good"]) for record in RUNS)
    assert repr(counted) == "26 of 29 bad runs flagged, 1 of 30 good runs flagged (false alarms)"
    assert (counted.precision, counted.recall) == (26 / 27, 26 / 29)
    assert (score([]).precision, score([]).recall) == (None, None)


def test_on_runs_that_the_rules_were_not_made_for_it_is_wrong_more_often():
    counted = score((build(record), record["good"]) for record in UNSEEN)
    assert repr(counted) == "9 of 10 bad runs flagged, 3 of 10 good runs flagged (false alarms)"
    wrong = {r["id"] for r in UNSEEN if bool(check_claims(build(r))) == r["good"]}
    assert wrong == {"longest-river", "abbreviated", "stock-and-price", "late-told-as-on-time"}


def test_a_finding_says_what_and_where():
    glued = check_claims(build(BY_ID["weather-glued"]))
    assert (
        Finding("contradicting_sources", "13 °C", "13 °C (step 2) against +16° (step 2)") in glued
    )
    assert any("partly cloudy (step 2) against clear sky (step 2)" in f.evidence for f in glued)
    bond = check_claims(build(BY_ID["bond-from-the-role"]))
    assert bond[0].claim.startswith("James Bond's car from the latest Bond movie")
    assert bond[1] == Finding("tool_never_used", "web_search", "offered, and never used")


def one_step(task, answer, result="", ok=True, tools=("web_search",)):
    calls = (Call("web_search", {"query": "x"}, result, ok),) if result else ()
    step = CodeStep(1, answer, None, calls, result if ok else "", is_final=True)
    return CodeRun(task, dict.fromkeys(tools, ""), (step,), answer)


@pytest.mark.parametrize(
    ("result", "answer", "flagged"),
    [
        ("Oslo: 13 °C", "13 °C in Oslo.", False),
        ("Oslo: 13.4 °C", "13 °C in Oslo.", False),
        ("Oslo: 13 °C", "14 °C in Oslo.", True),
        ("Oslo: wind 13 km/h", "13 °C in Oslo.", True),
        ('{"city": "Oslo", "temp": 13}', "13 degrees Celsius.", False),
        ("Oslo: 1,300 m", "1300 metres above the sea.", False),
        ("The sky is clear.", "It is sunny.", False),
        ("The sky is not clear.", "It is clear.", True),
        ("Rain in Oslo.", "No rain in Oslo.", False),
        ("Harald Hardrada founded Oslo.", "Harald Hardrada founded it.", False),
        ("Somebody founded Oslo.", "It was Harald Hardrada who founded it.", True),
        ("Order A-17 was shipped.", "A-17 was shipped.", False),
        ("Order A-17 was shipped.", "A-18 was shipped.", True),
        ("Closed on Monday.", "Tuesday.", True),
    ],
)
def test_a_claim_needs_an_observation_of_the_same_kind(result, answer, flagged):
    found = kinds(one_step("What about Oslo?", answer, result))
    assert ("no_supporting_observation" in found) == flagged


def test_a_failed_call_supports_nothing():
    assert not kinds(one_step("Oslo?", "13 °C.", "Oslo: 13 °C"))
    assert "no_supporting_observation" in kinds(one_step("Oslo?", "13 °C.", "Oslo: 13 °C", False))


def two_sources(first, second, answer, task="What is the temperature in Oslo?"):
    calls = tuple(Call("web_search", {"query": text}, text) for text in (first, second))
    step = CodeStep(1, answer, None, calls, f"{first}\n{second}", is_final=True)
    return CodeRun(task, {"web_search": ""}, (step,), answer)


@pytest.mark.parametrize(
    ("first", "second", "answer", "flagged"),
    [
        ("Oslo: 4 °C", "Oslo: 9 °C", "4 °C.", True),
        ("Oslo: 4 °C", "Oslo: 4 °C, wind 9 km/h", "4 °C.", False),
        ("Oslo: 4 °C", "Bergen: 9 °C", "Oslo has 4 °C.", False),
        ("Oslo: 4 °C", "Tomorrow in Oslo: 9 °C", "4 °C.", False),
        ("Oslo: 4 °C", "Oslo: 9 °C", "One page says 4 °C, another 9 °C.", False),
        ("Oslo: clear sky, 4 °C", "Oslo: rain, 4 °C", "Clear, 4 °C.", True),
        ("Oslo: 4 °C", "Oslo: 39 °F", "4 °C.", False),
    ],
)
def test_sources_contradict_each_other_about_one_thing_at_one_time(first, second, answer, flagged):
    found = kinds(two_sources(first, second, answer))
    assert ("contradicting_sources" in found) == flagged


def test_a_second_look_replaces_the_first():
    calls = tuple(Call("get_balance", {"of": "Ana"}, f"Ana has {n} €") for n in (90, 40))
    step = CodeStep(1, "Ana has 40 €.", None, calls, "", is_final=True)
    assert not kinds(CodeRun("What has Ana?", {"get_balance": ""}, (step,), "Ana has 40 €."))


@pytest.mark.parametrize(
    ("task", "flagged"),
    [
        ("Search for the height of Oslo.", True),
        ("Please look up how high Oslo is.", True),
        ("How high is Oslo? Do not search, just say that you don't know.", False),
        ("How high is Oslo? If you don't know, search.", False),
        ("Tell me about research.", True),  # a noun; the rule reads words, not grammar
    ],
)
def test_an_instruction_is_a_verb_that_nothing_forbids(task, flagged):
    assert ("instruction_ignored" in kinds(one_step(task, "I don't know."))) == flagged


SCRIPT = "Run this:\n```python\nnumbers = [1, 2]\nprint(sum(numbers))\n```"


@pytest.mark.parametrize(
    ("code", "error", "flagged"),
    [
        ("numbers = [1, 2]\nprint(sum(numbers))", "", False),
        ("numbers = [1, 2]\nprint(sum(numbers))", "NameError: x", True),
        ("text = '''numbers = [1, 2]\nprint(sum(numbers))'''\nfinal_answer(text)", "", True),
        ("exec(text)", "", False),
        ("numbers = (", "Error in code parsing: ", True),
    ],
)
def test_a_script_has_run_only_as_code(code, error, flagged):
    step = CodeStep(1, "", code, error=error, is_final=True)
    run = CodeRun(SCRIPT, {}, (step,), "done")
    assert ("instruction_ignored" in kinds(run)) == flagged


@given(st.text(), st.text(), st.text())
def test_any_text_is_checked_without_an_error(task, answer, result):
    for code in (None, result):
        step = CodeStep(1, answer, code, (Call("web_search", {"q": task}, result),), result)
        for finding in check_claims(CodeRun(task, {"web_search": ""}, (step,), answer)):
            assert finding.kind in KINDS and finding.evidence


@given(st.integers(2, 99_999), st.sampled_from(["°C", "€", "km/h", ""]))
def test_what_was_observed_is_never_called_unsupported(value, unit):
    text = f"Oslo: {value} {unit}".strip()
    assert "no_supporting_observation" not in kinds(one_step("Oslo?", text, text))
