"""Whatever a model says, the loop ends, keeps its limits, and leaves a sound conversation."""

import itertools
import json

import pytest
from agent_kit import asks, check_transcript, says, world_tools
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.agent import (
    Limits,
    Prices,
    StopReason,
    fork,
    new_trace,
    replay,
    resume,
    run_agent,
)
from course_utils.approval import CAREFUL, Gate, Policy, abort, approve, modify, reject
from course_utils.messages import Reply, ToolCall, ToolResult, assistant, system, tool, user
from course_utils.models import scripted
from course_utils.react import ReAct, cut
from course_utils.trace import Observed, Replied, Trace, from_json, to_json
from course_utils.world.world import World

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
names = st.sampled_from(["get_invoice", "send_email", "pay", "nothing", ""]) | st.text(max_size=5)
fitting = st.sampled_from(
    [
        ("get_invoice", {"invoice_id": "INV-004217"}),
        ("get_invoice", {"invoice_id": "INV-000000"}),
        ("send_email", {"to": "Ana", "text": "Hi"}),
        ("send_email", {"to": "Ana", "text": "Hi!"}),
        ("send_email", {"to": "", "text": "Hi!"}),
        ("pay", {"invoice_id": "INV-004217", "amount_eur": 1}),
        ("pay", {"invoice_id": "INV-004217", "amount_eur": -1}),
    ]
)
calls = fitting | st.tuples(names, st.dictionaries(st.text(max_size=5), json_values, max_size=3))
tokens = st.integers(0, 400)


@st.composite
def call_replies(draw):
    made = draw(st.lists(calls, min_size=1, max_size=4))
    ids = draw(st.lists(st.sampled_from(["call_1", "call_2", "x", ""]), min_size=4, max_size=4))
    tool_calls = tuple(ToolCall(id, *call) for id, call in zip(ids, made, strict=False))
    prompt = draw(tokens)
    return Reply(
        draw(st.text(max_size=20)),
        "scripted",
        "script",
        tool_calls=tool_calls,
        prompt_tokens=prompt,
        cached_tokens=draw(st.integers(0, prompt)),
        output_tokens=draw(tokens),
    )


texts = st.text(max_size=40) | st.sampled_from(
    [
        '<tool_call>{"name": "pay", "arguments": {}}</tool_call>',
        "<tool_call>{'name': 'pay'}</tool_call>",
        '{"name": "get_invoice", "arguments": {"invoice_id": "INV-004217"}} <tool_call>{"na',
        "",
    ]
)
replies = st.lists(call_replies() | texts, max_size=9)
limits = st.builds(
    Limits,
    max_steps=st.integers(1, 6),
    max_tokens=st.none() | st.integers(1, 1500),
    max_cost=st.none() | st.floats(0.0001, 0.01),
    prices=st.just(Prices(2.0, 0.2, 8.0)),
    max_seconds=st.none() | st.integers(5, 40),
    max_repeats=st.none() | st.integers(1, 3),
    max_result_chars=st.none() | st.integers(1, 60),
    tool_seconds=st.none(),
)
gates = st.sampled_from(
    [
        None,
        Gate(Policy()),
        Gate(CAREFUL, ask=lambda request: approve()),
        Gate(CAREFUL, ask=lambda request: reject("no")),
        Gate(CAREFUL, ask=lambda request: abort("stop")),
        Gate(CAREFUL, ask=lambda request: modify({"x": 1})),
        Gate(CAREFUL, ask=lambda request: modify({**request.call.arguments, "text": "Bye"})),
        Gate(CAREFUL, dry_run=True, ask=lambda request: approve()),
    ]
)


def check_results(trace):
    """Every call has exactly one result, with its id."""
    for step in trace.steps:
        asked = [call.id for call in step.replied.reply.tool_calls]
        assert [event.call.id for event in step.observed] == asked
        assert len(set(asked)) == len(asked)


@settings(max_examples=120, deadline=None)
@given(replies, limits, gates)
def test_it_ends_within_its_limits_and_the_conversation_is_sound(script, limits, gate):
    with World() as world:
        ticks = itertools.count().__next__  # every look at this clock takes a second
        run = run_agent(
            scripted(script), world_tools(world), "Go", limits=limits, gate=gate, clock=ticks
        )
        used = [event.reply for event in run.trace.of(Replied)]
        spent = [reply.prompt_tokens + reply.output_tokens for reply in used]
        assert run.stop_reason in StopReason and repr(run) and repr(run.trace) is not None
        assert run.steps <= limits.max_steps
        if limits.max_tokens is not None and used:
            assert sum(spent[:-1]) < limits.max_tokens
        if limits.max_cost is not None and used:
            assert sum(map(limits.prices.cost, used[:-1])) < limits.max_cost
        if limits.max_seconds is not None:
            times = [event.seconds for event in run.trace.of(Replied)]
            assert all(seconds < limits.max_seconds for seconds in times[:-1])
        check_results(run.trace)
        check_transcript(run.trace.messages)
        done = [event for event in run.trace.of(Observed) if event.happened == "yes"]
        fresh = [event for event in done if event.source != "stored"]
        assert world.count() == len(fresh)
        assert len({(e.call.name, json.dumps(e.call.arguments)) for e in fresh}) == len(fresh)


@settings(max_examples=60, deadline=None)
@given(replies, limits)
def test_a_trace_survives_json(script, limits):
    with World() as world:
        trace = run_agent(scripted(script), world_tools(world), "Go", limits=limits).trace
        again = Trace(from_json(to_json(event)) for event in trace.events)
        assert list(map(to_json, again.events)) == list(map(to_json, trace.events))
        assert repr(again.messages) == repr(trace.messages) and repr(again) == repr(trace)


@settings(max_examples=60, deadline=None)
@given(replies, limits, st.integers(0, 30))
def test_a_run_cut_off_anywhere_goes_on_to_the_same_end(script, limits, cut):
    """The same end, the same world: here the process dies between two events."""

    class Dies(BaseException):
        pass

    class Replays:
        """Gives the reply that belongs to the conversation, however often it is asked."""

        def __init__(self):
            self.inner = scripted(script)
            self.known = {}

        def chat(self, messages, tools=None):
            count = sum(message.role == "assistant" for message in messages)
            if count not in self.known:
                self.known[count] = self.inner.chat(messages, tools)
            return self.known[count]

    with World() as whole, World() as broken:
        expected = run_agent(
            Replays(), world_tools(whole), "Go", limits=limits, run_id="r", clock=lambda: 0.0
        )
        tools = world_tools(broken)
        trace, left = new_trace("Go", tools, run_id="r"), [cut]

        def listener(event):
            if not left[0]:
                raise Dies
            left[0] -= 1

        trace.listener, model = listener, Replays()
        try:
            run = run_agent(model, tools, trace=trace, limits=limits, clock=lambda: 0.0)
        except Dies:
            trace.listener = None
            began = [event for event in trace.events[-1:] if type(event).__name__ == "Began"]
            run = resume(trace, model, tools, limits=limits, clock=lambda: 0.0)
            if began and began[0].key is None:
                assert run.stop_reason == "unknown_effect"
                return
        assert run.stop_reason == expected.stop_reason
        assert repr(run.trace.messages) == repr(expected.trace.messages)
        assert broken.effects() == whole.effects()


def without_keys(world):
    return [{**row, "key": None} for row in world.effects()]


@settings(max_examples=60, deadline=None)
@given(st.lists(call_replies(), min_size=1, max_size=5), st.data())
def test_an_unedited_fork_repeats_the_original(script, data):
    script = [*script, says("Done.")]
    limits = Limits(max_tokens=None, max_repeats=None)
    with World() as world:
        original = run_agent(scripted(script), world_tools(world), "Go", limits=limits)
        effects = without_keys(world)
    step = data.draw(st.integers(0, original.steps))
    count = 2 if step == 0 else len(original.trace.steps[step - 1].messages())
    message = data.draw(st.integers(-1, count - 1)) if step else -1
    with World() as other:
        trace = fork(original, step, message=message)
        rest = scripted(script[len(list(trace.of(Replied))) :])
        replay(trace, world_tools(other))
        again = run_agent(rest, world_tools(other), trace=trace, limits=limits)
        assert again.stop_reason == original.stop_reason
        assert repr(again.trace.messages) == repr(original.trace.messages)
        assert without_keys(other) == effects


react_texts = st.lists(
    st.sampled_from(
        ["Thought: a", "Action: get_invoice", 'Action Input: {"invoice_id": "INV-004217"}']
        + ["Observation: 7", "observation : 8", "**Observation:** 9", "Final Answer: 5", "x", "{"]
    )
    | st.text(max_size=12),
    max_size=8,
).map("\n".join)


@settings(max_examples=120, deadline=None)
@given(st.lists(react_texts, max_size=5))
def test_in_react_no_observation_is_the_models_own(script):
    with World() as world:
        inner = scripted(script)
        run = run_agent(ReAct(inner), world_tools(world), "Go")
        check_results(run.trace)
        check_transcript(run.trace.messages)
        for prompt in inner.prompts:
            roles = [message.role for message in prompt]
            assert roles == ["system"] + (["user", "assistant"] * len(roles))[: len(roles) - 1]
            for message in prompt:
                if message.role == "assistant":
                    assert cut(message.content) == message.content
        made = sum(len(event.reply.tool_calls) for event in run.trace.of(Replied))
        assert made == len(list(run.trace.of(Observed)))


def test_the_kit_itself_finds_faults():
    """A check that cannot fail proves nothing."""
    call = asks(("f", {})).message()
    answer = tool(ToolResult("call_1", "f", "7"))
    check_transcript([system("s"), user("u"), call, answer, assistant("a")])
    for wrong in (
        [user("u"), user("u")],
        [user("u"), call, assistant("a")],
        [user("u"), call, answer, answer],
        [user("u"), answer],
        [user("u"), call, answer, user("u")],
    ):
        with pytest.raises(AssertionError):
            check_transcript(wrong)
