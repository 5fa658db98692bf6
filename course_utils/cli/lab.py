"""`lab`: open JupyterLab on the course map."""

import subprocess
import sys
from argparse import Namespace

from course_utils.cli import places
from course_utils.cli.execution import kernel_environment
from course_utils.models.source import chosen_mode


def lab_verb(arguments: Namespace) -> int:
    """Start JupyterLab in the repository; it ends with Ctrl-C, as usual.

    Further arguments are JupyterLab's own.
    """
    first = places.choose([])[0]
    variables = kernel_environment({"COURSE_MODEL": chosen_mode(None)})
    # Learners look at their own hash seeds and warnings; only tests need them fixed.
    variables.pop("PYTHONHASHSEED")
    # Else JupyterLab strips the colours from stored outputs until a cell is run again.
    notebooks = [p for n in places.all_notebooks() for p in (n, *places.solutions_of(n))]
    trust = [sys.executable, "-m", "jupyter", "trust", *map(str, notebooks)]
    subprocess.run(trust, cwd=places.ROOT, env=variables, stdout=subprocess.DEVNULL)
    # Without a root of its own, JupyterLab would show the folder of the notebook alone.
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={places.ROOT}"]
    command += [str(first), *arguments.rest]
    try:
        return subprocess.run(command, cwd=places.ROOT, env=variables).returncode
    except KeyboardInterrupt:
        return 0
