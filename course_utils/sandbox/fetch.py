"""Fetch Pyodide once, through the npm registry that the user's npm is set to; then stay offline.

Deno is the client: it reads NPM_CONFIG_REGISTRY, .npmrc and the proxy variables, and refuses what
does not have the checksums of inside/deno.lock. npm and node are not needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.sandbox import deno
from course_utils.sandbox.variants import INSIDE

SECONDS = 600


def fetch(again: bool = False) -> bool:
    """Put Pyodide where `deno.folder()` says; returns False if it was there already.

    `again` replaces what is there, which may be damaged.

    Raises CourseError, in one sentence, if it cannot be fetched or written.
    """
    if deno.problem() is None and not again:
        return False
    if deno.program() is None:
        raise CourseError("The package deno is not installed. Type: pip install deno")
    target = deno.folder()
    if "," in str(target):
        raise CourseError(f"Deno needs a path without commas; {target} has one.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetching-") as folder:
            found = download(Path(folder) / "cache")
            ready = Path(folder) / "ready"
            ready.mkdir()
            for name in deno.FILES:
                shutil.copy(found / name, ready / name)
            make_snapshot(ready)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(ready, target)  # complete or not there, however this ends
    except OSError as error:
        raise CourseError(f"Pyodide cannot be written to {target.parent}: {error}.") from error
    return True


def download(cache: Path) -> Path:
    """Have Deno fetch and check the package into `cache`; returns its folder there."""
    command = [deno.program(), "cache", "--no-config", "--frozen", "--lock=deno.lock"]
    variables = {"DENO_DIR": str(cache), "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"}
    variables["DENO_NO_PACKAGE_JSON"] = "1"  # the user may have one, in a folder above this one
    variables["DENO_TLS_CA_STORE"] = os.environ.get("DENO_TLS_CA_STORE", "mozilla,system")
    try:
        done = subprocess.run(
            [*command, "pyodide.mjs"],
            cwd=INSIDE,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise CourseError(f"Fetching Pyodide took more than {SECONDS} s; try again.") from error
    found = list(cache.rglob("pyodide.asm.wasm"))
    if done.returncode != 0 or not found:
        raise CourseError(
            f"Pyodide {deno.PYODIDE} could not be fetched from npm: {reason_in(done.stderr)}"
        )
    return found[0].parent


def make_snapshot(folder: Path) -> None:
    """Start Python once and keep its memory beside it, from where workers go on."""
    command = [deno.program(), *deno.OFFLINE, f"--allow-read={folder}", f"--allow-write={folder}"]
    command += [str(INSIDE / "snapshot.mjs"), (folder / "pyodide.mjs").as_uri()]
    done = subprocess.run(
        [*command, str(folder / deno.SNAPSHOT)],
        env=deno.environment(),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
    )
    if done.returncode != 0:
        raise CourseError(f"Pyodide was fetched but does not start: {reason_in(done.stderr)}")


def reason_in(text: str) -> str:
    """The innermost cause that Deno gives, or else its error.

    >>> reason_in("error: Failed caching\\n    0: no route\\n    1: timed out\\n")
    'timed out'
    """
    lines = [line.strip() for line in text.split("Stack backtrace")[0].splitlines()]
    causes = [line for line in lines if line[:1].isdigit() or line.startswith("error: ")]
    return causes[-1].partition(": ")[2] if causes else "Deno gave no reason"
