"""The loop: stops, faults as data, repeats, limits, keys."""

import json
import threading
import time

import pytest
from agent_kit import LOOK, MAIL, PAY, asks, check_transcript, fault, says, world_tools

from course_utils.agent import Limits, Prices, StopReason, needs_observation, new_trace, run_agent
from course_utils.approval import Gate, Policy
from course_utils.errors import CourseError
from course_utils.messages import Reply, ToolCall, system, user
from course_utils.models import scripted
from course_utils.tools import Tool, tool
from course_utils.trace import Began, Observed
from course_utils.world.world import World


@pytest.fixture
def world():
    with World() as world:
        yield world


@pytest.fixture
def tools(world):
    return world_tools(world)


def run(replies, tools, **options):
    model = scripted(replies)
    done = run_agent(model, tools, "Do it.", **options)
    check_transcript(done.trace.messages)
    return done


def tool_messages(done):
    return [message for message in done.trace.messages if message.role == "tool"]


def returns(*values, effect="read", name="probe"):
    """A tool without arguments that returns one value after the other; `calls` counts."""
    left = list(values)

    def probe():
        probe.calls += 1
        value = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(value, BaseException):
            raise value
        return value

    probe.calls = 0
    return Tool(name, "Probe.", None, probe, effect)


PROBE = ("probe", {})


# -- answers ---------------------------------------------------------------------------------------


def test_an_answer_after_a_call(tools):
    done = run([asks(LOOK), says("It is open.")], tools)
    assert (done.answer, done.stop_reason, done.steps) == ("It is open.", "answer", 2)
    assert json.loads(tool_messages(done)[0].content)["status"] == "open"


def test_the_model_gets_the_whole_conversation_and_the_tools(tools):
    model = scripted([asks(LOOK), says("Yes.")])
    run_agent(model, tools, "Do it.", system_prompt="Be brief.")
    roles = [[message.role for message in prompt] for prompt in model.prompts]
    assert roles == [["system", "user"], ["system", "user", "assistant", "tool"]]
    assert model.prompts[0][0].content == "Be brief."


def test_a_conversation_with_its_own_system_message_keeps_it(tools):
    model = scripted([says("Yes.")])
    run_agent(model, tools, [system("Mine."), user("Hi")])
    assert [message.content for message in model.prompts[0]] == ["Mine.", "Hi"]
    wires = [system("Mine.").to_dict(), user("Hi").to_dict()]
    assert run_agent(scripted([says("Yes.")]), tools, wires).trace.messages == [
        system("Mine."),
        user("Hi"),
        says("Yes.").message(),
    ]


def test_settings_reach_the_model_and_wrong_ones_are_the_callers_error(tools):
    class Strict:
        def chat(self, messages, tools=None, *, max_new_tokens):
            return says(str(max_new_tokens))

    assert run_agent(Strict(), tools, "Hi", max_new_tokens=7).answer == "7"
    with pytest.raises(TypeError):
        run_agent(Strict(), tools, "Hi", max_tokens=7)


def test_an_empty_reply_is_no_answer(tools):
    done = run([asks(LOOK), says(" \n")], tools)
    assert (done.answer, done.stop_reason) == (None, "empty_reply")


def test_an_answer_that_was_cut_off_says_so(tools):
    done = run([says("It is", finish_reason="length")], tools)
    assert done.answer == "It is" and "cut off" in repr(done)


def test_a_missing_task_and_two_tools_of_one_name_are_the_callers_error(tools):
    with pytest.raises(CourseError, match="task"):
        run_agent(scripted([]), tools, "")
    with pytest.raises(CourseError, match="Two tools"):
        run_agent(scripted([]), tools + tools[:1], "Hi")


def test_no_answer_without_a_successful_observation():
    down = returns(RuntimeError("down"))
    done = run([asks(PROBE), says("Sunny.")], [down], accept=needs_observation)
    assert (done.answer, done.stop_reason) == (None, "unsupported_answer")
    assert "Sunny" not in done.partial
    done = run([asks(PROBE), says("Sunny.")], [returns("2 °C")], accept=needs_observation)
    assert done.answer == "Sunny."


def test_a_view_decides_what_the_model_is_sent(tools):
    model = scripted([asks(LOOK), says("Yes.")])
    done = run_agent(model, tools, "Do it.", view=lambda messages: messages[-2:])
    assert len(model.prompts[1]) == 2 and done.trace.steps[1].replied.context == 2
    assert len(done.trace.messages) == 5


# -- faults are data -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("nothing", {}), "unknown_tool"),
        ((None, {}), "unknown_tool"),
        (("get_invoice", {}), "invalid_arguments"),
        (("get_invoice", {"invoice_id": 5}), "invalid_arguments"),
        (("get_invoice", {"invoice_id": "INV-004217", "x": 1}), "invalid_arguments"),
        (("get_invoice", ["INV-004217"]), "invalid_arguments"),
        (("get_invoice", {"invoice_id": "INV-000000"}), "invoice_not_found"),
    ],
)
def test_what_the_model_gets_wrong_comes_back_as_data(tools, call, error):
    done = run([asks(call), says("Sorry.")], tools)
    assert done.answer == "Sorry."
    assert fault(tool_messages(done)[0]) == error


class SpeechlessError(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyError(), SystemExit(1), RecursionError(), SpeechlessError()]
)
def test_no_exception_of_a_tool_leaves_the_loop(error):
    done = run([asks(PROBE), says("Sorry.")], [returns(error)])
    assert done.answer == "Sorry." and fault(tool_messages(done)[0])


def test_an_unserialisable_and_an_oversized_result(tools):
    done = run([asks(PROBE), says("Sorry.")], [returns(object())])
    assert fault(tool_messages(done)[0]) == "unreadable_result"
    limits = Limits(max_result_chars=100)
    done = run([asks(PROBE), says("Sorry.")], [returns("x" * 101)], limits=limits)
    assert fault(tool_messages(done)[0]) == "result_too_large"
    assert len(tool_messages(done)[0].content) < 400
    done = run([asks(PROBE), says("Fine.")], [returns("x" * 100)], limits=limits)
    assert tool_messages(done)[0].content == "x" * 100


def test_a_call_that_cannot_be_read_is_told_and_three_of_them_stop_the_run(tools):
    broken = "<tool_call>{'name': 'get_invoice'}</tool_call>"
    done = run([broken, says("Sorry.")], tools)
    assert fault(done.trace.messages[3]) == "unreadable_call"
    assert done.trace.messages[3].role == "user"
    assert run([broken] * 9, tools).stop_reason == "repeats"


def test_a_readable_and_an_unreadable_call_in_one_reply(tools):
    good = (
        '<tool_call>{"name": "get_invoice", "arguments": {"invoice_id": "INV-004217"}}</tool_call>'
    )
    done = run([good + "\n<tool_call>{'name': 'pay'}</tool_call>", says("Open.")], tools)
    assert done.answer == "Open."
    assert "could not be read" in tool_messages(done)[0].content


def test_parallel_calls_keep_their_ids_and_one_failure_leaves_the_others(tools):
    calls = (
        ToolCall("x9", *LOOK),
        ToolCall("b", "get_invoice", {}),
        ToolCall("a", "get_invoice", {"invoice_id": "INV-004218"}),
    )
    done = run([Reply("", "scripted", "s", tool_calls=calls), says("Done.")], tools)
    assert [message.tool_call_id for message in tool_messages(done)] == ["x9", "b", "a"]
    assert fault(tool_messages(done)[1]) == "invalid_arguments"
    assert json.loads(tool_messages(done)[0].content)["status"] == "open"


def test_ids_that_stand_twice_or_are_missing_become_different_ones(tools):
    ids = ["c", "c", "", "c_2", ""]
    calls = tuple(ToolCall(id, *LOOK) for id in ids)
    done = run([Reply("", "scripted", "s", tool_calls=calls)], tools)
    seen = [message.tool_call_id for message in tool_messages(done)]
    assert len(set(seen)) == 5 and seen[0] == "c" and seen[3] == "c_2" and all(seen)


def test_a_model_that_fails_stops_the_run_with_its_message(tools):
    done = run([asks(LOOK)], tools)
    assert done.stop_reason == "error" and "replies" in done.detail
    assert isinstance(done.error, CourseError)


# -- limits ----------------------------------------------------------------------------------------


def looks(count, **counts):
    return [asks(("get_invoice", {"invoice_id": f"INV-{n:06}"}), **counts) for n in range(count)]


def test_ten_steps_are_the_default_and_the_stop_is_honest(tools):
    done = run(looks(20), tools)
    assert (done.steps, done.stop_reason, done.answer) == (10, StopReason.MAX_STEPS, None)
    assert "10 steps" in done.partial and "Missing" in done.partial


def test_the_partial_result_has_what_was_found_and_not_what_failed(tools):
    bad = ("get_invoice", {"invoice_id": "INV-000000"})
    done = run([asks(LOOK), asks(bad)], tools, limits=Limits(max_steps=2))
    assert "INV-004217" in done.partial and "INV-000000" not in done.partial


def test_an_answer_in_the_last_step_is_an_answer(tools):
    done = run([asks(LOOK), says("Open.")], tools, limits=Limits(max_steps=2))
    assert done.stop_reason == "answer" and done.partial == "Open."


def test_the_token_budget_is_exceeded_by_one_call_at_most(tools):
    replies = looks(20, prompt_tokens=90, output_tokens=10)
    done = run(replies, tools, limits=Limits(max_tokens=250))
    assert (done.stop_reason, done.tokens) == ("token_budget", 300)


def test_the_money_budget_counts_cached_tokens_at_their_price(tools):
    counts = {"prompt_tokens": 1_000_000, "cached_tokens": 500_000, "output_tokens": 1_000_000}
    prices = Prices(read=2.0, cached=0.2, written=8.0)  # 9.1 a step
    replies = looks(20, **counts)
    limits = Limits(max_tokens=None, max_cost=18.3, prices=prices)
    done = run(replies, tools, limits=limits)
    assert (done.stop_reason, done.steps) == ("money_budget", 3)
    limits = Limits(max_tokens=None, max_cost=18.2, prices=prices)
    assert run(replies, tools, limits=limits).steps == 2


def test_the_wall_clock_stops_before_the_next_call_of_a_tool():
    now = [0.0]

    def slow():
        now[0] += 6
        return str(now[0])

    slow_tool = Tool("slow", "Slow.", None, slow)
    done = run(
        [asks(("slow", {}), ("slow", {}), ("slow", {}))] * 2,
        [slow_tool],
        limits=Limits(max_seconds=10, tool_seconds=None),
        clock=lambda: now[0],
    )
    assert done.stop_reason == "wall_clock"
    assert [event.source for event in done.trace.of(Observed)] == ["ran", "ran", "not_run"]


@pytest.mark.parametrize(
    "wrong", [{"max_steps": 0}, {"max_steps": None}, {"max_tokens": -1}, {"max_cost": 1.0}]
)
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(CourseError):
        Limits(**wrong)


@pytest.mark.parametrize("wrong", [(-1, 0, 0), (0, float("nan"), 0), (0, 0, "8"), (True, 0, 0)])
def test_prices_that_make_no_sense_are_refused(wrong):
    with pytest.raises(CourseError, match="price"):
        Prices(*wrong)
    assert Prices(0, 0, 0).cost(says("free")) == 0


def test_a_limit_of_none_is_off():
    limits = Limits(max_steps=30, max_repeats=None, max_tokens=None, max_seconds=None)
    probe = returns("same")
    assert run([asks(PROBE)] * 40, [probe], limits=limits).stop_reason == "max_steps"
    assert probe.function.calls == 30


# -- repeats ---------------------------------------------------------------------------------------


def test_a_repeated_read_runs_again_is_told_and_stops_at_the_third():
    probe = returns("same")
    done = run([asks(PROBE)] * 9, [probe])
    assert (done.stop_reason, done.steps, probe.function.calls) == ("repeats", 3, 3)
    first, second, third = (message.content for message in tool_messages(done))
    assert first == "same" and "already made in step 1" in second


def test_arguments_are_compared_by_value(tools):
    one = ("pay", {"invoice_id": "INV-004217", "amount_eur": 5})
    other = ("pay", {"amount_eur": 5.0, "invoice_id": "INV-004217"})
    done = run([asks(one), asks(other), says("Paid.")], tools)
    assert [event.source for event in done.trace.of(Observed)] == ["ran", "stored"]


def test_a_cycle_counts_and_two_parallel_copies_count(tools):
    other = ("get_invoice", {"invoice_id": "INV-004218"})
    done = run([asks(LOOK), asks(other)] * 5, tools)
    assert (done.stop_reason, done.steps) == ("repeats", 5)
    done = run([asks(LOOK, LOOK, LOOK, other)], tools)
    assert done.stop_reason == "repeats"
    assert [event.source for event in done.trace.of(Observed)] == ["ran"] * 3 + ["not_run"]


def test_a_poll_whose_result_changes_is_no_repeat():
    poll = returns("0 %", "40 %", "0 %", "80 %", "0 %", "ready")
    done = run([asks(PROBE)] * 6 + [says("Ready.")], [poll])
    assert done.answer == "Ready." and all(not event.note for event in done.trace.of(Observed))


def test_a_repeated_fault_is_a_repeat_too(tools):
    assert run([asks(("nothing", {}))] * 9, tools).steps == 3


def test_almost_the_same_call_with_the_same_result_is_reported(world, tools):
    near = ("send_email", {"to": "Ana", "text": "Hello!"})
    done = run([asks(MAIL), asks(near), says("Done.")], tools)
    assert "almost the same call was made in step 1" in tool_messages(done)[1].content
    far = ("send_email", {"to": "Ana", "text": "The invoice is paid, thank you."})
    done = run([asks(MAIL), asks(far), says("Done.")], tools)
    assert "almost" not in tool_messages(done)[1].content


def test_a_repeated_write_happens_once_and_gives_the_stored_result(world, tools):
    done = run([asks(PAY, MAIL), asks(MAIL, PAY), says("Done.")], tools)
    assert (world.count("payment"), world.count("email")) == (1, 1)
    texts = [message.content for message in tool_messages(done)]
    assert texts[3].startswith(texts[0]) and "not done a second time" in texts[3]


def test_a_write_that_was_refused_may_be_tried_again(world):
    write = returns(ValueError("not now"), "done", effect="irreversible")
    done = run([asks(PROBE), asks(PROBE), says("Done.")], [write])
    assert [event.happened for event in done.trace.of(Observed)] == ["no", "yes"]


def test_a_write_of_unknown_outcome_is_never_silently_done_again():
    write = returns(ConnectionResetError("gone"), "done", effect="irreversible")
    done = run([asks(PROBE), asks(PROBE), says("Hm.")], [write])
    assert write.function.calls == 1
    assert fault(tool_messages(done)[1]) == "unknown_outcome"


# -- keys ------------------------------------------------------------------------------------------


def test_the_key_is_hidden_from_the_model_and_cannot_be_given_by_it(world, tools):
    seen = []

    class Looks:
        def chat(self, messages, tools=None):
            seen.append({each.name: each.schema()["function"]["parameters"] for each in tools})
            return asks(("send_email", {**MAIL[1], "idempotency_key": "mine"}))

    done = run_agent(Looks(), tools, "Hi", limits=Limits(max_steps=1))
    assert list(seen[0]["send_email"]["properties"]) == ["to", "text"]
    assert fault(tool_messages(done)[0]) == "invalid_arguments" and world.count() == 0


def test_different_runs_and_arguments_have_different_keys(world, tools):
    other = ("send_email", {"to": "Ben", "text": "Hello"})
    for _ in range(2):
        run([asks(MAIL, other), says("Done.")], tools)
    keys = [row["key"] for row in world.outbox.sent()]
    assert len(keys) == 4 and len(set(keys)) == 4 and all(keys)


def test_a_retried_write_with_a_key_happens_once(world, tools):
    """The effect is there, but its answer gets lost: a second try must not be a second effect."""
    send, lost = tools[1], [True]

    def flaky(to: str, text: str, idempotency_key: str | None = None) -> str:
        answer = send.function(to, text, idempotency_key)
        if lost.pop() if lost else False:
            raise TimeoutError("the answer was lost")
        return answer

    waits = []
    flaky_tool = Tool("send_email", "Send.", send.parameters, flaky, "irreversible")
    done = run([asks(MAIL), says("Sent.")], [flaky_tool], sleep=waits.append)
    assert (world.count("email"), len(waits)) == (1, 1)
    assert tool_messages(done)[0].content == "Sent to Ana."


def test_the_intent_is_written_before_the_effect(world, tools):
    order = []

    @tool(effect="reversible")
    def write() -> str:
        """Write."""
        order.append("effect")
        return "ok"

    trace = new_trace("Go", [write])
    trace.listener = lambda event: order.append(type(event).__name__)
    run_agent(scripted([asks(("write", {})), says("ok")]), [write], trace=trace)
    place = order.index("effect")
    assert order[place - 1 : place + 2] == ["Began", "effect", "Observed"]
    assert not any(isinstance(e, Began) for e in run([asks(PROBE)], [returns(1)]).trace.events)


# -- time-outs -------------------------------------------------------------------------------------


def test_a_hanging_tool_ends_within_its_time_and_the_run_goes_on():
    release = threading.Event()
    hang = Tool("hang", "Hang.", None, lambda: release.wait(60))
    began = time.monotonic()
    done = run(
        [asks(("hang", {}), PROBE), says("Sorry.")],
        [hang, returns(7)],
        limits=Limits(tool_seconds=0.2),
    )
    assert time.monotonic() - began < 1.2
    release.set()
    first, second = tool_messages(done)
    assert fault(first) == "timeout" and second.content == "7"


def test_a_timed_out_write_is_unknown_and_its_late_result_is_thrown_away(world):
    release, finished = threading.Event(), threading.Event()

    def late() -> str:
        release.wait(60)
        world.outbox.send("Ana", "late")
        finished.set()
        return "done"

    write = Tool("late", "Late.", None, late, "irreversible")
    done = run([asks(("late", {})), says("?")], [write], limits=Limits(tool_seconds=0.1))
    assert next(done.trace.of(Observed)).happened == "unknown"
    before = len(done.trace.events)
    release.set()
    assert finished.wait(5) and len(done.trace.events) == before


def test_without_a_time_limit_tools_run_in_the_callers_thread():
    where = Tool("where", "Where.", None, lambda: threading.current_thread().name)
    mine = threading.current_thread().name
    done = run([asks(("where", {}))], [where], limits=Limits(tool_seconds=None))
    assert tool_messages(done)[0].content == mine
    done = run([asks(("where", {}), ("where", {}))], [where])
    first, second = (event.content for event in done.trace.of(Observed))
    assert first != mine and first == second


def test_a_gate_that_is_not_given_lets_everything_run_and_one_without_rules_nothing(world, tools):
    run([asks(PAY), says("Done.")], tools)
    assert world.count("payment") == 1
    done = run([asks(PAY, LOOK), says("Sorry.")], tools, gate=Gate(Policy()))
    assert world.count("payment") == 1
    assert [fault(message) for message in tool_messages(done)] == ["rejected", "rejected"]


# -- hostile sizes ---------------------------------------------------------------------------------


def test_long_arguments_names_and_error_texts_cost_neither_time_nor_tokens():
    """Comparing two texts of 200,000 characters letter by letter would take minutes."""
    texts = [("a" * 100_000 + "b" * 100_000)[n:] for n in range(3)]

    def echo(text: str) -> str:
        raise ValueError(text) if text.startswith("ab") else KeyError("same")

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    echo_tool = Tool("echo", "Echo.", schema, echo)
    calls = [("echo", {"text": text}) for text in [*texts, "ab" * 100_000]] + [("x" * 100_000, {})]
    began = time.monotonic()
    done = run([asks(*calls), says("Done.")], [echo_tool])
    assert time.monotonic() - began < 20
    assert max(len(message.content) for message in tool_messages(done)) < 9_000
