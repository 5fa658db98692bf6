"""The trace: views, text, rows, JSON."""

import pytest
from agent_kit import LOOK, MAIL, asks, says, world_tools

from course_utils.agent import fork, replay, run_agent
from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall, assistant
from course_utils.models import scripted
from course_utils.show import trace as show_trace
from course_utils.trace import Stopped, Trace, call_text, from_json, to_json
from course_utils.world.world import World


@pytest.fixture
def run():
    replies = [
        asks(LOOK, MAIL, prompt_tokens=100, cached_tokens=0, output_tokens=20),
        says("Done & <b>dusted</b>.", prompt_tokens=180, cached_tokens=100, output_tokens=5),
    ]
    with World() as world:
        return run_agent(scripted(replies), world_tools(world), "Tell Ana.")


def test_a_step_has_everything_that_explains_it(run):
    first, second = run.trace.steps
    assert (first.replied.context, first.replied.tools) == (
        2,
        ("get_invoice", "send_email", "pay"),
    )
    assert [event.call.arguments for event in first.observed] == [LOOK[1], MAIL[1]]
    assert (second.replied.reply.prompt_tokens, second.replied.reply.cached_tokens) == (180, 100)
    assert second.replied.reply.origin == "scripted"
    assert run.tokens == run.trace.tokens() == 305


def test_rows_name_the_tokens_of_a_step_once(run):
    rows = run.trace.rows()
    assert [row["tokens in"] for row in rows] == [100, None, 180]
    assert [row["step"] for row in rows] == [1, 1, 2]
    assert rows[1]["choice"] == 'send_email(to="Ana", text="Hello")'
    assert rows[1]["observation"] == "Sent to Ana." and rows[2]["choice"] == "answer"


def test_text_and_html_say_the_same_and_escape(run):
    text, html = repr(run.trace), show_trace(run.trace)._repr_html_()
    for part in ("100 tokens in (0 cached), 20 out", "→ Sent to Ana.", "stopped: answer"):
        assert part in text
    assert "Sent to Ana." in html and "stopped: answer" in html and "<b>dusted" not in html
    assert "Done & <b>dusted</b>." in repr(show_trace(run.trace))
    assert repr(Trace()) == "(nothing happened yet)"


def test_every_event_survives_json(run):
    again = Trace(from_json(to_json(event)) for event in run.trace.events)
    assert again.events == run.trace.events and again.messages == run.trace.messages


@pytest.mark.parametrize("line", ["", "7", "{}", '{"event": "x"}', '{"event": "stopped"}', "[1]"])
def test_a_line_that_is_no_event_is_one_clear_error(line):
    with pytest.raises(CourseError, match="no event"):
        from_json(line)


def test_a_call_is_shown_as_one_would_type_it():
    assert call_text(ToolCall("c", "f", {"a": "Ж", "b": [1, None]})) == 'f(a="Ж", b=[1, null])'
    assert call_text(ToolCall("c", "f", "no object")) == 'f("no object")'


def test_a_changed_observation_leads_to_another_world():
    """The weather decides about the jacket: edit the weather, compare the worlds."""

    class Reads:
        def chat(self, messages, tools=None):
            last = messages[-1]
            if last.role == "user":
                return asks(LOOK)
            if last.name == "get_invoice" and "open" in last.content:
                return asks(MAIL)
            return says("Nothing to do.")

    with World() as world, World() as other:
        original = run_agent(Reads(), world_tools(world), "Remind Ana if the invoice is open.")

        def paid(message):
            return Message("tool", '{"status": "paid"}', tool_call_id=message.tool_call_id)

        trace = fork(original, 1, paid)
        edited = run_agent(Reads(), world_tools(other), trace=trace)
        assert (world.count("email"), other.count("email")) == (1, 0)
        assert edited.answer == "Nothing to do." and original.trace.steps[0].observed[0].ok
        assert "open" in original.trace.messages[3].content  # the original is as it was


def test_an_edited_call_runs_anew_and_an_edited_task_starts_anew(run):
    with World() as world:
        tools = world_tools(world)
        call = ToolCall("call_1", "send_email", {"to": "Ben", "text": "Hi"})
        trace = fork(run, 1, lambda m: assistant("", (call,)), message=0)
        done = run_agent(scripted([says("Done.")]), tools, trace=trace)
        assert [row["to"] for row in world.outbox.sent()] == ["Ben"]
        assert done.steps == 2
        trace = fork(run, 0, lambda m: Message("user", "Something else"))
        assert [m.content for m in trace.messages[1:]] == ["Something else"]
        trace = fork(run, 0, lambda m: Message("system", "Be rude."), message=0)
        assert trace.messages[0].content == "Be rude."


def test_a_fork_of_nothing_is_refused(run):
    for step, message in ((3, -1), (-1, -1), (1, 7), (0, 7)):
        with pytest.raises(CourseError):
            fork(run, step, lambda m: m, message=message)
    with pytest.raises(CourseError, match="must return"):
        fork(run, 1, lambda m: Message("user", "x"))
    with pytest.raises(CourseError, match="empty"):
        fork(Trace(), 0)


def test_a_replay_does_the_writes_again_in_another_world(run):
    with World() as other:
        replay(run, world_tools(other))
        assert [row["effect"] for row in other.effects()] == ["email"]
        with pytest.raises(CourseError, match="send_email"):
            replay(run, world_tools(other)[:1])


def test_stopped_is_only_what_stands_last():
    trace = Trace([Stopped("max_steps")])
    assert trace.stopped.reason == "max_steps"
    trace.add(from_json('{"event": "told", "step": 1, "text": "go on"}'))
    assert trace.stopped is None


def test_a_fork_is_a_run_of_its_own_and_its_writes_too():
    with World() as world:
        tools = world_tools(world)
        original = run_agent(scripted([asks(LOOK), asks(MAIL), says("Done.")]), tools, "Go")
        trace = fork(original, 1)
        assert trace.start.run_id != original.trace.start.run_id
        run_agent(scripted([asks(MAIL), says("Done.")]), tools, trace=trace)
        first, second = world.outbox.sent()
        assert first["key"] != second["key"]
