"""The text protocol: Thought, Action, Observation."""

import pytest
from agent_kit import world_tools

from course_utils.agent import run_agent
from course_utils.messages import Message, Reply
from course_utils.models import scripted
from course_utils.react import ReAct, as_text, cut, describe, read
from course_utils.trace import Observed
from course_utils.world.world import World

ACT = 'Thought: I look.\nAction: get_invoice\nAction Input: {"invoice_id": "INV-004217"}\n'
INVENTED = ACT + "Observation: paid\nThought: I know.\nFinal Answer: It is paid."


@pytest.fixture
def tools():
    with World() as world:
        yield world_tools(world)


def test_the_same_loop_runs_the_actions(tools):
    model = scripted([ACT, "Thought: I know.\nFinal Answer: It is open."])
    run = run_agent(ReAct(model), tools, "Is INV-004217 paid?")
    assert run.answer == "It is open." and run.stop_reason == "answer"
    prompt = model.prompts[1]
    assert [message.role for message in prompt] == ["system", "user", "assistant", "user"]
    assert prompt[3].content.startswith("Observation: {") and "open" in prompt[3].content
    assert prompt[2].content == ACT.strip()


def test_an_invented_observation_never_gets_through(tools):
    """Also when the server ignores the stop marker, as this script does."""
    model = scripted([INVENTED, "Thought: I know.\nFinal Answer: It is open."])
    run = run_agent(ReAct(model), tools, "Is INV-004217 paid?")
    assert run.answer == "It is open."
    assert all("paid\n" not in message.content for message in model.prompts[1])
    assert run.trace.steps[0].replied.reply.text == ACT.strip()


def test_without_the_guard_the_model_invents(tools):
    run = run_agent(ReAct(scripted([INVENTED]), guard=False), tools, "Is INV-004217 paid?")
    assert run.answer == "It is paid." and list(run.trace.of(Observed)) == []


def test_the_stop_marker_is_sent_and_the_callers_stops_are_kept(tools):
    class Records:
        def chat(self, messages, **settings):
            self.settings = settings
            return Reply("Final Answer: 7", "scripted", "s")

    model = Records()
    ReAct(model).chat([Message("user", "?")], tools, stop="###", max_new_tokens=9)
    assert model.settings == {"stop": ("###", "Observation:"), "max_new_tokens": 9}
    ReAct(model, guard=False).chat([Message("user", "?")], tools)
    assert model.settings == {}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\nObservation: b", "a"),
        ("a\n**Observation:** b", "a"),
        ("a\nobservation : b", "a"),
        ("a Observation: b", "a"),
        ("my observation is b", "my observation is b"),
        ("Observation: b", ""),
    ],
)
def test_cut(text, kept):
    assert cut(text) == kept


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("Action: f\nAction Input: {}", "f", {}),
        ('Action: `f`\nAction Input: ```json\n{"a": 1}\n```', "f", {"a": 1}),
        ('Thought: x\nAction: f\nAction Input:\n{"a": [1,\n2]} and more', "f", {"a": [1, 2]}),
        ("Action: f\nAction Input: {}\nAction: g\nAction Input: {}", "f", {}),
        ("Action: f\nAction Input: {}\nFinal Answer: 7", "f", {}),
    ],
)
def test_actions_that_can_be_read(text, name, arguments):
    reply = read(Reply(text, "scripted", "s"))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [(name, arguments)]
    assert reply.parse_errors == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Thought: hm", "missing_name"),
        ("Action:\nAction Input: {}", "missing_name"),
        ("Action: f", "bad_arguments"),
        ("Action: f\nAction Input: Moscow", "invalid_json"),
        ('Action: f\nAction Input: {"a": ', "invalid_json"),
        ("Action: f\nAction Input: [1]", "bad_arguments"),
        ("Action: f\nAction Input: " + "[" * 100_000, "invalid_json"),
        ('Action: f\nAction Input: {"a": ' + "[" * 900 + "]" * 900 + "}", "invalid_json"),
        ('Action: f\nAction Input: {"a": NaN}', "invalid_json"),
        ('Action: f\nAction Input: {"a": "\\ud800"}', "invalid_json"),
    ],
)
def test_actions_that_cannot_be_read_have_named_errors(text, kind):
    reply = read(Reply(text, "scripted", "s"))
    assert reply.tool_calls == () and [error.kind for error in reply.parse_errors] == [kind]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Final Answer: 7", "7"),
        ("Thought: x\nFinal Answer: two\nlines", "two\nlines"),
        ("Final Answer: 7\nAction: f\nAction Input: {}", "7\nAction: f\nAction Input: {}"),
        ("Just text.", "Just text."),
    ],
)
def test_answers(text, answer):
    reply = read(Reply(text, "scripted", "s"))
    assert (reply.content, reply.tool_calls, reply.parse_errors) == (answer, (), ())


def test_a_fault_is_told_as_text_and_roles_alternate(tools):
    model = scripted(["Thought: hm", ACT, "Final Answer: open"])
    run = run_agent(ReAct(model), tools, "?")
    roles = [message.role for message in model.prompts[2]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert run.answer == "open" and len(list(run.trace.of(Observed))) == 1


def test_tools_are_described_with_their_arguments(tools):
    text = as_text([Message("system", "Be brief."), Message("user", "?")], tools)[0].content
    assert text.startswith("Be brief.") and "idempotency_key" in describe(tools[1])
    assert "get_invoice: Look at an invoice." in text and "invoice_id (string)" in text
    sent = scripted(["Final Answer: x"])
    run_agent(ReAct(sent), tools, "?")
    assert "idempotency_key" not in sent.prompts[0][0].content
