"""`execute`: re-execute notebooks in place from recorded replies, and normalise them."""

from argparse import Namespace
from pathlib import Path

from course_utils.cli import course_map, normalise, places, report
from course_utils.cli.execution import Execution, execute_notebook

RECORDED = {"COURSE_MODEL": "recorded", "COURSE_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def execute_verb(arguments: Namespace) -> int:
    """Re-execute the chosen notebooks and their solutions; with --check only compare."""
    code = execute(places.choose(arguments.notebooks), check=arguments.check)
    if not arguments.check:
        course_map.update_readme()
    return code


def execute(notebooks: list[Path], check: bool = False) -> int:
    """Re-execute each notebook and its solutions; return 0, or 1 if any failed or would change.

    A notebook whose execution fails is left as it was.
    """
    paths = [p for notebook in notebooks for p in (notebook, *places.solutions_of(notebook))]
    results = [execute_notebook(path, RECORDED) for path in paths]
    messages = [_store(result, check) for result in results if result.ok]
    print(report.table(results))
    print("\n".join(messages + report.failures(results)))
    changed_in_check = check and any("would change" in message for message in messages)
    return 1 if changed_in_check or not all(result.ok for result in results) else 0


def _store(result: Execution, check: bool) -> str:
    normalise.normalise(result.notebook)
    text = normalise.to_text(result.notebook)
    name = places.short(result.path)
    if text == result.path.read_text(encoding="utf-8"):
        return f"unchanged {name}"
    if check:
        return f"would change {name}"
    normalise.write_atomically(result.path, text)
    return f"written {name}"
