"""The host believes nothing: what a worker could write that no worker writes ends it by name."""

import json
import subprocess
import sys
import time

import pytest

from course_utils.errors import CourseError
from course_utils.sandbox import Sandbox, box, variants
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


def test_a_worker_that_says_nothing_is_stopped(fake):
    done = fake(seconds=0.5).run("send(print='a')\ntime.sleep(60)")
    assert "stopped after 0.5 s, its time limit" in done.error and done.logs == "a"


def test_the_time_of_tools_is_not_the_program_s(fake):
    sandbox = fake(seconds=2)
    sandbox.call = lambda *_: time.sleep(2.5)
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


def test_workers_end_with_the_process_that_started_them(tmp_path):
    code = (
        "import sys, course_utils.sandbox.worker as w\n"
        "from course_utils.sandbox.variants import Command\n"
        f"source = {FAKE!r}\n"
        "worker = w.Worker(Command([sys.executable, '-c', source], {}), {})\n"
        "print(worker._process.pid)\nimport os; os._exit(0)"
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
    from course_utils.sandbox import worker

    assert box.MAX_RESULT < worker.MAX_LINE
