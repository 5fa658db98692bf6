"""The variant `deno`: where Pyodide is, and with how little Deno is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from course_utils.sandbox.variants import INSIDE, Command, SandboxUnavailable

OFFLINE = ["run", "--quiet", "--no-config", "--no-lock", "--no-remote", "--no-npm"]
OFFLINE += ["--cached-only", "--no-prompt"]
PYODIDE = "314.0.7"  # the version in inside/pyodide.mjs and inside/deno.lock
FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
SNAPSHOT = "python.snapshot"  # made from these by the set-up
HEAP_MB = 256  # for Deno itself, beside Python's memory
SPARE_MB = 1024  # what V8 and its compiler need on top, measured generously


def folder() -> Path:
    """Where the set-up puts Pyodide: in the environment of this Python, beside its packages."""
    return Path(sys.prefix) / "share" / "tool-calls-to-agents" / f"pyodide-{PYODIDE}"


def program() -> str | None:
    """The path of the deno program that pip installed, or None."""
    try:
        from deno import find_deno_bin

        return os.fspath(find_deno_bin())
    except (ImportError, FileNotFoundError):
        return None


def problem() -> str | None:
    """Why this variant cannot run here, in a few words; None if it can."""
    if program() is None:
        return "the package deno is not installed"
    if "," in str(folder()):  # where Deno sees the end of one path and the start of another
        return f"its folder has a comma in its path: {folder()}"
    if not all((folder() / name).is_file() for name in (*FILES, SNAPSHOT)):
        return "Pyodide is not installed"
    return None


def command(memory_mb: int) -> Command:
    """Deno with no permission but to read Pyodide's folder; nothing of our environment."""
    if (why := problem()) is not None:
        raise SandboxUnavailable(f"{why}. Type: python -m course_utils sandbox")
    flags = ["--disallow-code-generation-from-strings", f"--max-old-space-size={HEAP_MB}"]
    arguments = [program(), *OFFLINE, f"--v8-flags={','.join(flags)}", f"--allow-read={folder()}"]
    data_mb = memory_mb + HEAP_MB + SPARE_MB
    return Command([*arguments, str(INSIDE / "worker.mjs")], environment(), data_mb=data_mb)


def environment() -> dict[str, str]:
    """The few variables that Deno gets; none of them is ours."""
    variables = {"DENO_DIR": str(folder().parent / "deno"), "NO_COLOR": "1"}
    variables["DENO_NO_UPDATE_CHECK"] = "1"
    if os.name == "nt":
        variables["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return variables


def setup(memory_mb: int) -> dict[str, Any]:
    """What the worker needs to know first."""
    return {"pyodide": (folder() / "pyodide.mjs").as_uri(), "pages": memory_mb * 16}
