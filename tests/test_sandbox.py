"""What an ordinary program can rely on in the sandbox, in every variant that runs here."""

import threading

import pytest

from course_utils.errors import CourseError
from course_utils.sandbox import HostCall, Sandbox, SandboxUnavailable, variants

PROBLEMS = {name: variants.problem_of(name) for name in variants.NAMES}
RUNNING = [
    pytest.param(name, marks=pytest.mark.skipif(problem is not None, reason=f"{name}: {problem}"))
    for name, problem in PROBLEMS.items()
]


def search(query: str, limit: int = 3) -> dict:
    if query == "nothing":
        raise KeyError("no such page")
    return {"query": query, "limit": limit}


@pytest.fixture(scope="module", params=RUNNING)
def sandbox(request):
    with Sandbox(
        tools=[search], imports=["math", "os.*"], seconds=30, variant=request.param
    ) as made:
        yield made


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("6 * 7", 42),
        ("x = 5", 5),
        ("x: int = 5", 5),
        ("x = 5\nx += 1", 6),
        ("'é' + '→'", "é→"),
        ("[1, {'a': None, 'b': [True, 0.5]}]", [1, {"a": None, "b": [True, 0.5]}]),
        ("(1, 2)", "(1, 2)"),
        ("{1: 'a'}", "{1: 'a'}"),
        ("{'a': (1,)}", "{'a': (1,)}"),
        ("float('nan')", "nan"),
        ("x, y = 1, [2]", "(1, [2])"),
        ("d = {}\nd['a'] = [5]", [5]),
        ("d = [1]\nd[0] += 4", 5),
        ("x: int", None),
        ("def f(): return 1", None),
        ("for i in range(3): i", 2),
        ("for i in range(3):\n    x = i * 2", 4),
        ("while True:\n    x = 1\n    break", None),
        ("if 1 > 2:\n    'no'\nelse:\n    'yes'", "yes"),
        ("if 1 > 2: 'no'", None),
        ("for i in range(2): print(end='')", None),
        ("", None),
        ("# nothing", None),
        ("'\\ud800'", "?"),
    ],
)
def test_output_is_the_value_of_the_last_line(sandbox, code, output):
    done = sandbox.run(code)
    assert (done.output, done.logs, done.error, done.is_final_answer) == (output, "", None, False)


def test_prints_errors_and_warnings_are_logs(sandbox):
    code = (
        "import math\nprint('a', 1, sep='-')\nprint(math.floor(2.5), end='')\nprint('é→😀\\nlast')"
    )
    assert sandbox.run(code).logs == "a-1\n2é→😀\nlast\n"


def test_state_is_kept_between_steps(sandbox):
    sandbox.run("def double(x):\n    return factor * x\nfactor = 2")
    assert sandbox.run("double(4)").output == 8
    assert sandbox.run("factor = 10\ndouble(4)").output == 40


def test_a_target_is_not_evaluated_again_for_its_value(sandbox):
    done = sandbox.run("counts = {'Rome': 1}\ncounts[search('Rome')['query']] += 1")
    assert len(done.calls) == 1 and sandbox.run("counts").output == {"Rome": 2}


def test_state_outlives_the_thread_that_began(sandbox):
    sandbox.close()
    thread = threading.Thread(target=sandbox.run, args=("kept = 1",))
    thread.start()
    thread.join()
    assert sandbox.run("kept").output == 1


def test_variables_come_in(sandbox):
    done = sandbox.run("sorted(cities), n", {"cities": ["Rome", "Oslo"], "n": None})
    assert done.output == "(['Oslo', 'Rome'], None)"
    assert sandbox.run("cities").output == ["Rome", "Oslo"]


@pytest.mark.parametrize("value", [float("inf"), object(), {"a": {1, 2}}])
def test_a_variable_that_is_no_data_is_named(sandbox, value):
    with pytest.raises(CourseError, match="'page' cannot go into the sandbox"):
        sandbox.run("page", {"page": value})


def test_calls_of_tools_are_run_and_written_down_by_the_host(sandbox):
    done = sandbox.run(
        "found = [search(city)['query'] for city in ('Rome', 'Oslo')]\n"
        "found.append(search(limit=1, query='Bern')['limit'])\nfound"
    )
    assert done.output == ["Rome", "Oslo", 1]
    assert done.calls == (
        HostCall("search", {"query": "Rome"}, {"query": "Rome", "limit": 3}, True),
        HostCall("search", {"query": "Oslo"}, {"query": "Oslo", "limit": 3}, True),
        HostCall("search", {"limit": 1, "query": "Bern"}, {"query": "Bern", "limit": 1}, True),
    )
    assert sandbox.run("1").calls == ()


def test_a_tool_that_fails_is_an_error_which_the_program_can_catch(sandbox):
    done = sandbox.run("try:\n    search('nothing')\nexcept RuntimeError as e:\n    print(e)")
    assert done.logs == "search failed: KeyError: 'no such page'\n"
    assert done.calls[0].ok is False and "no such page" in done.calls[0].result
    done = sandbox.run("x = 1\nsearch()")
    assert done.error.startswith("Code execution failed at line 2 'search()' due to: RuntimeError")
    assert "query" in done.error


def test_final_answer_ends_the_program(sandbox):
    done = sandbox.run(
        "def f():\n    final_answer({'a': [1]})\n"
        "try:\n    f()\nexcept Exception:\n    pass\nprint(1)"
    )
    assert (done.output, done.is_final_answer, done.logs) == ({"a": [1]}, True, "")
    assert sandbox.run("final_answer(answer=None)").is_final_answer
    assert not sandbox.run("1").is_final_answer


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("x = 1\ny = x / 0\n", "Code execution failed at line 2 'y = x / 0' due to: ZeroDivision"),
        (
            "def f(x):\n    return x['a']\n\nf({})",
            "Code execution failed at line 2 'return x['a']' due to: KeyError: 'a'",
        ),
        ("import math\nmath.sqrt('x')", "Code execution failed at line 2 'math.sqrt('x')' due to"),
        ("prnt(1)", "Code execution failed at line 1 'prnt(1)' due to: NameError"),
        ("x = [1,\ny = 2", "Code parsing failed on line 1 due to: SyntaxError"),
        ("if True:\nx = 1", "Code parsing failed on line 2 due to: SyntaxError"),
        ("input()", "Code execution failed"),
    ],
)
def test_an_error_names_the_line_of_the_program(sandbox, code, error):
    done = sandbox.run(code)
    assert done.error.startswith(error) and done.output is None


def test_an_error_in_a_function_of_an_earlier_step_names_the_line_that_called(sandbox):
    sandbox.run("# one\n# two\ndef divide(x):\n    return 1 / x")
    assert "at line 2 'divide(0)' due to: ZeroDivisionError" in sandbox.run("\ndivide(0)").error


def test_only_authorised_modules_are_imported(sandbox):
    assert sandbox.run("import math, os.path\nfrom os import sep\nmath.pi > 3").output is True
    for code in ("import sys", "from re import sub", "import mathematics", "__import__('json')"):
        error = sandbox.run(code).error
        assert "ImportError: Import of" in error
        assert "is not allowed. Authorized imports are: ['math', 'os.*']" in error


def test_a_tool_cannot_start_another_program_in_the_sandbox_it_serves(sandbox):
    sandbox.offer([lambda_named("nested", lambda: sandbox.run("1").output)])
    error = sandbox.run("nested()").error
    sandbox.offer([search])
    assert "no tool can start another" in error
    assert "NameError" in sandbox.run("nothing_like_it()").error


def lambda_named(name, function):
    function.__name__ = name
    return function


def test_a_tool_of_an_earlier_offer_is_gone(sandbox):
    sandbox.offer([lambda_named("old", lambda: 1)])
    assert sandbox.run("old()").output == 1
    sandbox.offer([search])
    assert "old" not in sandbox.offered and "NameError" in sandbox.run("old()").error


def test_the_call_handler_decides(sandbox):
    class Calculator:
        name = "calculator"
        parameters = {"type": "object", "properties": {"expression": {}, "digits": {}}}

    seen = []

    def call(name, args, kwargs):
        seen.append((name, args, kwargs))
        return "allowed"

    with Sandbox(call, tools=[Calculator(), "bare"], seconds=30, variant=sandbox.variant) as other:
        done = other.run("print(calculator('1 + 1', digits=2), bare(1, 2))")
    assert seen == [("calculator", ["1 + 1"], {"digits": 2}), ("bare", [1, 2], {})]
    assert done.logs == "allowed allowed\n"
    assert done.calls[0].arguments == {"expression": "1 + 1", "digits": 2}
    assert done.calls[1].arguments == {"0": 1, "1": 2}


def test_the_record_is_what_was_asked_whatever_the_tool_does_with_it(sandbox):
    def spoil(items):
        items.append("spoilt")
        return items

    with Sandbox(tools=[spoil], seconds=30, variant=sandbox.variant) as other:
        (call,) = other.run("spoil(['a'])").calls
    assert (call.arguments, call.result) == ({"items": ["a"]}, ["a", "spoilt"])


def test_no_argument_hides_another_in_the_record(sandbox):
    def send(*texts, **more):
        return len(texts)

    with Sandbox(
        lambda name, args, kwargs: len(args), tools=[send, "bare"], variant=sandbox.variant
    ) as other:
        done = other.run("send('a', 'b', texts='x', **{'0': 'c'})\nbare(1, **{'0': 2, '0=': 3})")
    assert done.calls[0].arguments == {"0": "a", "1": "b", "texts": "x", "0=": "c"}
    assert done.calls[1].arguments == {"0": 1, "0=": 2, "0==": 3}
    failed = sandbox.run("try: search('real', query='shown')\nexcept RuntimeError: pass").calls[0]
    assert failed.arguments == {"query": "real", "query=": "shown"} and not failed.ok


def test_an_interrupted_tool_ends_the_worker_and_the_next_step_has_another(sandbox):
    def interrupted():
        raise KeyboardInterrupt

    with Sandbox(tools=[interrupted], seconds=30, variant=sandbox.variant) as other:
        with pytest.raises(KeyboardInterrupt):
            other.run("interrupted()")
        assert other.run("2").output == 2


def test_after_close_another_worker_starts_empty(sandbox):
    sandbox.run("kept = 1")
    sandbox.close()
    sandbox.close()
    assert "NameError" in sandbox.run("kept").error


def test_the_answer_is_shown_with_its_calls(sandbox):
    text = repr(sandbox.run("print('hi')\nsearch('Rome')\nfinal_answer(2)"))
    call = "search(query='Rome') -> {'query': 'Rome', 'limit': 3}"
    assert text == f"hi\n{call}\nfinal answer: 2"
    failed = sandbox.run("search('nothing')")
    assert repr(failed.calls[0]) == "search(query='nothing') failed: \"KeyError: 'no such page'\""
    assert len(repr(sandbox.run("'x' * 9999"))) < 2100
    assert repr(sandbox.run("1 / 0")).startswith("Code execution failed at line 1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": 0}, "seconds has to be a number above 0"),
        ({"seconds": float("nan")}, "seconds has to be a number above 0"),
        ({"memory_mb": "512"}, "memory_mb has to be"),
        ({"variant": "docker"}, "No sandbox is called 'docker'. There are: deno, bubblewrap"),
        ({"imports": "math"}, "has to be a list of module names"),
        ({"imports": ["numpy", "math"]}, "Python's own modules only; it cannot offer numpy"),
        ({"tools": ["search"]}, "Nothing says how to run search"),
        ({"tools": [search, search]}, "'search' is taken"),
        ({"tools": [lambda_named("final_answer", lambda x: x)]}, "'final_answer' is taken"),
        ({"tools": [lambda x: x]}, "'<lambda>' cannot be called from Python"),
        ({"tools": [3]}, "3 is no tool"),
    ],
)
def test_what_cannot_be_is_said_at_once(settings, message, monkeypatch):
    monkeypatch.setattr(variants, "problem_of", known_only)
    with pytest.raises(CourseError, match=message):
        Sandbox(**settings)


def known_only(name):
    return variants.module_of(name) and None


def test_where_nothing_runs_code_is_refused(monkeypatch):
    from course_utils.sandbox import bubblewrap, deno

    monkeypatch.setattr(deno, "problem", lambda: "Pyodide is not installed")
    monkeypatch.setattr(bubblewrap, "problem", lambda: "Linux only")
    with pytest.raises(SandboxUnavailable) as caught:
        Sandbox()
    assert str(caught.value) == (
        "Model-written code runs in a sandbox only, and none can be used here (deno: Pyodide is "
        "not installed; bubblewrap: Linux only). Type: python -m course_utils sandbox"
    )
    monkeypatch.setattr(bubblewrap, "problem", lambda: None)
    assert Sandbox().variant == "bubblewrap"


def test_chance_begins_anew_with_every_worker_and_entropy_is_real(sandbox):
    code = "import random, os\nprint(random.random())\nlen(os.urandom(8))"
    seen = set()
    for _ in range(2):
        with Sandbox(imports=["random", "os"], seconds=30, variant=sandbox.variant) as other:
            done = other.run(code)
        assert (done.output, done.error) == (8, None)
        seen.add(done.logs)
    assert len(seen) == 1
