"""Runs of real smolagents agents, with scripted replies, read back as data."""

import re

import pytest
from agent_kit import LOOK, MAIL, asks, says, world_tools
from hypothesis import given, settings
from hypothesis import strategies as st
from smolagents import CodeAgent, ToolCallingAgent, tool

from course_utils.agent import run_agent
from course_utils.claims import check_claims
from course_utils.code_trace import (
    Call,
    CodeRun,
    CodeStep,
    Invented,
    as_run,
    from_lines,
    invented_names,
    load_run,
    read_run,
    to_lines,
)
from course_utils.errors import CourseError
from course_utils.messages import Message, Reply, ToolCall
from course_utils.models import scripted
from course_utils.models.smolagents_model import CourseSmolModel
from course_utils.sandbox import sandbox_executor
from course_utils.show import View
from course_utils.show.runs import findings_table, growth_chart, steps_table
from course_utils.world.documents import Documents
from course_utils.world.world import World

TASK = "What is the weather in Paris?"


@tool
def web_search(query: str) -> str:
    """Search the web.

    Args:
        query: What to look for.
    """
    if query == "broken":
        raise ValueError("the service is down")
    return f"{query}: 13 °C and <b>partly</b> cloudy"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: Another.
    """
    return a + b


def model(*texts):
    """A model for smolagents that replies what is written here; 100, 200, … tokens in."""
    replies = [
        Reply(text, "scripted", "by hand", prompt_tokens=100 * place, output_tokens=place)
        for place, text in enumerate(texts, 1)
    ]
    return CourseSmolModel(scripted(replies))


def code_agent(*texts, **settings):
    return CodeAgent([web_search, add], model(*texts), verbosity_level=0, **settings)


def quiet(agent, task=TASK, **settings):
    """Run an agent; what it prints about its errors goes nowhere."""
    agent.logger.console.quiet = True
    agent.run(task, **settings)
    return read_run(agent)


SEARCHED = "Thought: I must look.\n<code>\nr = web_search('Paris')\nprint(r)\n</code>"
ANSWERED = "<code>\nfinal_answer('13 °C')\n</code>"


@pytest.fixture(scope="module")
def sandbox():
    """One executor for the tests of this file; each agent takes the record of its own run."""
    executor = sandbox_executor(seconds=60)
    yield executor
    executor.close()


# -- reading agents ------------------------------------------------------------------------------


def test_a_run_in_the_sandbox_has_calls_with_results(sandbox):
    loop = "<code>\nfor city in ['Oslo', 'Rome']:\n    web_search(query=city)\nadd(1, b=2)\n</code>"
    run = quiet(code_agent(SEARCHED, loop, ANSWERED, executor=sandbox))
    assert [(call.text, call.result, call.ok) for call in run.calls] == [
        ('web_search(query="Paris")', "Paris: 13 °C and <b>partly</b> cloudy", True),
        ('web_search(query="Oslo")', "Oslo: 13 °C and <b>partly</b> cloudy", True),
        ('web_search(query="Rome")', "Rome: 13 °C and <b>partly</b> cloudy", True),
        ("add(a=1, b=2)", "3", True),
    ]
    assert "13 °C and <b>partly" in run.steps[0].observation
    assert (run.answer, run.stop_reason, run.origin) == ("13 °C", "answer", "scripted")
    assert run.tools_used() == {"web_search": 3, "add": 1}
    assert run.tools_offered() == ["web_search", "add"]


def test_a_failed_call_is_told_from_one_that_succeeded(sandbox):
    failing = "<code>\nweb_search('Paris')\nweb_search('broken')\n</code>"
    run = quiet(code_agent(failing, ANSWERED, executor=sandbox))
    assert [call.ok for call in run.calls] == [True, False]
    assert "the service is down" in run.calls[1].result
    assert "the service is down" in run.steps[0].error
    assert run.tools_used()["web_search"] == 1


def test_two_agents_on_one_sandbox_keep_their_records_apart(sandbox):
    first = code_agent(SEARCHED, ANSWERED, executor=sandbox)
    quiet(first)
    second = quiet(code_agent("<code>\nadd(2, 2)\n</code>", ANSWERED, executor=sandbox))
    assert [call.name for call in second.calls] == ["add"]


def test_the_local_executor_leaves_calls_without_results():
    run = quiet(code_agent(SEARCHED, ANSWERED))
    assert run.calls == [Call("web_search", {"query": "Paris"}, None, True)]
    assert "(not recorded)" in repr(run)
    assert run.steps[0].observation.startswith("Execution logs:\nParis: 13 °C")


def test_each_step_has_what_it_added_and_what_it_read_again():
    run = quiet(code_agent(SEARCHED, ANSWERED))
    first, second = run.steps
    assert [message.role for message in first.added] == ["system", "user"]
    assert first.reread == 0 and second.reread == 2
    assert [message.role for message in second.added] == ["assistant", "assistant", "user"]
    assert second.added[0].content == SEARCHED
    assert second.added[-1].content.startswith("Observation:\nExecution logs:\nParis")
    assert (first.thought, first.code) == ("I must look.", "r = web_search('Paris')\nprint(r)")
    assert (first.tokens_in, second.tokens_in, second.tokens_out) == (100, 200, 2)
    assert run.growth() == [100, 200] and (run.tokens_in, run.tokens_out) == (300, 3)


def test_a_reply_without_code_is_an_error_that_costs_tokens():
    run = quiet(code_agent("It is sunny.", ANSWERED))
    first = run.steps[0]
    assert first.unreadable and first.code is None and not first.calls
    assert first.error.startswith("Error in code parsing")
    assert (first.tokens_in, run.steps[1].unreadable) == (100, False)
    assert run.rows()[0]["error"] == first.error and run.rows()[0]["observed"] == ""


def test_at_the_step_limit_the_model_is_asked_once_more():
    run = quiet(code_agent("<code>\nadd(1, 2)\n</code>", "It is <b>sunny</b>."), max_steps=1)
    last = run.steps[-1]
    assert (last.forced, last.number, last.kind, last.is_final) == (True, 2, "forced", True)
    assert (last.text, last.error) == ("It is <b>sunny</b>.", "")
    assert (run.answer, run.stop_reason) == ("It is <b>sunny</b>.", "max_steps")
    assert (last.tokens_in, last.tokens_out, last.origin) == (200, 2, "scripted")
    assert run.tokens_in == 300
    assert "asked once more" in repr(run)


def test_the_prompt_of_that_answer_is_rebuilt_as_it_was_sent():
    sent = []

    class Spy(CourseSmolModel):
        def generate(self, messages, *args, **settings):
            sent.append([str(part.content) for part in messages])
            return super().generate(messages, *args, **settings)

    agent = code_agent()
    replies = [Reply("<code>\nadd(1, 2)\n</code>", "scripted", "x"), Reply("3", "scripted", "x")]
    agent.model = Spy(scripted(replies))
    run = quiet(agent, max_steps=1)
    first, last = run.steps
    assert last.reread == 1 and last.reread + len(last.added) == len(sent[-1])
    whole = "".join(sent[-1]).replace("\\n", "\n")
    for message in (first.added[1], *last.added):  # the task is read again, the rest is new
        assert message.content[:40] in whole
    assert last.added[0].role == "system" and last.added[-1].content.endswith(TASK)


def test_a_tool_calling_agent_is_read_the_same_way():
    asked = '{"name": "web_search", "arguments": {"query": "Paris"}}'
    unknown = '{"name": "weather_api", "arguments": {}}'
    final = '{"name": "final_answer", "arguments": {"answer": "13 °C"}}'
    agent = ToolCallingAgent([web_search], model(asked, unknown, "?", final), verbosity_level=0)
    run = quiet(agent)
    assert [(call.text, call.ok) for call in run.calls] == [
        ('web_search(query="Paris")', True),
        ("weather_api()", False),
    ]
    assert run.calls[0].result == "Paris: 13 °C and <b>partly</b> cloudy"
    assert run.steps[2].unreadable and run.answer == "13 °C"
    assert invented_names(run) == [Invented(2, "weather_api", True)]
    assert all(step.code is None for step in run.steps)


def test_a_run_that_goes_on_reads_the_last_task_only():
    agent = code_agent(SEARCHED, ANSWERED, "<code>\nfinal_answer(add(1, 2))\n</code>")
    quiet(agent)
    run = quiet(agent, "And 1 + 2?", reset=False)
    assert (run.task, len(run.steps), run.answer) == ("And 1 + 2?", 1, "3")
    assert run.calls[0].text == "add(a=1, b=2)"


def test_plans_cost_tokens_and_belong_to_the_action_after_them():
    agent = code_agent("1. Look.<end_plan>", SEARCHED, ANSWERED, planning_interval=5)
    run = quiet(agent)
    assert [(step.kind, step.number) for step in run.steps] == [
        *[("plan", 1), ("action", 1), ("action", 2)]
    ]
    assert "1. Look." in run.steps[0].text and run.steps[0].tokens_in == 100
    assert run.origin == "scripted" and run.steps[0].origin == "scripted"


@pytest.mark.parametrize("wrong", [object(), None, "run"])
def test_what_is_no_agent_is_one_clear_error(wrong):
    with pytest.raises(CourseError, match="memory of steps"):
        read_run(wrong)
    with pytest.raises(CourseError, match="A run is a CodeRun"):
        as_run(wrong)


def test_an_agent_that_has_not_run_is_one_clear_error():
    with pytest.raises(CourseError, match="has not run yet"):
        read_run(code_agent())


# -- invented names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        (["weather_api('Paris')"], ["weather_api"]),
        (["print(web_search('x'))\nfinal_answer(1)"], []),
        (["def f(x):\n    return x\nf(1)"], []),
        (["def f(x):\n    return x", "f(1)"], []),
        (["f(1)", "def f(x):\n    return x"], ["f"]),
        (["import math\nmath.sqrt(4)\nfrom json import dumps as d\nd(1)"], []),
        (["search = web_search\nsearch('x')"], []),
        (["for g in [len]:\n    g('x')\nwith open('f') as h:\n    h()"], []),
        (["lambda q: q(1)"], []),
        (["f(g(1"], []),
        ([None], []),
        (["given(1)"], []),
    ],
)
def test_names_are_invented_if_nothing_before_defined_them(codes, found):
    steps = tuple(CodeStep(place, code=code) for place, code in enumerate(codes, 1))
    run = CodeRun(TASK, {"web_search": ""}, steps, given=("given",))
    assert [one.name for one in invented_names(run)] == found


@pytest.mark.parametrize("local", [True, False])
def test_the_errors_of_both_executors_name_the_invented_tool(local, sandbox):
    settings = {} if local else {"executor": sandbox}
    run = quiet(code_agent("<code>\nweather_api('x')\n</code>", ANSWERED, **settings))
    assert invented_names(run) == [Invented(1, "weather_api", True)]


# -- the course's own loop -----------------------------------------------------------------------


def test_a_trace_of_the_own_loop_reads_as_a_run():
    replies = [
        asks(LOOK, MAIL, prompt_tokens=100, cached_tokens=7, output_tokens=20),
        says("Done.", prompt_tokens=180, output_tokens=5),
    ]
    with World() as world:
        own = run_agent(scripted(replies), world_tools(world), "Tell Ana.")
    run = as_run(own)
    assert run == as_run(own.trace) and as_run(run) is run
    assert (run.task, run.answer, run.stop_reason) == ("Tell Ana.", "Done.", "answer")
    assert run.tools_used() == {"get_invoice": 1, "send_email": 1, "pay": 0}
    assert run.growth() == [100, 180] and run.steps[0].cached == 7
    assert [message.role for message in run.steps[1].added] == ["assistant", "tool", "tool"]
    assert (run.steps[0].reread, run.steps[1].reread) == (0, 2)
    assert run.calls[1].result == "Sent to Ana." and run.steps[1].is_final


# -- views ---------------------------------------------------------------------------------------


def test_text_and_html_say_the_same_and_escape():
    run = quiet(code_agent(SEARCHED, "no code", ANSWERED))
    text, html = repr(run), run._repr_html_()
    assert "step 1 · 100 tokens in, 1 out · scripted" in text
    assert text.endswith("[scripted · by hand · 3 steps · 600 tokens in, 6 out · answer]")
    table = steps_table(run)
    for part in ('web_search(query="Paris")', "Error in code parsing", "600 tokens in"):
        assert part in table.text and part in html.replace("&quot;", '"')
    assert "<b>partly" not in html and "<b>partly" in table.text
    assert "error" not in steps_table(quiet(code_agent(ANSWERED))).text


def test_the_parts_of_a_prompt_sum_to_its_tokens():
    run = quiet(code_agent(SEARCHED, "no code", "<code>\nadd(1, 2)\n</code>", "3"), max_steps=3)
    lengths = [sum(len(m.content) for m in step.added) for step in run.steps]
    steps = tuple(
        CodeStep(**{**vars(step), "tokens_in": size + 10})
        for step, size in zip(run.steps, [*_sums(lengths[:3]), lengths[3]], strict=True)
    )
    run = CodeRun(run.task, run.tools, steps, run.answer, run.stop_reason)
    parts = run.parts(len)
    assert [sum(part.values()) for part in parts] == run.growth()
    assert all(value >= 0 for part in parts for value in part.values())
    assert parts[0]["earlier steps"] == 0 and parts[0]["tool list"] > 100
    assert parts[0]["system prompt"] > 5_000
    assert [part["new"] for part in parts[1:3]] == lengths[1:3]
    assert [part["tool list"] for part in parts] == [parts[0]["tool list"]] * 3 + [0]
    chart = growth_chart(run, len)
    assert "earlier steps" in chart.text and "4 (limit)" in chart.text
    assert "<svg" in chart.html and "The prompts of 4 steps" in chart.html


def _sums(numbers):
    return [sum(numbers[: place + 1]) for place in range(len(numbers))]


def test_the_chart_without_a_counter_has_two_parts():
    steps = (CodeStep(1, tokens_in=20), CodeStep(2, tokens_in=50), CodeStep(3, tokens_in=40))
    chart = growth_chart(CodeRun(TASK, {}, steps[:2]))
    assert chart.text.splitlines()[1].split() == ["step", "read", "before", "new", "all"]
    chart = growth_chart(CodeRun(TASK, {}, steps))  # the third does not go on from the second
    rows = [line.split() for line in chart.text.splitlines()[3:]]
    assert rows == [["1", "0", "20", "20"], ["2", "20", "30", "50"], ["3", "40", "0", "40"]]
    assert "read before (at most)" in chart.text
    assert re.search(r'aria-label="[^"]*110 tokens together', chart.html)


def test_findings_are_a_table_or_a_sentence():
    run = CodeRun(TASK, {}, (CodeStep(1, "It is <b>sunny</b>."),), "It is <b>sunny</b>.")
    view = findings_table(check_claims(run), "Paris")
    assert isinstance(view, View) and "no_supporting_observation" in view.text
    assert findings_table([], "Oslo").text == "Oslo: the claim check found nothing."
    assert "found nothing" in findings_table([]).html


def test_a_step_is_found_by_its_number():
    run = CodeRun(TASK, {}, (CodeStep(1), CodeStep(2, "b")))
    assert run.step(2).text == "b"
    with pytest.raises(CourseError, match="2 steps, and none is 3"):
        run.step(3)


# -- on disk -------------------------------------------------------------------------------------


def test_a_real_run_survives_the_file(tmp_path):
    run = quiet(code_agent(SEARCHED, "no code", ANSWERED))
    run.save(tmp_path / "run.jsonl")
    assert load_run(tmp_path / "run.jsonl") == run
    first, *_, last = (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()
    assert first.startswith('{"event": "began"') and last.startswith('{"event": "ended"')


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no beginning"),
        (['{"event": "began", "task": "", "tools": {}, "given": [], "model": ""}'], "no end"),
        (["7"], "Line 1"),
        (['{"event": "flew"}'], "Line 1"),
        (['{"event": "observed", "step": 1}'], "Line 1"),
        (['{"event": "called", "step": 1, "nme": "f"}'], "Line 1"),
    ],
)
def test_a_broken_file_is_one_clear_error(lines, message):
    with pytest.raises(CourseError, match=message):
        from_lines(lines)


def test_a_missing_file_is_one_clear_error(tmp_path):
    with pytest.raises(CourseError, match="No run can be read from run.jsonl"):
        load_run(tmp_path / "run.jsonl")


text = st.text()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(text, values, max_size=3)
numbers = st.integers(0, 10**6)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=text,
    tool_calls=st.lists(st.builds(ToolCall, text, text, arguments), max_size=2).map(tuple),
    tool_call_id=st.none() | text,
    name=st.none() | text,
)
calls = st.builds(Call, name=text, arguments=arguments, result=st.none() | text, ok=st.booleans())
steps = st.builds(
    CodeStep,
    number=numbers,
    text=text,
    code=st.none() | text,
    calls=st.lists(calls, max_size=2).map(tuple),
    observation=text,
    error=text,
    tokens_in=numbers,
    tokens_out=numbers,
    cached=numbers,
    origin=text,
    is_final=st.booleans(),
    kind=st.sampled_from(["action", "plan", "forced"]),
    added=st.lists(messages, max_size=2).map(tuple),
    reread=numbers,
)
runs = st.builds(
    CodeRun,
    task=text,
    tools=st.dictionaries(text, text, max_size=3),
    steps=st.lists(steps, max_size=3).map(tuple),
    answer=st.none() | text,
    stop_reason=text,
    model=text,
    given=st.lists(text, max_size=2).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(runs)
def test_every_run_survives_its_lines_and_can_be_shown(run):
    lines = list(to_lines(run))
    assert all("\n" not in line for line in lines)
    assert from_lines(lines) == run
    assert run.label() in repr(run) and "<script" not in run._repr_html_()
    assert [sum(part.values()) for part in run.parts(len)] == run.growth()
    assert all(value >= 0 for part in run.parts(len) for value in part.values())
    invented_names(run)


def test_a_file_with_strange_line_breaks_survives(tmp_path):
    run = CodeRun("a\u2028b\x85c\rd", {}, (CodeStep(1, "x\x0cy\r\nz"),), "\x1c")
    run.save(tmp_path / "run.jsonl")
    assert load_run(tmp_path / "run.jsonl") == run


# -- the claim check on real pages ---------------------------------------------------------------

PAGES = Documents("wide_web")
WEATHER = "What is the current weather in Paris?"
BOND = "Generate me a photo of the car that James Bond drove in the latest movie"
DEBUG = (
    "I have some code that creates a bug: please debug it, then run it and return the final code"
)
SCRIPT = "numbers = [1, 2, 3]\n\nfor i in range(4):\n    print(numbers(i))\n"
FIXED = SCRIPT.replace("range(4)", "range(len(numbers))").replace("numbers(i)", "numbers[i]")


@tool
def search_pages(query: str) -> str:
    """Search the stored pages.

    Args:
        query: What to look for.
    """
    return "\n\n".join(f"[{page['title']}]\n{page['text']}" for page in PAGES.search(query))


@tool
def image_generator(prompt: str) -> str:
    """Make a picture.

    Args:
        prompt: What it shows.
    """
    return "picture_1"


@pytest.mark.parametrize(
    ("task", "programs", "expected"),
    [
        (
            WEATHER,
            [
                "print(search_pages('current weather in Paris, France'))",
                "final_answer('Clear sky, around 13-16°C')",
            ],
            {"contradicting_sources"},
        ),
        (
            WEATHER,
            [
                "print(search_pages('current weather in Paris, France'))",
                "final_answer('One page says 13 °C and partly cloudy, another clear, +16 °C.')",
            ],
            set(),
        ),
        (
            WEATHER,
            ["print(search_pages('current weather in Paris'))", "final_answer('Sunny, 21 °C')"],
            {"no_supporting_observation"},
        ),
        (
            BOND,
            ["final_answer(image_generator('the car of the latest Bond movie, high-res'))"],
            {"instruction_ignored", "tool_never_used"},
        ),
        (
            BOND,
            ["final_answer(image_generator(search_pages('James Bond car latest movie')))"],
            {"unread_result"},
        ),
        (
            BOND,
            [
                "print(search_pages('James Bond car latest movie'))",
                "final_answer(image_generator(prompt='Aston Martin DB5'))",
            ],
            set(),
        ),
        (DEBUG, [f"final_answer({FIXED!r})"], {"instruction_ignored"}),
        (DEBUG, [SCRIPT, FIXED, f"final_answer({FIXED!r})"], set()),
    ],
)
def test_the_claim_check_on_real_tools_in_the_sandbox(task, programs, expected, sandbox):
    replies = [f"Thought: I go on.\n<code>\n{program}\n</code>" for program in programs]
    tools = [] if task == DEBUG else [search_pages, image_generator][: 1 + (task == BOND)]
    agent = CodeAgent(tools, model(*replies), verbosity_level=0, executor=sandbox)
    given = {"code": SCRIPT} if task == DEBUG else None
    run = quiet(agent, task, additional_args=given)
    assert {finding.kind for finding in check_claims(run)} == expected
