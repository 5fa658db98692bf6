"""Programs that try to get out of the sandbox, to stop it, or to speak for it: none may succeed.

All may import everything ("*"): the list of imports is for clarity, not what keeps them inside.
"""

import os
import socket
import threading
from pathlib import Path

import pytest

from course_utils.sandbox import Sandbox, deno, variants

SECRET = "the-secret-of-the-host"
PROBLEMS = {name: variants.problem_of(name) for name in variants.NAMES}
RUNNING = [
    pytest.param(name, marks=pytest.mark.skipif(problem is not None, reason=f"{name}: {problem}"))
    for name, problem in PROBLEMS.items()
]


class Host:
    """What a program could reach: a tool, a secret in file and environment, an open port."""

    def __init__(self, variant, folder):
        self.asked = []
        self.file = folder / "secret.txt"
        self.file.write_text(SECRET)
        self.folder = folder
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.visits = []
        threading.Thread(target=self.listen, daemon=True).start()
        self.sandbox = Sandbox(
            self.call,
            tools=["search"],
            imports=["*"],
            seconds=20,
            memory_mb=256,
            output_chars=2000,
            max_calls=20,
            variant=variant,
        )

    def call(self, name, args, kwargs):
        self.asked.append(name)
        return "x" * 3_000_000 if args == ["giant"] else "found"

    def listen(self):
        while True:
            try:
                self.visits.append(self.server.accept())
            except OSError:
                return

    def run(self, code):
        return self.sandbox.run(code, {"path": str(self.file), "port": self.port})


@pytest.fixture(scope="module", params=RUNNING)
def host(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_TEST_SECRET", SECRET)
        made = Host(request.param, tmp_path_factory.mktemp("host"))
        yield made
        made.sandbox.close()
        made.server.close()


def test_a_variant_runs_here():
    assert None in PROBLEMS.values(), PROBLEMS


# What they try, and what must be in their output, prints or error (any one of several).
READING = {
    "passwd": ("open('/etc/passwd').read()", ["FileNotFoundError"]),
    "a file of the host": ("open(path).read()", ["FileNotFoundError"]),
    "a file through os": ("import os\nos.open(path, os.O_RDONLY)", ["FileNotFoundError"]),
    "folders of the host": ("import os\nos.listdir(os.path.dirname(path))", ["FileNotFound"]),
    "environment": ("import os\nprint(dict(os.environ))", ["PWD"]),
    "environment of others": ("open('/proc/self/environ').read()", ["FileNotFoundError"]),
    "socket": (
        "import socket\nsocket.create_connection(('127.0.0.1', port), 1).send(b'x')",
        ["PermissionError", "OSError"],
    ),
    "datagram": (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', port))",
        ["PermissionError", "OSError"],
    ),
    "urllib": (
        "import urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{port}/')",
        ["URLError", "unknown url type", "ModuleNotFoundError", "OSError"],
    ),
    "pyodide.http": (
        "from pyodide.http import open_url\nopen_url(f'http://127.0.0.1:{port}/')",
        ["ModuleNotFoundError"],
    ),
    "subprocess": ("import subprocess\nsubprocess.run(['ls'])", ["PermissionError", "OSError"]),
    "fork": ("import os\nwhile True: os.fork()", ["PermissionError", "OSError", "AttributeError"]),
    "threads": (
        "import threading\nwhile True: threading.Thread(target=input).start()",
        ["can't start new thread"],
    ),
    "exec": ("import os\nos.execv('/bin/sh', ['sh'])", ["PermissionError", "OSError", "broke"]),
    "shell": (
        "import os\nstatus = os.system(f'touch {path}.new')\nassert status == 0, 'no shell'",
        ["no shell", "broke the sandbox's Python"],
    ),
    "C library": (
        "import ctypes\nassert ctypes.CDLL(None).system(f'touch {path}.new'.encode()) == 0, 'no'",
        ["AssertionError: no", "broke", "Error"],
    ),
    "write beside the file": ("open(path + '.new', 'w').write('x')", ["FileNotFoundError"]),
    "big file": (
        "with open('/tmp/big', 'wb') as file:\n    while True: file.write(bytes(10**7))",
        ["No space left", "File too large"],
    ),
    "big pipe": (
        "import os\nreader, writer = os.pipe()\nos.set_blocking(writer, False)\n"
        "while True: os.write(writer, bytes(10**6))",
        ["No space left", "temporarily unavailable"],
    ),
    "classes": (
        "names = [c.__name__ for c in object.__subclasses__()]\n"
        "loader = [c for c in object.__subclasses__() if c.__name__ == 'BuiltinImporter'][0]\n"
        "os = loader.load_module('posix')\nos.listdir(path.rsplit('/', 1)[0])",
        ["FileNotFoundError"],
    ),
    "globals of a tool": (
        "names = search.__globals__\nos = names['sys'].modules['os']\nos.listdir(path)",
        ["FileNotFoundError"],
    ),
    "frames": (
        "import sys\nframe = sys._getframe()\n"
        "while frame.f_back: frame = frame.f_back\nprint(frame.f_globals.keys())",
        ["dict_keys"],
    ),
    "JavaScript": ("import js\njs.Deno.readTextFileSync(path)", ["ModuleNotFoundError"]),
    "JavaScript of Pyodide": ("import pyodide_js\npyodide_js.FS", ["ModuleNotFoundError"]),
    "run_js": ("from pyodide.code import run_js\nrun_js('Deno')", ["ModuleNotFoundError"]),
    "run_js with modules fetched anew": (
        "import sys\n"
        "for name in list(sys.modules):\n"
        "    if 'pyodide' in name or name == 'js': del sys.modules[name]\n"
        "from pyodide.code import run_js\nrun_js('Deno.env.toObject()')",
        ["ModuleNotFoundError", "EvalError"],
    ),
    "constructor of a JavaScript function": (
        "(ask,) = [c.cell_contents for c in search.__closure__ if callable(c.cell_contents)]\n"
        "ask.constructor('return Deno.env.toObject()')()",
        ["EvalError", "AttributeError"],
    ),
}


@pytest.mark.parametrize("name", READING)
def test_nothing_of_the_host_is_reached(host, name):
    code, expected = READING[name]
    done = host.run(code)
    said = f"{done.logs}{done.output}{done.error}"
    assert any(each in said for each in expected), said
    assert SECRET not in said and not done.is_final_answer
    assert host.visits == [] and host.asked == []
    assert [each.name for each in host.folder.iterdir()] == ["secret.txt"]
    assert host.run("1 + 1").output == 2


ENDLESS = {
    "loop": "while True: pass",
    "loop that catches": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    ),
    "one long call": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "memory, caught": (
        "kept = []\nwhile True:\n"
        "    try: kept.append(bytearray(10**7))\n    except MemoryError: pass"
    ),
    "power": "10**10**10",
    "prints of nothing": "while True: print('', end='')",
    "text of the output": "class Text:\n    def __str__(self):\n        while True: pass\nText()",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_ended(host, name):
    host.run("1 + 1")
    host.sandbox.seconds = 0.5
    done = host.run(f"kept = 1\nprint('began')\n{ENDLESS[name]}")
    host.sandbox.seconds = 20
    assert "stopped after 0.5 s, its time limit" in done.error and "starts anew" in done.error
    assert done.logs == "began\n" and done.output is None
    assert "NameError" in host.run("kept").error


HEAVY = {
    "memory": ("kept = bytearray(2 * 10**9)", "MemoryError"),
    "memory in small pieces": ("kept = []\nwhile True: kept.append(bytearray(10**7))", "MemoryErr"),
    "recursion": ("def f(n): return f(n + 1)\nf(0)", "RecursionError"),
    "nested source": ("(" * 5000, "Code parsing failed"),
    "giant argument": ("search('x' * 2_000_000)", "longer than 1000000 characters"),
    "giant result": ("search('giant')", "longer than 1000000 characters"),
    "many calls": ("while True: search('x')", "20 calls are the limit of one step"),
    "object as argument": ("search(object())", "plain JSON data"),
    "function as argument": ("search(search)", "plain JSON data"),
    "NaN as argument": ("search(float('nan'))", "plain JSON data"),
    "infinite number": ("search([1e999])", "plain JSON data"),
    "circle as argument": ("x = []\nx.append(x)\nsearch(x)", "plain JSON data"),
    "error that hides": (
        "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad",
        "Bad: (its message cannot be shown)",
    ),
    "error without a name": (
        "class Kind(type): __name__ = property(lambda self: 1 / 0)\n"
        "class Bad(Exception, metaclass=Kind): pass\nraise Bad",
        "due to: Bad: ",
    ),
    "giant list": ("list(range(10**12))", "Error"),
    "exit": ("import sys\nsys.exit()", "SystemExit"),
    "keyboard": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "tool not offered": ("send_email('a@example.com')", "NameError"),
    "tool defined anew": ("def search(query): return 'made up'", "Cannot assign to name 'search'"),
    "final_answer defined anew": ("final_answer = print", "Cannot assign to name 'final_answer'"),
    "final_answer by global": ("def f():\n    global final_answer\n    final_answer = 1", "Cannot"),
}


@pytest.mark.parametrize("name", HEAVY)
def test_what_is_too_much_is_an_error_of_the_program(host, name):
    code, expected = HEAVY[name]
    host.sandbox.run("kept = 0")
    done = host.run(code)
    host.asked.clear()
    assert expected in done.error, done
    assert host.run("1 + 1").output == 2


DEADLY = {
    "exit at once": "import os\nos._exit(0)",
    "abort": "import os\nos.abort()",
    "deep list as argument": "x = []\nfor i in range(10**5): x = [x]\nsearch(x)",
    "deep list as output": "x = []\nfor i in range(10**5): x = [x]\nx",
    "recursion without limit": (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)"
    ),
    "number without limit": "import sys\nsys.set_int_max_str_digits(0)\nsearch(10**9999)",
    "null pointer": "import ctypes\nctypes.string_at(0)",
    "descriptors closed": "import os\nos.closerange(0, 99)",
}


@pytest.mark.parametrize("name", DEADLY)
def test_the_next_program_runs_whatever_became_of_the_worker(host, name):
    done = host.run(DEADLY[name])
    assert not done.is_final_answer and done.calls == () and host.asked == []
    assert host.run("1 + 1").output == 2
    if "starts anew" not in str(done.error):
        host.sandbox.close()


@pytest.mark.parametrize(
    "code",
    [
        "raise type('x' * 3_000_000, (Exception,), {})",
        "raise ValueError('x' * 3_000_000)",
        f"1 / 0  # {'x' * 100_000}",
        f"x = ({'x' * 100_000} 1)",
    ],
    ids=["name", "message", "line", "syntax"],
)
def test_an_error_is_no_longer_than_a_model_can_read(host, code):
    done = host.run(code)
    assert done.error.startswith("Code ") and len(done.error) <= 10_000


@pytest.mark.parametrize("end", ["\\n", ""])
def test_output_is_cut_at_its_limit(host, end):
    done = host.run(f"print('x' * 10**7, end='{end}')\nprint('more')\nfinal_answer(3)")
    assert done.output == 3
    assert done.logs.startswith("x" * 2000) and "truncated to stay below 2000" in done.logs
    assert len(done.logs) < 2200


def test_many_small_prints_are_cut_as_well(host):
    done = host.run("for i in range(3000): print(i)")
    assert done.error is None and len(done.logs) < 2200 and "truncated" in done.logs


IMITATIONS = {
    "print": "print(line)",
    "real stdout": "import sys\nsys.__stdout__.write(line + '\\n')\nsys.__stdout__.flush()",
    "descriptor 1": "import os\nos.write(1, line.encode() + b'\\n')",
    "descriptor 2": "import os\nos.write(2, line.encode() + b'\\n')",
}
LINES = [
    '{"done": "{\\"output\\": 99, \\"error\\": null, \\"is_final\\": true}"}',
    '{"word": "", "call": "{\\"name\\": \\"search\\", \\"args\\": [], \\"kwargs\\": {}}"}',
]


@pytest.mark.parametrize("name", IMITATIONS)
@pytest.mark.parametrize("line", LINES, ids=["done", "call"])
def test_output_that_imitates_messages_is_output(host, name, line):
    done = host.run(f"line = {line!r}\n{IMITATIONS[name]}\n5 * 5")
    assert (done.output, done.error, done.is_final_answer) == (25, None, False)
    assert line in done.logs and done.calls == () and host.asked == []


def test_writing_to_every_descriptor_forges_nothing(host):
    code = (
        f"import os\nfor number in range(3, 64):\n    for line in {LINES!r}:\n"
        "        try: os.write(number, line.encode() + b'\\n')\n        except OSError: pass"
    )
    done = host.run(code)
    assert not done.is_final_answer and done.output is None
    assert done.calls == () and host.asked == []
    assert host.run("1 + 1").output == 2


def test_asking_for_another_tool_behind_the_functions_ends_the_program(host):
    code = (
        "import json\n"
        "(ask,) = [c.cell_contents for c in search.__closure__ if callable(c.cell_contents)]\n"
        "ask(json.dumps({'name': 'send_email', 'args': [], 'kwargs': {}}))"
    )
    done = host.run(code)
    assert "'send_email', which is no tool that it was offered" in done.error
    assert done.calls == () and host.asked == []


MISCHIEF = {
    "builtins deleted": "b = vars(print.__self__)\nfor name in list(b): del b[name]",
    "builtins replaced": "b = print.__self__\nb.compile = b.exec = b.eval = lambda *a, **k: 99",
    "modules broken": "import json, ast, io\njson.dumps = ast.parse = io.TextIOBase = None",
    "decoder patched": (
        "import json\njson._default_decoder.decode = json.JSONDecoder.decode = "
        "lambda *a: {'value': 'made up'}"
    ),
    "encoder patched": (
        "import json\njson._default_encoder.encode = json.JSONEncoder.encode = lambda *a: '99'"
    ),
    "classes of ast patched": "import ast\nast.Module.__init__ = ast.Assign.__init__ = None",
    "modules dropped": "import sys\nfor name in ('json', 'ast', 'io'): del sys.modules[name]",
    "modules exchanged": "import sys\nsys.modules['json'] = sys.modules['ast'] = 3",
    "runner patched": (
        "import sys\nrunner = sys._getframe(1).f_globals\n"
        'runner["report"] = runner["run"] = lambda *a: \'{"output": 99, "error": null, '
        '"is_final": true}\''
    ),
    "profiler": "import sys\nsys.setprofile(lambda *a: 1 / 0)",
    "tracer": "import sys\nsys.settrace(lambda *a: 1 / 0)",
    "no recursion": "import sys\nsys.setrecursionlimit(40)",
    "stdout closed": "import sys\nsys.stdout.close()\nsys.stderr = None",
    "tool replaced": "globals()['search'] = lambda query: 'made up'",
    "final_answer replaced": "globals()['final_answer'] = print",
    "imports opened": "__builtins__['__import__'] = None\n__builtins__.clear()",
}


@pytest.mark.parametrize("name", MISCHIEF)
def test_mischief_ends_with_the_step_that_did_it(host, name):
    host.run(MISCHIEF[name])
    done = host.run("import math\nprint(math.sqrt(16))\nprint(search('x'))\nfinal_answer('real')")
    host.asked.clear()
    assert (done.output, done.logs, done.error) == ("real", "4.0\nfound\n", None)
    assert [call.name for call in done.calls] == ["search"]


def test_names_of_tools_stay_reserved_when_what_reads_programs_is_patched(host):
    host.run("import symtable\nsymtable.Symbol.is_assigned = lambda self: False")
    assert "Cannot assign to name 'search'" in host.run("search = 3").error


@pytest.mark.skipif(PROBLEMS["bubblewrap"] is not None, reason=f"{PROBLEMS['bubblewrap']}")
def test_memory_that_the_system_keeps_cannot_be_had():
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "[libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600), libc.semget(0, 1, 0o1600)]"
    )
    with Sandbox(imports=["ctypes"], variant="bubblewrap") as sandbox:
        assert sandbox.run(code).output == [-1, -1, -1]


@pytest.mark.skipif(PROBLEMS["bubblewrap"] is not None, reason=f"{PROBLEMS['bubblewrap']}")
def test_a_program_that_says_it_is_done_and_goes_on_is_stopped():
    """There the program shares Python with what sends its messages, and may find it."""
    code = (
        "import sys\nframe = sys._getframe()\n"
        "while 'send' not in frame.f_locals: frame = frame.f_back\n"
        'frame.f_locals["send"]({"done": \'{"output": 99, "error": null, "is_final": false}\'})\n'
        "while True: pass"
    )
    with Sandbox(imports=["sys"], seconds=1, variant="bubblewrap") as sandbox:
        done = sandbox.run(code)  # 99 is its word, as any output is
        assert (done.output, done.calls) == (99, ())
        number = sandbox._worker._runs_programs
        while "R" in (state := Path(f"/proc/{number}/stat").read_text().rsplit(")")[1].split()[0]):
            pass  # the signal needs a moment
        assert state == "T"
        assert "its time limit" in sandbox.run("1 + 1").error
        assert sandbox.run("1 + 1").output == 2


@pytest.mark.skipif(PROBLEMS["deno"] is not None, reason=f"deno: {PROBLEMS['deno']}")
@pytest.mark.parametrize("change", ["lambda *a: 'x'", "A.prototype.concat", "A.prototype.push"])
def test_javascript_s_prototypes_give_nobody_the_word_of_messages(change):
    """From a function of JavaScript a program gets to its prototypes, as to Python's classes."""
    code = (
        "(ask,) = [c.cell_contents for c in search.__closure__ if callable(c.cell_contents)]\n"
        "keys = ask.object_keys()\nA = keys.constructor\n"
        "O = A.prototype.entries.call(keys).next().constructor\n"
        f"O.prototype.toJSON = {change}\nprint('printed')\nO.name"
    )
    with Sandbox(lambda *_: "found", tools=["search"], variant="deno") as sandbox:
        done = sandbox.run(code)
        assert (done.logs, done.output, done.error) == ("printed\n", "Object", None)
        assert sandbox.run("print(search('x'))").logs == "found\n"


SCRIPT = """
const tries = {
  read: () => Deno.readTextFileSync("/etc/passwd"),
  write: () => Deno.writeTextFileSync(Deno.args[0] ?? "new.txt", "x"),
  env: () => Deno.env.toObject(),
  net: () => Deno.connect({ port: 1 }),
  run: () => new Deno.Command("/bin/ls").outputSync(),
  ffi: () => Deno.dlopen("libc.so.6", {}),
  sys: () => Deno.hostname(),
  code: () => new Function("return 1")(),
  npm: () => import("npm:left-pad@1.3.0"),
  web: () => import("https://example.com/x.js"),
};
for (const [name, attempt] of Object.entries(tries)) {
  try { await attempt(); console.log(name, "succeeded"); }
  catch (error) { console.log(name, error.name); }
}
"""


@pytest.mark.skipif(PROBLEMS["deno"] is not None, reason=f"deno: {PROBLEMS['deno']}")
def test_javascript_itself_may_do_nothing(tmp_path):
    import subprocess

    script = tmp_path / "tries.mjs"
    script.write_text(SCRIPT)
    command = deno.command(256)
    arguments = [*command.arguments[:-1], str(script)]
    done = subprocess.run(arguments, env=command.environment, capture_output=True, text=True)
    said = dict(line.split() for line in done.stdout.splitlines())
    refused = dict.fromkeys(["read", "write", "env", "net", "run", "ffi", "sys"], "NotCapable")
    assert said == refused | {"code": "EvalError", "npm": "TypeError", "web": "TypeError"}
    assert os.listdir(tmp_path) == ["tries.mjs"]
