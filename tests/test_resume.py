"""Saving, crashing, resuming: judged by what happened in the world."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import crash_run
import pytest
from agent_kit import LOOK, MAIL, PAY, asks, check_transcript, says, world_tools

from course_utils.agent import (
    Limits,
    decide,
    in_doubt,
    killable,
    load_trace,
    new_trace,
    pending,
    resume,
    run_agent,
    settle,
)
from course_utils.approval import Gate, abort, approve, reject
from course_utils.errors import CourseError
from course_utils.models import scripted
from course_utils.retry import ToolTimeout
from course_utils.tools import Tool, tool
from course_utils.trace import Began, Trace
from course_utils.world.world import World

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork and SIGKILL")


def start(folder, *points):
    command = [sys.executable, str(HERE / "crash_run.py"), str(folder), *points]
    path = os.pathsep.join([str(HERE.parent), str(HERE)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def crashes(tmp_path_factory):
    """Folders of runs that were killed at every point, and of one that was not."""
    folder = tmp_path_factory.mktemp("crashes")
    numbers = range(1, crash_run.EVENTS + 1)
    points = [*map(str, numbers), *(f"torn{n}" for n in numbers), "effect1", "effect2"]
    output = start(folder, "whole", *points).communicate()[0].split("\n")
    assert output[:-1] == ["whole ended", *(f"{point} killed" for point in points)]
    return folder


def state(folder):
    """The conversation and the world, without what only a person would have said."""
    with World(folder / "world.db") as world:
        return repr(load_trace(folder / "run.jsonl").messages), world.effects()


def go_on(folder):
    with World(folder / "world.db") as world:
        return resume(folder / "run.jsonl", crash_run.model(), world_tools(world))


def test_the_uninterrupted_run_is_what_the_crashes_are_compared_with(crashes):
    trace = load_trace(crashes / "whole" / "run.jsonl")
    assert len(trace.events) == crash_run.EVENTS and trace.stopped.reason == "answer"
    assert [row["effect"] for row in state(crashes / "whole")[1]] == ["email", "payment"]


@pytest.mark.parametrize("torn", ["", "torn"])
@pytest.mark.parametrize("number", range(1, crash_run.EVENTS + 1))
def test_killed_at_any_event_and_resumed_the_end_is_the_same(crashes, torn, number):
    folder = crashes / f"{torn}{number}"
    if torn and number == 1:
        with pytest.raises(CourseError, match="holds no run"):
            go_on(folder)
        return
    trace = load_trace(folder / "run.jsonl")
    assert len(trace.events) == number - bool(torn)
    last = trace.events[-1]
    run = go_on(folder)
    if isinstance(last, Began) and last.key is None:
        assert run.stop_reason == "unknown_effect" and "pay(" in run.detail
        assert in_doubt(load_trace(folder / "run.jsonl")).call.name == "pay"
        with World(folder / "world.db") as world:  # somebody looks
            happened = world.count("payment") == 1
        result = "Payment 2: 5.00 EUR on INV-004217." if happened else ""
        settle(folder / "run.jsonl", happened, result, who="Ana")
        run = go_on(folder)
    assert run.answer == "Done."
    check_transcript(run.trace.messages)
    assert state(folder) == state(crashes / "whole")


def test_killed_between_an_effect_and_its_result_with_a_key_there_is_one_effect(crashes):
    folder = crashes / "effect1"
    assert load_trace(folder / "run.jsonl").events[-1].call.name == "send_email"
    assert len(state(folder)[1]) == 1
    assert go_on(folder).answer == "Done."
    assert state(folder) == state(crashes / "whole")


def test_killed_between_an_effect_and_its_result_without_a_key_somebody_is_asked(crashes):
    folder = crashes / "effect2"
    for _ in range(2):
        assert go_on(folder).stop_reason == "unknown_effect"
    assert [row["effect"] for row in state(folder)[1]] == ["email", "payment"]
    settle(folder / "run.jsonl", happened=True, result="Payment 2: 5.00 EUR on INV-004217.")
    assert go_on(folder).answer == "Done."
    assert state(folder) == state(crashes / "whole")
    with pytest.raises(CourseError, match="nothing to settle"):
        settle(folder / "run.jsonl", happened=True)


def test_of_two_processes_on_one_run_one_is_told(tmp_path):
    process = start(tmp_path, "hold")
    try:
        assert process.stdout.readline() == "holding\n"
        for try_it in (go_on, lambda folder: decide(folder / "run.jsonl", approve())):
            with pytest.raises(CourseError, match="Another process"):
                try_it(tmp_path / "hold")
        assert load_trace(tmp_path / "hold" / "run.jsonl").last_reply.step == 1
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert go_on(tmp_path / "hold").answer == "Done."


# -- without crashes -------------------------------------------------------------------------------


@pytest.fixture
def world():
    with World() as world:
        yield world


def test_a_pending_approval_survives_and_runs_once(tmp_path, world):
    file, tools = tmp_path / "run.jsonl", world_tools(world)
    done = run_agent(scripted([asks(PAY)]), tools, "Pay.", gate=Gate(), save=file)
    assert done.stop_reason == "waiting_for_approval"
    assert [each.call.name for each in pending(file)] == ["pay"]
    decide(file, approve("checked", "Ana"))
    with pytest.raises(CourseError, match="decided before"):
        decide(file, approve())
    assert world.count() == 0
    for _ in range(2):
        final = resume(file, scripted([says("Paid.")]), tools, gate=Gate())
        assert (final.answer, world.count("payment")) == ("Paid.", 1)
    assert load_trace(file).decisions[0].who == "Ana"


def test_a_new_run_does_not_overwrite_an_old_one(tmp_path, world):
    file = tmp_path / "run.jsonl"
    run_agent(scripted([says("One.")]), [], "Go", save=file)
    with pytest.raises(CourseError, match="resume it"):
        run_agent(scripted([says("Two.")]), [], "Go", save=file)
    assert resume(file, scripted([]), []).answer == "One."
    with pytest.raises(CourseError, match="no saved run"):
        resume(tmp_path / "other.jsonl", scripted([]), [])
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="cannot be saved"):
        run_agent(scripted([]), [], "Go", save=tmp_path / "file" / "run.jsonl")


def saved(tmp_path, world):
    file = tmp_path / "run.jsonl"
    script = scripted([asks(LOOK), asks(MAIL), says("Done.")])
    run_agent(script, world_tools(world), "Go", save=file)
    return file


def test_a_torn_save_gives_the_last_good_state_at_every_byte(tmp_path, world):
    file = saved(tmp_path, world)
    data = file.read_bytes()
    whole = load_trace(file).events
    first = data.index(b"\n") + 1
    for length in range(0, len(data), 3):
        file.write_bytes(data[:length])
        if length < first:
            with pytest.raises(CourseError, match="holds no run"):
                load_trace(file)
        else:
            events = load_trace(file).events
            assert events == whole[: data[:length].count(b"\n")]


def test_any_changed_byte_or_lost_line_is_noticed(tmp_path, world):
    file = saved(tmp_path, world)
    data = file.read_bytes()
    whole = load_trace(file).events
    for place in range(0, len(data), 7):
        changed = bytes([data[place] ^ 1])
        file.write_bytes(data[:place] + changed + data[place + 1 :])
        try:
            events = load_trace(file).events
        except CourseError as error:
            assert "damaged" in str(error) or "holds no run" in str(error)
        else:  # only the very last line end: then the last line counts as torn
            assert place == len(data) - 1 and events == whole[:-1]
    lines = data.splitlines(keepends=True)
    for number in range(len(lines) - 1):
        file.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
        with pytest.raises(CourseError, match=f"Line {number + 1} .* damaged"):
            load_trace(file)


def test_ctrl_c_leaves_a_history_that_can_be_resumed(tmp_path, world):
    interrupts = [KeyboardInterrupt()]

    def look(invoice_id: str) -> str:
        if interrupts:
            raise interrupts.pop()
        return "open"

    tools = world_tools(world)
    tools[0] = Tool("get_invoice", "Look.", tools[0].parameters, look)
    file = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run_agent(scripted([asks(MAIL, LOOK)]), tools, "Go", save=file)
    run = resume(file, scripted([says("Done.")]), tools)
    assert run.answer == "Done." and world.count("email") == 1
    check_transcript(run.trace.messages)


def test_ctrl_c_in_the_model_and_in_memory(world):
    class Interrupted:
        def chat(self, messages, tools=None):
            if len(messages) > 2:
                raise KeyboardInterrupt
            return asks(MAIL)

    tools = world_tools(world)
    trace = new_trace("Go", tools)
    with pytest.raises(KeyboardInterrupt):
        run_agent(Interrupted(), tools, trace=trace)
    run = resume(trace, scripted([says("Done.")]), tools)
    assert run.answer == "Done." and world.count("email") == 1
    check_transcript(run.trace.messages)


def test_limits_count_over_all_parts_of_a_run(tmp_path, world):
    file, tools = tmp_path / "run.jsonl", world_tools(world)
    counts = {"prompt_tokens": 50, "output_tokens": 10}
    now = [0.0]

    def clock():
        now[0] += 1
        return now[0]

    first = run_agent(
        scripted([asks(LOOK, **counts)]),
        tools,
        "Go",
        save=file,
        limits=Limits(max_steps=1),
        clock=clock,
    )
    assert first.stop_reason == "max_steps"
    again = resume(file, scripted([]), tools, limits=Limits(max_tokens=60))
    assert again.stop_reason == "token_budget"
    used = first.trace.stopped.seconds
    again = resume(file, scripted([]), tools, limits=Limits(max_seconds=used), clock=clock)
    assert again.stop_reason == "wall_clock"
    third = ("get_invoice", dict(reversed(LOOK[1].items())))
    script = scripted([asks(third), asks(third), says("?")])
    assert resume(file, script, tools).stop_reason == "repeats"


def test_a_saved_run_grows_with_its_steps_and_not_with_their_square(tmp_path, world):
    sizes = {}
    for count in (25, 50, 100, 200):
        calls = [("get_invoice", {"invoice_id": f"INV-{n:06}"}) for n in range(count)]
        file = tmp_path / f"{count}.jsonl"
        limits = Limits(max_steps=300)
        script = scripted([asks(call) for call in calls] + [says("Done.")])
        run_agent(script, world_tools(world), "Go", limits=limits, save=file)
        sizes[count] = file.stat().st_size
    assert sizes[200] < 1_000_000
    for count in (25, 50, 100):
        assert sizes[2 * count] < 2.1 * sizes[count]


# -- tools in processes of their own ---------------------------------------------------------------


@pytest.fixture
def hang(tmp_path):
    """A tool that starts a process and hangs; the ids of both processes land in a file."""

    @tool
    @killable(seconds=0.5)
    def hang() -> str:
        """Hang."""
        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / "ids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)

    return hang


def gone(pid):
    """Whether a process has ended (a zombie has; somebody else only has not noticed yet)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] == "Z"


def test_a_killable_tool_ends_in_time_and_leaves_no_process(tmp_path, hang):
    began = time.monotonic()
    script = scripted([asks(("hang", {})), says("Sorry.")])
    limits = Limits(tool_seconds=30)
    run = run_agent(script, [hang], "Go", limits=limits)
    assert time.monotonic() - began < 0.5 + 1 and run.answer == "Sorry."
    assert "timeout" in run.trace.messages[-2].content
    pids = (tmp_path / "ids").read_text().split()
    deadline = time.monotonic() + 2
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(map(gone, pids)) and len(pids) == 2


def test_a_killable_function_returns_raises_dies_and_can_be_a_tool():
    @killable(seconds=20)
    def divide(a: int, b: int = 2) -> float:
        """Divide.

        Args:
            a: The dividend.
            b: The divisor.
        """
        if b == 99:
            os._exit(1)
        return a / b if b != 98 else lambda: None

    assert divide(7) == 3.5 and tool(divide).run({"a": 1, "b": 4}) == 0.25
    assert list(tool(divide).schema()["function"]["parameters"]["properties"]) == ["a", "b"]
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    with pytest.raises(CourseError, match="without a result"):
        divide(1, 99)
    with pytest.raises(CourseError, match="cannot leave"):
        divide(1, 98)


def test_killable_ends_without_the_loop_too(hang):
    with pytest.raises(ToolTimeout, match="killed"):
        hang()


def test_a_real_ctrl_c_ends_the_wait_for_a_write_and_nobody_pretends_to_know(world):
    release = threading.Event()
    slow = Tool("slow", "Slow.", None, lambda: release.wait(60), "irreversible")
    trace = new_trace("Go", [slow])
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_agent(scripted([asks(("slow", {}))]), [slow], trace=trace)
    assert time.monotonic() - began < 5
    release.set()
    assert resume(trace, scripted([]), [slow]).stop_reason == "unknown_effect"
    # Nor does it help to take the tool away: that would not tell what has happened.
    assert resume(trace, scripted([]), []).stop_reason == "unknown_effect"


def test_a_run_cut_off_just_before_its_stop_stops_for_the_same_reason(world):
    tools = world_tools(world)
    broken = "<tool_call>{'name': 'pay'}</tool_call>"
    gates = [None, None, Gate(ask=lambda request: abort("no")), Gate(ask=lambda r: reject("no"))]
    scripts = [[asks(LOOK)] * 3, [broken] * 3, [asks(PAY, LOOK)], [asks(PAY)] * 3]
    for gate, script in zip(gates, scripts, strict=True):
        run = run_agent(scripted(script), tools, "Go", gate=gate)
        for last in range(1, 2 + (gate is gates[2])):
            again = resume(Trace(run.trace.events[:-last]), scripted([]), tools, gate=gate)
            assert (again.stop_reason, again.detail) == (run.stop_reason, run.detail)
            assert repr(again.trace.messages) == repr(run.trace.messages)
            assert run.stop_reason in ("repeats", "denied")


def test_what_was_told_is_not_told_again(world):
    broken = "<tool_call>{'name': 'pay'}</tool_call>"
    run = run_agent(scripted([broken]), world_tools(world), "Go", limits=Limits(max_steps=1))
    for trace in (run.trace, Trace(run.trace.events[:-1])):
        again = resume(trace, scripted([says("Done.")]), world_tools(world))
        check_transcript(again.trace.messages)
        assert again.answer == "Done."
