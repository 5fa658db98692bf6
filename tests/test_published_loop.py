"""The defects of a loop as tutorials publish it, each shown on a retelling and absent from ours.

`published` has the shape of the usual loop around a chat-completions server: look a function up
by name, unpack what the model wrote, append the result, give up after some rounds.
"""

import ast
import json

import nbformat
import pytest

from course_utils.agent import Limits, StopReason, run_agent
from course_utils.cli import places
from course_utils.errors import CourseError
from course_utils.messages import Message, Reply, ToolCall
from course_utils.models import scripted
from course_utils.tools import Tool, tool
from course_utils.trace import Observed, Told

LIMIT = "The limit of rounds is reached."


def published(chat, task, functions, rounds=3):
    messages = [{"role": "user", "content": task}]
    for _ in range(rounds):
        reply = chat(messages)
        if not reply["calls"]:
            print("Final answer:", reply["text"])
            break
        messages.append({"role": "assistant", "content": None, "calls": reply["calls"]})
        for call in reply["calls"]:
            arguments = json.loads(call["arguments"])
            result = str(functions.get(call["name"])(**arguments))
            messages.append({"role": "tool", "id": call["id"], "content": result})
    return LIMIT


def recite(*replies):
    rest = list(replies)
    return lambda messages: rest.pop(0)


def says(text):
    return {"text": text, "calls": []}


def asks(name, arguments):
    return {"text": "", "calls": [{"id": "call_1", "name": name, "arguments": arguments}]}


@tool
def get_forecast(city: str, days: int) -> dict:
    """Get the forecast of a city.

    Args:
        city: The city.
        days: How many days ahead.
    """
    return {"city": city, "days": days, "sky": None}


FUNCTIONS = {"get_forecast": get_forecast}


def ours(*replies, **settings):
    return run_agent(scripted(list(replies)), [get_forecast], "Go.", **settings)


def call_text(name, arguments):
    return json.dumps({"name": name, "arguments": arguments})


# -- an identifier with a space ------------------------------------------------------------------


def test_a_name_with_a_space_is_no_python():
    with pytest.raises(SyntaxError):
        ast.parse("KNOWN TOOLS = {}")


def test_a_tool_with_a_space_in_its_name_is_refused_when_it_is_made():
    with pytest.raises(CourseError, match="no spaces"):
        Tool("get forecast", "Get it.", None, print)


@pytest.mark.parametrize("path", places.all_notebooks(), ids=lambda path: path.stem)
def test_every_code_cell_of_the_course_is_python(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)


# -- a success that still returns the limit message ----------------------------------------------


def test_published_reports_the_limit_after_a_success(capsys):
    assert published(recite(says("Sunny.")), "Weather?", FUNCTIONS) == LIMIT
    assert "Sunny." in capsys.readouterr().out  # the answer is printed, and lost to the program


def test_ours_returns_the_answer_and_says_that_it_is_one():
    run = ours("Sunny.")
    assert (run.answer, run.stop_reason, run.steps) == ("Sunny.", StopReason.ANSWER, 1)


def test_ours_says_limit_only_at_the_limit():
    replies = [call_text("get_forecast", {"city": "Oslo", "days": n}) for n in (1, 2)]
    run = ours(*replies, limits=Limits(max_steps=2))
    assert (run.answer, run.stop_reason) == (None, StopReason.MAX_STEPS)
    assert '"days": 2' in run.partial and "Missing" in run.partial


def test_ours_answers_in_the_very_last_step():
    first = call_text("get_forecast", {"city": "Oslo", "days": 1})
    assert ours(first, "Windy.", limits=Limits(max_steps=2)).answer == "Windy."


# -- an unknown tool called as None --------------------------------------------------------------


def test_published_calls_none():
    with pytest.raises(TypeError, match="NoneType"):
        published(recite(asks("get_news", "{}")), "News?", FUNCTIONS)


def test_ours_tells_the_model_which_tools_there_are():
    run = ours(call_text("get_news", {}), "I cannot read news.")
    (observed,) = run.trace.of(Observed)
    error = json.loads(observed.content)
    assert (error["ok"], error["error"]) == (False, "unknown_tool")
    assert "get_forecast" in error["hint"]
    assert run.answer == "I cannot read news."


def test_a_tool_is_never_looked_up_among_the_program_s_own_names():
    run = ours(call_text("print", {"city": "Oslo"}), "No.")
    (observed,) = run.trace.of(Observed)
    assert json.loads(observed.content)["error"] == "unknown_tool"


# -- arguments unpacked unchecked ----------------------------------------------------------------

BAD = [
    ({"city": "Oslo"}, "days"),  # one is missing
    ({"city": "Oslo", "days": 1, "unit": "C"}, "unit"),  # one was invented
    ({"city": "Oslo", "days": "soon"}, "days"),  # wrong type
    ({"city": ["Oslo"], "days": 1}, "city"),
]


@pytest.mark.parametrize("arguments", [BAD[0][0], BAD[1][0]])
def test_published_crashes_on_arguments_that_do_not_fit(arguments):
    with pytest.raises(TypeError):
        published(recite(asks("get_forecast", json.dumps(arguments))), "Go.", FUNCTIONS)


def test_published_passes_a_wrong_type_on(capsys):
    text = json.dumps({"city": "Oslo", "days": "soon"})
    published(recite(asks("get_forecast", text), says("Fine.")), "Go.", FUNCTIONS)
    assert "Fine." in capsys.readouterr().out  # nobody has noticed


@pytest.mark.parametrize(("arguments", "named"), BAD)
def test_ours_checks_arguments_before_the_tool_runs(arguments, named):
    ran = []
    guarded = Tool.from_schema(get_forecast.schema(), lambda **values: ran.append(values))
    replies = scripted([call_text("get_forecast", arguments), "Sorry."])
    run = run_agent(replies, [guarded], "Go.")
    (observed,) = run.trace.of(Observed)
    error = json.loads(observed.content)
    assert error["error"] == "invalid_arguments" and named in error["hint"]
    assert ran == [] and run.answer == "Sorry."


# -- arguments that cannot be read at all --------------------------------------------------------


def test_published_crashes_on_broken_json():
    with pytest.raises(json.JSONDecodeError):
        published(recite(asks("get_forecast", '{"city": "Oslo", "days": 7*2}')), "Go.", FUNCTIONS)


def test_ours_tells_the_model_that_a_call_cannot_be_read():
    broken = '{"name": "get_forecast", "arguments": {"city": "Oslo", "days": 7*2}}'
    run = ours(broken, "Sorry.")
    (told,) = run.trace.of(Told)
    assert json.loads(told.text)["error"] == "unreadable_call"
    assert run.answer == "Sorry."


# -- a result that is no longer JSON -------------------------------------------------------------


def test_published_shows_the_model_python_instead_of_json():
    seen = []

    def chat(messages):
        seen[:] = messages
        return [asks("get_forecast", '{"city": "Oslo", "days": 1}'), says("ok")][len(messages) > 1]

    published(chat, "Go.", FUNCTIONS)
    with pytest.raises(json.JSONDecodeError):
        json.loads(seen[-1]["content"])


def test_ours_shows_the_model_json():
    run = ours(call_text("get_forecast", {"city": "Oslo", "days": 1}), "ok")
    (observed,) = run.trace.of(Observed)
    assert json.loads(observed.content) == {"city": "Oslo", "days": 1, "sky": None}


# -- a tool that fails, a reply with nothing in it -----------------------------------------------


def test_published_lets_the_error_of_a_tool_out():
    def fails(**arguments):
        raise RuntimeError("no connection")

    with pytest.raises(RuntimeError):
        published(recite(asks("get_forecast", "{}")), "Go.", {"get_forecast": fails})


def test_ours_makes_the_error_of_a_tool_a_result():
    def fails(**arguments):
        raise RuntimeError("no connection")

    broken = Tool.from_schema(get_forecast.schema(), fails)
    asked = call_text("get_forecast", {"city": "Oslo", "days": 1})
    run = run_agent(scripted([asked, "It is down."]), [broken], "Go.")
    (observed,) = run.trace.of(Observed)
    assert json.loads(observed.content)["hint"] == "no connection"
    assert run.answer == "It is down."


def test_published_takes_nothing_for_an_answer(capsys):
    published(recite(says(None)), "Go.", FUNCTIONS)
    assert "None" in capsys.readouterr().out


def test_ours_does_not_take_nothing_for_an_answer():
    run = ours("")
    assert (run.answer, run.stop_reason) == (None, StopReason.EMPTY)


# -- the same thing for ever ---------------------------------------------------------------------


def test_ours_notices_a_repeated_call_before_the_limit():
    again = call_text("get_forecast", {"city": "Oslo", "days": 1})
    run = ours(*[again] * 8, limits=Limits(max_steps=8))
    assert (run.stop_reason, run.steps) == (StopReason.REPEATS, 3)


def test_ours_keeps_call_and_result_together():
    calls = tuple(
        ToolCall(id, "get_forecast", {"city": city, "days": 1})
        for id, city in [("a", "Oslo"), ("b", "Rome")]
    )
    run = ours(Reply("(calls)", "scripted", "script", tool_calls=calls), "ok")
    results = [each for each in run.trace.messages if each.role == "tool"]
    assert [each.tool_call_id for each in results] == ["a", "b"]
    assert all(isinstance(each, Message) for each in results)
