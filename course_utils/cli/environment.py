"""Make sure that the packages are there, and continue in the Python that has them.

Standard library only: this runs on a bare clone, before anything is installed.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from course_utils.cli import install, pins
from course_utils.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"


def ensure(argv: list[str]) -> None:
    """Return if this Python has every pinned package; else set up .venv and restart there.

    `argv` is the command line to repeat after the restart, which does not return.
    """
    wish = os.environ.get("COURSE_ENV", "")
    if wish == "current":
        return
    if wish:
        raise CourseError(f"COURSE_ENV is {wish!r}; the one value it can have is 'current'.")
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    if inside and is_ready():
        return
    if inside:  # an environment cannot replace itself: go on from the Python it was made with
        restart(Path(sys._base_executable), argv)
    if is_isolated() and not pins.missing_pins(LOCK):
        return
    if not is_ready():
        with install.only_one(ROOT / ".venv.lock"):
            if not is_ready():  # another process may have finished it while we waited
                install.build(VENV, LOCK, stamp())
    restart(install.python_of(VENV), argv)


def is_isolated() -> bool:
    """Whether a virtual or conda environment is active, and this is its Python."""
    conda = os.environ.get("CONDA_PREFIX")
    in_conda = conda is not None and Path(conda).resolve() == Path(sys.prefix).resolve()
    return sys.prefix != sys.base_prefix or in_conda


def is_ready() -> bool:
    """Whether .venv is complete and was made for this lock, this Python and this folder."""
    try:
        made_for = (VENV / install.STAMP).read_text(encoding="utf-8")
    except OSError:
        return False
    return made_for == stamp() and install.python_of(VENV).exists()


def stamp() -> str:
    """A hash over everything that would make another .venv necessary."""
    version = "{}.{}".format(*sys.version_info[:2])
    parts = [LOCK.read_bytes(), version.encode(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def restart(python: Path, argv: list[str]) -> None:
    """Continue with the same arguments under another interpreter."""
    command = [str(python), "-m", "course_utils", *argv]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    sys.stdout.flush()
    if os.name == "nt":  # exec on Windows would return to the shell before the work is done
        sys.exit(subprocess.run(command, env=variables).returncode)
    os.execve(python, command, variables)
