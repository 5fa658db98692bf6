"""`fetch`, `live` and `verify`: the verbs that need the weights of a model."""

import re
from argparse import Namespace
from pathlib import Path

from course_utils.cli import places
from course_utils.cli.execution import code_cells
from course_utils.cli.run import run

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
LOAD = re.compile(r"\bload\(\s*(?:name\s*=\s*)?(?:[\"']([^\"']+)[\"'])?")


def fetch_verb(arguments: Namespace) -> int:
    """Download the named models, or the course's main one."""
    fetch_all(arguments.models or [DEFAULT_MODEL])
    return 0


def live_verb(arguments: Namespace) -> int:
    """Fetch what the chosen notebooks load, then run them on live replies."""
    notebooks = places.choose(arguments.notebooks)
    fetch_all(sorted({name for path in notebooks for name in models_in(path)}))
    return run(notebooks, {"COURSE_MODEL": "live"})


def verify_verb(arguments: Namespace) -> int:
    """Prove the recordings against the weights."""
    from course_utils.models.verify import verify_main

    return verify_main(arguments.rest)


def fetch_all(names: list[str]) -> None:
    """Fetch models one after the other; one that is there already takes no time."""
    from course_utils.models.fetch import fetch

    for name in names:
        print(f"{name}: {fetch(name)}")


def models_in(notebook: Path) -> set[str]:
    """The names of the models that a notebook's cells load.

    >>> sorted(models_in(places.choose(["01"])[0]))  # doctest: +SKIP
    ['qwen2.5-coder-1.5b']
    """
    import nbformat

    cells = code_cells(nbformat.read(notebook, as_version=4))
    names = {name or DEFAULT_MODEL for cell in cells for name in LOAD.findall(cell.source)}
    return {name for name in names if "." in name or "-" in name}
