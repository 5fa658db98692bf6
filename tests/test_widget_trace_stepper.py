"""The trace stepper: its view says what a step read, wrote and led to; the widget shows it."""

import re
import subprocess
import sys

import pytest
from agent_kit import LOOK, MAIL, asks, says, world_tools
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.agent import run_agent
from course_utils.cli.places import ROOT
from course_utils.code_trace import Call, CodeRun, CodeStep
from course_utils.errors import CourseError
from course_utils.messages import Message
from course_utils.models import scripted
from course_utils.show.runs import steps_table
from course_utils.widgets import trace_stepper, trace_view
from course_utils.world.world import World

EVIL = '<img src=x onerror="document.title=1">'
FIRST = (Message("system", "You are an agent. " * 40), Message("user", "Weather in Paris?"))
THEN = (Message("assistant", "print(web_search('Paris'))"), Message("user", f"Seen: {EVIL}"))
STEPS = (
    CodeStep(
        *(1, "Thought: look\n<code>…</code>", "print(web_search('Paris'))"),
        calls=(Call("web_search", {"query": "Paris"}, EVIL),),
        observation=f"Execution logs:\n{EVIL}",
        tokens_in=2_067,
        tokens_out=40,
        origin="recorded",
        added=FIRST,
    ),
    CodeStep(
        *(2, "no code", None, (), "", f"Error in code parsing: {EVIL}", 2_242, 8),
        origin="recorded",
        added=THEN,
        reread=2,
    ),
    CodeStep(
        *(3, "Clear.", None, (), "", "", 400, 3),
        kind="forced",
        is_final=True,
        added=(Message("system", "Answer now."),),
    ),
)
RUN = CodeRun("Weather in Paris?", {"web_search": ""}, STEPS, "Clear.", "max_steps")
SECOND = "Step 2 of 3: 2,242 tokens in (2,067 read again, 175 new), 8 out; 4,357 tokens so far."


def visible(html):
    return re.sub(r"<[^>]*>", "\n", html).replace("&lt;", "<").replace("&gt;", ">")


def test_a_step_shows_what_is_new_what_is_read_again_and_what_came_of_it():
    view = trace_view(RUN, 2)
    assert view.text.splitlines()[0] == f"{SECOND} [recorded]"
    assert "── read again: 2 messages" in view.text
    assert "── new message: assistant\nprint(web_search('Paris'))" in view.text
    assert "── the model wrote\nno code" in view.text
    assert f"── error\nError in code parsing: {EVIL}" in view.text
    assert "calls that were made" not in view.text
    first = trace_view(RUN, 1).text
    assert first.startswith("Step 1 of 3: 2,067 tokens in, 40 out; 2,107 tokens so far. [recorded]")
    assert f'── calls that were made\nweb_search(query="Paris") → {EVIL}' in first
    assert "── what the next step will see\nExecution logs:" in first
    assert "read again" not in first


def test_the_answer_at_the_step_limit_says_so_and_reads_nothing_again():
    text = trace_view(RUN, 3).text
    assert "The step limit was reached" in text and "read again" not in text
    assert "4,760 tokens so far" in text


def test_long_texts_are_cut_in_text_and_whole_in_html():
    view = trace_view(RUN, 1)
    assert "… (320 characters more)" in view.text
    assert FIRST[0].content in view.html


@pytest.mark.parametrize("place", [1, 2, 3])
def test_html_says_what_the_text_says_and_obeys_no_markup(place):
    view = trace_view(RUN, place)
    seen = visible(view.html).replace("&quot;", '"').replace("&#x27;", "'")
    for line in view.text.splitlines():
        line = line.removeprefix("── ").split("… (")[0]
        assert line in seen, line
    assert "<img" not in view.html


def test_the_static_table_of_all_steps_has_the_same_numbers():
    text = steps_table(RUN).text
    for part in ("0 again, 2 new", "2 again, 2 new", "2,107", "4,357", "4,760", "2,242"):
        assert part in text


def test_the_gauge_states_the_prompts_in_words():
    html = trace_view(RUN, 2).html
    assert 'aria-label="Prompt tokens of the steps: 2,067, 2,242, 400."' in html
    assert html.count("stroke-dasharray") == 2  # the step that has not been reached yet


def test_the_widget_follows_its_controls_and_stays_at_the_ends():
    stepper = trace_stepper(RUN)
    before, after = stepper._buttons
    before.click()
    assert stepper.place == 1
    after.click()
    assert stepper.place == 2 and stepper.view.text == trace_view(RUN, 2).text
    assert stepper._html.value == stepper.view.html
    for _ in range(5):
        after.click()
    assert stepper.place == 3 and repr(stepper) == trace_view(RUN, 3).text
    stepper.place = 1
    assert stepper._slider.value == 1 and "Step 1 of 3" in stepper._html.value


def test_without_a_front_end_the_view_takes_the_place_of_the_widget():
    bundle = trace_stepper(RUN, 2)._repr_mimebundle_()
    assert bundle["text/plain"].startswith(SECOND) and "<img" not in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


@pytest.mark.parametrize("place", [0, 4, -1, True, 1.0, "1", None])
def test_a_place_that_is_none_is_one_clear_error(place):
    with pytest.raises(CourseError, match="This run has 3 steps"):
        trace_view(RUN, place)
    with pytest.raises(CourseError, match="This run has 3 steps"):
        trace_stepper(RUN, place)
    stepper = trace_stepper(RUN)
    with pytest.raises(CourseError, match="This run has 3 steps"):
        stepper.place = place


def test_what_cannot_be_stepped_through_is_one_clear_error():
    with pytest.raises(CourseError, match="no steps"):
        trace_stepper(CodeRun("Hi", {}, ()))
    with pytest.raises(CourseError, match="A run is a CodeRun"):
        trace_stepper("run")


def test_it_steps_through_the_own_loop_too():
    replies = [asks(LOOK, MAIL, prompt_tokens=100, output_tokens=9), says("Done.")]
    with World() as world:
        run = run_agent(scripted(replies), world_tools(world), "Tell Ana.")
    stepper = trace_stepper(run.trace)
    assert "── new message: user\nTell Ana." in stepper.view.text
    stepper.place = 2
    assert "── new message: assistant\ncalls get_invoice, send_email" in stepper.view.text
    assert "── read again: 2 messages" in stepper.view.text


@settings(max_examples=50)
@given(st.lists(st.text(), min_size=1, max_size=4), st.integers(0, 9_999))
def test_any_text_gives_a_view_without_foreign_tags(texts, tokens):
    known = {"div", "strong", "svg", "title", "rect", "text", "pre"}
    steps = tuple(
        CodeStep(1, text, text, (Call(text, {text: text}, text),), text, text, tokens, tokens)
        for text in texts
    )
    run = CodeRun(texts[0], {}, steps, texts[-1])
    for place in range(1, len(steps) + 1):
        html = trace_view(run, place).html
        assert set(re.findall(r"<([a-zA-Z]+)", html)) <= known


def test_the_view_loads_no_widget_library():
    code = (
        "import sys; from course_utils.widgets import trace_view; "
        "print('ipywidgets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
