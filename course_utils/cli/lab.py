"""`lab`: open JupyterLab on the course map."""

import os
import subprocess
import sys
from argparse import Namespace

from course_utils.cli import places
from course_utils.cli.execution import kernel_environment


def lab_verb(arguments: Namespace) -> int:
    """Start JupyterLab in the repository; it ends with Ctrl-C, as usual."""
    first = places.choose([])[0]
    variables = kernel_environment({"COURSE_MODEL": os.environ.get("COURSE_MODEL", "auto")})
    # Learners look at their own hash seeds and warnings; only tests need them fixed.
    variables.pop("PYTHONHASHSEED")
    command = [sys.executable, "-m", "jupyterlab", places.short(first)]
    try:
        return subprocess.run(command, cwd=places.ROOT, env=variables).returncode
    except KeyboardInterrupt:
        return 0
