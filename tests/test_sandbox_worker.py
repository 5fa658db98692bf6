"""The host believes nothing: what a worker could write that no worker writes ends it by name."""

import gc
import json
import subprocess
import sys
import threading
import time

import pytest

from course_utils.errors import CourseError
from course_utils.sandbox import Sandbox, box, variants, worker
from course_utils.sandbox.variants import Command

# A worker that reads its word and a request, and then writes whatever it is told to.
FAKE = """
import json, sys, time
word = json.loads(sys.stdin.readline())["word"]
def send(**message):
    print(json.dumps({"word": word} | message), flush=True)
send(ready="fake")
for line in sys.stdin:
    request = json.loads(line)
    if "code" in request:
        exec(request["code"])
"""
SEARCH = '{"name": "search", "args": [], "kwargs": {}}'
DONE = 'send(done=\'{"output": 1, "error": null, "is_final": false}\')'


@pytest.fixture
def fake(monkeypatch):
    """A sandbox whose worker is FAKE, or the given source."""
    made = []

    def make(source=FAKE, **settings):
        monkeypatch.setattr(variants, "problem_of", lambda name: None)
        monkeypatch.setattr(
            variants, "prepare", lambda *_: (Command([sys.executable, "-c", source], {}), {})
        )
        made.append(Sandbox(lambda name, args, kwargs: "found", tools=["search"], **settings))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()


def call(text):
    return f"send(call={text!r})"


@pytest.mark.parametrize(
    ("writes", "error"),
    [
        ("print('hello', flush=True)", "it wrote a line that is no JSON"),
        ("print('{}', flush=True)", "it wrote a line that is no message"),
        ("print('[' * 10**5, flush=True)", "it wrote a line that is no JSON"),
        ("print('[1]', flush=True)", "it wrote a line that is no message"),
        ('print(json.dumps({"word": "guess", "done": "{}"}), flush=True)', "that is no message"),
        ('print(json.dumps({"done": "{}"}), flush=True)', "it wrote a line that is no message"),
        ("send(done='{}', print='')", "it wrote a line that is no message"),
        ("send(open='/etc/passwd')", "it wrote a message of an unknown kind"),
        ("send(print=3)", "it wrote a message of an unknown kind"),
        ("send(print=None)", "it wrote a message of an unknown kind"),
        ("send(done={'output': 1})", "it wrote a message of an unknown kind"),
        ("send(ready='again')", "it spoke out of turn"),
        ("send(done='{}')", "its result has the wrong shape"),
        ("send(done='NaN')", "it wrote a line that is no JSON"),
        ('send(done=\'{"output": NaN, "error": null, "is_final": true}\')', "that is no JSON"),
        ('send(done=\'{"output": 1, "error": 2, "is_final": true}\')', "has the wrong shape"),
        ('send(done=\'{"output": 1, "error": null, "is_final": 1}\')', "has the wrong shape"),
        (call("3"), "it asked for a call that is none"),
        (call('{"name": "search", "args": {}, "kwargs": {}}'), "a call that is none"),
        (call('{"name": ["search"], "args": [], "kwargs": {}}'), "a call that is none"),
        (call('{"name": "__class__", "args": [], "kwargs": {}}'), "'__class__', which is no tool"),
        (call('{"name": "search", "args": [NaN], "kwargs": {}}'), "a line that is no JSON"),
        ("send(print='x' * 9_000_000)", "it wrote a line of more than 8000000 bytes"),
        ("send(print='x' * 2000)", "it printed more than its limit"),
        ("for i in range(2000): send(print='x')", "it printed more than its limit"),
        ("for i in range(2000): send(full=True)", "it spoke out of turn"),
        ("send(broken='wires')", "it broke the sandbox's Python (wires)"),
        ("sys.exit()", "the worker ended"),
        ("sys.stdout.buffer.write(bytes(range(256)) + b'\\n'); sys.stdout.flush()", "no JSON"),
    ],
)
def test_a_line_that_no_worker_writes_ends_it(fake, writes, error):
    sandbox = fake(output_chars=1000)
    done = sandbox.run(writes)
    assert done.error.startswith("The program was stopped: ") and error in done.error
    assert (done.output, done.is_final_answer, done.calls) == (None, False, ())
    assert sandbox.run(DONE).output == 1


def test_a_worker_that_writes_without_end_is_stopped(fake):
    done = fake(seconds=1).run("while True: send(print='')")
    assert "its time limit" in done.error


def test_a_worker_that_writes_faster_than_it_is_read_is_stopped(fake):
    lines = "(json.dumps({'word': word, 'print': ''}) + chr(10)).encode() * 10_000"
    writes = f"lines = {lines}\nwhile True: sys.stdout.buffer.write(lines)"
    assert "its time limit" in fake(seconds=1).run(writes).error


def test_a_worker_that_asks_and_never_reads_the_answer_is_stopped(fake):
    sandbox = fake(seconds=1)
    sandbox.call = lambda *_: "x" * 900_000
    done = sandbox.run(f"{call(SEARCH)}\ntime.sleep(60)")
    assert "its time limit" in done.error and len(done.calls) == 1
    assert sandbox.run(DONE).output == 1


def test_a_worker_that_does_not_read_its_program_is_stopped(fake):
    sandbox = fake(seconds=1)
    sandbox.run(f"{DONE}\ntime.sleep(60)")
    assert "its time limit" in sandbox.run("x" * 900_000).error


def test_calls_without_end_are_stopped(fake):
    sandbox = fake(seconds=1, max_calls=3)
    done = sandbox.run(f"while True:\n    {call(SEARCH)}\n    sys.stdin.readline()")
    assert "its time limit" in done.error and len(done.calls) == 3


def test_a_step_whose_sandbox_is_closed_meanwhile_ends(fake):
    sandbox = fake(seconds=100)
    sandbox.run(DONE)
    closing = threading.Timer(0.2, sandbox.close)
    closing.start()
    done = sandbox.run("time.sleep(200)")
    closing.join()
    assert "time limit" not in done.error and sandbox.run(DONE).output == 1


def test_a_sandbox_that_is_dropped_ends_its_worker(monkeypatch):
    monkeypatch.setattr(variants, "problem_of", lambda name: None)
    monkeypatch.setattr(
        variants, "prepare", lambda *_: (Command([sys.executable, "-c", FAKE], {}), {})
    )
    sandbox = Sandbox()
    sandbox.run(DONE)
    process = sandbox._worker._process
    del sandbox
    gc.collect()
    assert process.poll() is not None


def test_a_start_that_is_interrupted_leaves_no_process(fake, monkeypatch):
    started = []

    def interrupted(self, seconds):
        started.append(self._process)
        raise KeyboardInterrupt

    monkeypatch.setattr(worker.Worker, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fake().run("1")
    assert started[0].poll() is not None


def test_a_worker_that_never_gets_ready_is_told():
    command = Command([sys.executable, "-c", "import time; time.sleep(60)"], {})
    with pytest.raises(CourseError, match="did not start: it was not ready within 0.2 s"):
        worker.Worker(command, {}, start_seconds=0.2)


def test_a_long_error_of_a_tool_is_cut(fake):
    def fail(*_):
        raise ValueError("x" * 5_000_000)

    sandbox = fake()
    sandbox.call = fail
    (record,) = sandbox.run(f"{call(SEARCH)}\nsys.stdin.readline()\n{DONE}").calls
    assert not record.ok and len(record.result) <= 10_000


def test_a_worker_that_says_nothing_is_stopped(fake):
    done = fake(seconds=0.5).run("send(print='a')\ntime.sleep(60)")
    assert "stopped after 0.5 s, its time limit" in done.error and done.logs == "a"


def test_the_time_of_tools_is_not_the_program_s(fake):
    sandbox = fake(seconds=1)
    sandbox.call = lambda *_: time.sleep(1.2)
    asks = call('{"name": "search", "args": ["a"], "kwargs": {}}')
    done = sandbox.run(f"{asks}\njson.loads(sys.stdin.readline())\n{DONE}")
    assert done.error is None and len(done.calls) == 1


def test_a_worker_that_writes_between_programs_is_replaced(fake):
    sandbox = fake()
    sandbox.run(f"global kept\nkept = 1\n{DONE}\nsend(print='later')")
    first = sandbox._worker
    while first.idle():
        time.sleep(0.01)
    assert sandbox.run(DONE).output == 1
    assert sandbox._worker is not first


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; sys.exit('no memory')", r"did not start: the worker ended \(no memory\)"),
        ("print('hello')", "did not start: it wrote a line that is no JSON"),
        (FAKE.replace("ready", "print"), "did not start: it began with 'print'"),
    ],
)
def test_a_worker_that_does_not_start_is_told(fake, source, message):
    with pytest.raises(CourseError, match=message):
        fake(source).run("1")


def test_a_program_that_is_missing_is_told(fake, monkeypatch):
    sandbox = fake()
    monkeypatch.setattr(variants, "prepare", lambda *_: (Command(["/no/such/program"], {}), {}))
    with pytest.raises(CourseError, match="cannot be started: .*No such file"):
        sandbox.run("1")


def test_results_of_tools_go_back_as_data(fake):
    sandbox = fake()
    asks = call('{"name": "search", "args": [], "kwargs": {}}')
    send_back = (
        f"{asks}\nsend(done=json.dumps({{'output': json.loads(sys.stdin.readline()),"
        "'error': None, 'is_final': False}))"
    )
    for result, answer in [
        ({"a": (1, None)}, {"value": {"a": [1, None]}}),
        (float("nan"), {"error": "search failed: ValueError: Out of range float values"}),
        (object(), {"error": "search failed: TypeError: Object of type object is not JSON"}),
        ("x" * 1_000_001, {"error": "search failed: ValueError: the result is longer"}),
    ]:
        sandbox.call = lambda *_, result=result: result
        done = sandbox.run(send_back)
        (key,) = answer
        assert str(done.output[key]).startswith(str(answer[key]))
        assert done.calls[0].ok == (key == "value")
        if key == "value":
            result["a"] = "changed later"
            assert done.calls[0].result == answer[key]


@pytest.mark.parametrize("busy", ["", "worker.send({'code': 'while True: pass'}, 5)\n"])
def test_workers_end_with_the_process_that_started_them(busy):
    code = (
        "import sys, course_utils.sandbox.worker as w\n"
        "from course_utils.sandbox.variants import Command\n"
        f"source = {FAKE!r}\n"
        "worker = w.Worker(Command([sys.executable, '-c', source], {}), {})\n"
        f"{busy}print(worker._process.pid)\nimport os; os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    pid = int(done.stdout)
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def alive(pid):
    import os

    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return not state.stdout.startswith("Z")


def test_json_of_a_worker_keeps_no_half_characters():
    from course_utils.sandbox.worker import read_json

    assert read_json('{"a": "\\ud800", "b": "\\ud83d\\ude00"}') == {"a": "?", "b": "😀"}
    assert json.dumps(read_json('"\\uDFFF"')) == '"?"'


def test_limits_of_the_box_are_above_those_inside():
    assert box.MAX_RESULT < worker.MAX_LINE
    assert worker.MAX_LINE * worker.MAX_WAITING < 200_000_000  # what the host may hold
