"""The variant `bubblewrap`: this system's Python in namespaces of its own (Linux).

No network, no other processes, no environment; of the file system only Python and the system's
libraries, read-only, and an empty /tmp of 16 MB. inside/bubble.py adds the limits.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.sandbox.variants import INSIDE, Command, SandboxUnavailable

PROCESSORS = ("x86_64", "aarch64")  # whose system calls inside/bubble.py knows
TMP_BYTES = 16 * 1024 * 1024


@cache
def problem() -> str | None:
    """Why this variant cannot run here, in a few words; None if it can."""
    if sys.platform != "linux":
        return "Linux only"
    if platform.machine() not in PROCESSORS:
        return f"not for {platform.machine()} processors"
    if shutil.which("bwrap") is None:
        return "the program bwrap is not installed"
    # Containers often forbid what it needs; only a trial tells.
    trial = [*namespaces(), python(), "-I", "-S", "-c", "import ctypes, resource"]
    done = subprocess.run(trial, env={}, capture_output=True, text=True, errors="replace")
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it fails"])[-1]


def command(memory_mb: int) -> Command:
    """Python inside bwrap, which tells the process's number through a pipe."""
    if (why := problem()) is not None:
        raise SandboxUnavailable(f"The sandbox bubblewrap cannot run here: {why}.")
    reader, writer = os.pipe()
    arguments = [*namespaces(), "--info-fd", str(writer)]
    arguments += ["--ro-bind", str(INSIDE), "/inside", "--remount-ro", "/"]
    arguments += [python(), "-I", "-S", "-B", "/inside/bubble.py"]
    return Command(arguments, {}, pid_pipe=(reader, writer))


def setup(memory_mb: int) -> dict[str, Any]:
    """What the worker needs to know first."""
    return {"memory_mb": memory_mb}


def python() -> str:
    """The real path of this Python: the one that a virtual environment was made from."""
    return os.path.realpath(sys._base_executable)


def namespaces() -> list[str]:
    """bwrap with everything unshared and as few files as Python needs."""
    arguments = [
        shutil.which("bwrap"),
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--as-pid-1",
    ]
    arguments += ["--die-with-parent", "--new-session", "--clearenv"]
    arguments += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
    for folder in libraries():
        path = Path(folder)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), folder]
        elif path.is_dir():
            arguments += ["--ro-bind", folder, folder]
    arguments += ["--ro-bind", python(), python()]
    return [*arguments, "--size", str(TMP_BYTES), "--tmpfs", "/tmp", "--chdir", "/tmp"]


def libraries() -> list[str]:
    """The folders that hold Python's own modules and what it links to."""
    folders = ["/usr/lib", "/usr/lib64", "/lib", "/lib64"]
    own = [sysconfig.get_path("stdlib"), sysconfig.get_config_var("LIBDIR")]
    return folders + [folder for folder in own if folder and folder not in folders]
