"""`sandbox`: install what code agents run in, and try it."""

import subprocess
import sys
from argparse import Namespace

from course_utils.cli import pins, places
from course_utils.errors import CourseError
from course_utils.sandbox import Execution, Sandbox, deno
from course_utils.sandbox.fetch import fetch

CHECK = """\
import math
total = sum(math.isqrt(number) for number in numbers)
double(total)"""


def sandbox_verb(arguments: Namespace) -> int:
    """Install what is missing of the sandbox, then run three lines in it."""
    if deno.program() is None:
        install_deno()
    fetched = fetch()
    print("Pyodide fetched." if fetched else "Pyodide is installed already.")
    try:
        done = try_it()
    except CourseError:
        if fetched:
            raise
        print("It does not start, so it is fetched again.")
        fetch(again=True)
        done = try_it()
    if done.output != 12 or [call.result for call in done.calls] != [12]:
        raise CourseError(f"The sandbox runs, but wrongly: {done!r}")
    print("The sandbox works: a program ran in it and called a function out here.")
    return 0


def try_it() -> Execution:
    with Sandbox(tools=[double], imports=["math"], variant="deno") as sandbox:
        return sandbox.run(CHECK, {"numbers": [1, 4, 9]})


def double(number: int) -> int:
    return 2 * number


def install_deno() -> None:
    """Install the pinned deno into this Python."""
    version = pins.read_pins((places.ROOT / "requirements.lock").read_text())["deno"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", f"deno=={version}"]
    if subprocess.run(command).returncode != 0:
        raise CourseError(f"pip could not install deno {version}; its last lines say why.")
