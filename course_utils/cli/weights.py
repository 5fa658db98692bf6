"""`fetch`, `live` and `verify`: the verbs that need the weights of a model."""

import re
from argparse import Namespace
from pathlib import Path

from course_utils.cli import places
from course_utils.cli.execution import code_cells, read_notebook
from course_utils.cli.run import run

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
LOAD = re.compile(r"\bload\(\s*(?:name\s*=\s*)?(?:[\"']([^\"']+)[\"'])?")


def fetch_verb(arguments: Namespace) -> int:
    """Download a model, by default the course's main one."""
    from course_utils.models.fetch import fetch_main

    return fetch_main(arguments.rest)


def live_verb(arguments: Namespace) -> int:
    """Fetch what the chosen notebooks load, then run them on live replies."""
    from course_utils.models.fetch import fetch

    notebooks = places.choose(arguments.notebooks)
    for name in sorted({name for path in notebooks for name in models_in(path)}):
        fetch(name)  # at once, if the file is here already
    return run(notebooks, {"COURSE_MODEL": "live"})


def verify_verb(arguments: Namespace) -> int:
    """Prove the recordings against the weights."""
    from course_utils.models.verify import verify_main

    return verify_main(arguments.rest)


def models_in(notebook: Path) -> set[str]:
    """The names of the models that a notebook's cells load.

    >>> sorted(models_in(places.choose(["01"])[0]))  # doctest: +SKIP
    ['qwen2.5-coder-1.5b']
    """
    cells = code_cells(read_notebook(notebook))
    names = {name or DEFAULT_MODEL for cell in cells for name in LOAD.findall(cell.source)}
    return {name for name in names if "." in name or "-" in name}
