"""`run`: execute copies of the notebooks, show what happened, leave HTML copies to read."""

from argparse import Namespace
from pathlib import Path

from course_utils.cli import html, places, report
from course_utils.cli.execution import execute_notebook
from course_utils.models.source import chosen_mode


def run_verb(arguments: Namespace) -> int:
    """Run the chosen notebooks in the mode that COURSE_MODEL names (default auto)."""
    mode = chosen_mode(None)
    return run(places.choose(arguments.notebooks), {"COURSE_MODEL": mode})


def run(notebooks: list[Path], variables: dict[str, str]) -> int:
    """Execute copies of the notebooks in order; return 0 if every cell went well, else 1."""
    results = []
    for path in notebooks:
        result = execute_notebook(path, variables)
        html.write_page(result, places.HTML)
        results.append(result)
    index = html.write_index(places.HTML)
    print(report.table(results))
    print("\n".join(report.failures(results) or [f"All ran. To read them: {places.short(index)}"]))
    return 0 if all(result.ok for result in results) else 1
