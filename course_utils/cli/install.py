"""Build the folder .venv from requirements.lock. Standard library only.

The stamp file is written last: a set-up that was interrupted has none and is made anew.
"""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from course_utils.cli.pins import read_pins
from course_utils.cli.torch_source import torch_arguments
from course_utils.errors import CourseError

MARK = "made-by-course_utils"  # a file that says the folder is ours to replace
STAMP = "course-stamp"
DOWNLOAD_MB, DISK_MB = 480, 2400  # measured on Linux, rounded up
LAST_LINES = 12


def build(venv: Path, lock: Path, stamp: str) -> None:
    """Make `venv` afresh with every package of `lock`, and stamp it.

    Raises CourseError, in one sentence, if that is impossible here.
    """
    check_possible(venv)
    pins = read_pins(lock.read_text(encoding="utf-8"))
    say(
        f"First-time set-up: installing {len(pins)} packages into {venv.name} "
        f"(about {DOWNLOAD_MB} MB to download, {DISK_MB / 1000:.1f} GB on disk, a few minutes)."
    )
    started = time.monotonic()
    try:
        shutil.rmtree(venv, ignore_errors=True)
        venv.mkdir(exist_ok=True)
        (venv / MARK).touch()
        run_quietly([sys.executable, "-m", "venv", str(venv)], "python -m venv")
        install(venv, lock, pins)
        add_sandbox(venv)
        (venv / STAMP).write_text(stamp, encoding="utf-8")
    except OSError as error:
        raise CourseError(f"Set-up stopped while writing {venv}: {error.strerror}.") from error
    say(f"Set-up done in {time.monotonic() - started:.0f} s.")


def check_possible(venv: Path) -> None:
    """Raise CourseError if .venv cannot be made here: rights, space, Python's own parts."""
    if venv.exists() and not (venv / MARK).exists():
        raise CourseError(
            f"There is a folder {venv} that this course did not make. Move it away, or activate "
            "it and run: pip install -r requirements.lock"
        )
    if not os.access(venv.parent, os.W_OK):
        raise CourseError(
            f"No permission to write in {venv.parent}, where the folder {venv.name} has to go. "
            "Copy the course to a folder of your own."
        )
    free = shutil.disk_usage(venv.parent).free // 1_000_000
    if free < DISK_MB:
        raise CourseError(
            f"Set-up needs {DISK_MB} MB of disk space in {venv.parent}; {free} MB are free."
        )
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise CourseError(
            "This Python lacks its modules venv and ensurepip. On Debian and Ubuntu: "
            "sudo apt install python3-venv"
        )


def install(venv: Path, lock: Path, pins: dict[str, str]) -> None:
    """Install the whole lock, then this package itself, as a link to its sources."""
    pip = install_packages(venv, lock, pins)
    # setuptools is in the lock, so building the link needs no second, unpinned download.
    editable = ["--no-deps", "--no-build-isolation", "-e", str(lock.parent)]
    run_quietly([*pip, *editable], "pip")


def add_sandbox(venv: Path) -> None:
    """Fetch what model-written code runs in. The course works without, code agents aside."""
    code = "from course_utils.sandbox.fetch import fetch; fetch()"
    progress("  fetching the sandbox …")
    try:
        run_quietly([str(python_of(venv)), "-c", code], "fetching")
    except CourseError as error:
        reason = str(error).splitlines()[-1].split("CourseError: ")[-1].strip()
        say(f"Code agents will refuse until you type: python -m course_utils sandbox ({reason})")


def install_packages(venv: Path, requirements: Path, pins: dict[str, str]) -> list[str]:
    """Install torch from where its CPU build is, then the rest; returns the pip command used."""
    pip = [str(python_of(venv)), "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--no-input"]
    if "torch" in pins:
        source = torch_arguments(pins["torch"], dry_run=lambda what: dry_run(pip, what))
        run_quietly([*pip, *source], "pip", total=len(pins))
    run_quietly([*pip, "-r", str(requirements)], "pip", total=len(pins))
    return pip


def dry_run(pip: list[str], requirement: str) -> dict | None:
    """pip's report of what it would install for one requirement; None if it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [*pip, "-q", "--dry-run", "--ignore-installed", "--report", str(report)]
        done = subprocess.run([*command, requirement], capture_output=True)
        if done.returncode != 0 or not report.exists():
            return None
        return json.loads(report.read_text(encoding="utf-8"))


def run_quietly(command: list[str], what: str, total: int = 0) -> None:
    """Run a command without its output, counting pip's packages; on failure show its end."""
    lines: list[str] = []
    count = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout:
            lines.append(line.rstrip())
            if total and re.match(r"(Collecting|Requirement already satisfied)", line):
                count += 1
                progress(f"  looking up packages: {min(count, total)} of {total}")
            elif line.startswith("Installing collected"):
                progress("  unpacking …")
    progress("")
    if process.returncode != 0:
        useful = [line for line in lines if line and not line.startswith("WARNING: Location")]
        tail = "\n  ".join(useful[-LAST_LINES:])
        raise CourseError(f"{what} failed; its last lines were:\n  {tail}")


def python_of(venv: Path) -> Path:
    """The interpreter inside a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def progress(text: str) -> None:
    """Overwrite the current line, where there is a terminal to see it."""
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def only_one(lock_file: Path):
    """Hold a lock that the system releases by itself when the process ends, however it ends."""
    try:
        stream = lock_file.open("a+b")
    except OSError as error:
        raise CourseError(
            f"No permission to write in {lock_file.parent}: {error.strerror}. Copy the course "
            "to a folder of your own."
        ) from error
    with stream:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Another set-up is at work on this folder; waiting for it …")
                fcntl.flock(stream, fcntl.LOCK_EX)
        yield
