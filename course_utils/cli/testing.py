"""`test`: lint, unit tests, and every notebook and solution against its stored outputs."""

import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

from course_utils.cli import places
from course_utils.cli.execution import kernel_environment

CELL_TIMEOUT = 300  # seconds; recorded replies come at once, a loaded machine is slow
NO_NETWORK = places.ROOT / "tests" / "no_network"


def test_verb(arguments: Namespace) -> int:
    """Run all parts even if one fails; return 0 only if every part passed."""
    # Without notebooks the package can still be tested; a wrong number is always an error.
    found = places.all_notebooks() or arguments.notebooks
    notebooks = places.choose(arguments.notebooks) if found else []
    variables = test_environment()
    outcomes = []
    for name, command in parts(notebooks):
        print(f"\n== {name} ==", flush=True)
        started = time.monotonic()
        code = subprocess.run(command, cwd=places.ROOT, env=variables).returncode
        outcomes.append((name, code == 0, time.monotonic() - started))
    print("\n== summary ==")
    for name, passed, seconds in outcomes:
        print(f"{'passed' if passed else 'FAILED'}  {name} ({seconds:.0f} s)")
    good = all(passed for _, passed, _ in outcomes)
    print("All parts passed." if good else "Some parts FAILED; see above.")
    return 0 if good else 1


def parts(notebooks: list[Path]) -> list[tuple[str, list[str]]]:
    """Each part of the test: what it is called, and its command."""
    solutions = [s for notebook in notebooks for s in places.solutions_of(notebook)]
    python = [sys.executable, "-m"]
    nbval = [*python, "pytest", "-p", "no:cacheprovider", "-q", "--nbval", "--nbval-current-env"]
    nbval += [f"--nbval-cell-timeout={CELL_TIMEOUT}"]
    every = [
        ("format", [*python, "ruff", "format", "--check", "."]),
        ("lint", [*python, "ruff", "check", "."]),
        ("unit tests", [*python, "pytest", "-q", "tests"]),
    ]
    if notebooks:
        every.append(("notebooks", [*nbval, *map(str, notebooks)]))
    if solutions:
        every.append(("solutions", [*nbval, *map(str, solutions)]))
    return every


def test_environment() -> dict[str, str]:
    """Variables for the tests: recorded replies, one thread, a fixed hash seed, no network."""
    variables = kernel_environment(
        {
            "COURSE_MODEL": "recorded",
            "COURSE_THREADS": "1",
            "COURSE_ENV": "current",
            "HF_HUB_OFFLINE": "1",
        }
    )
    for name in ("COURSE_RECORD_TO", "COURSE_RECORD_REUSE", "COURSE_REPLY_LOG"):
        variables.pop(name, None)
    variables["PYTHONPATH"] = os.pathsep.join([str(NO_NETWORK), variables["PYTHONPATH"]])
    return variables
