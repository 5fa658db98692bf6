"""Every stub counts as not attempted, and every published solution passes its check.

A solution cell carries the tag `solution:NN.k` in the solutions notebook; a stub cell carries the
tag `exercise` in the notebook itself and is followed by the cell that checks it. Both notebooks
are read, never changed: a copy runs each stub with its check, then the solution with the same
check, in one kernel with recorded replies.
"""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from course_utils.cli import places
from course_utils.cli.execute import RECORDED
from course_utils.cli.execution import execute_notebook

CHECK = re.compile(r'^check\("(?P<id>\d\d\.\d+)"', re.MULTILINE)
NOTEBOOKS = [path for path in places.all_notebooks() if places.solutions_of(path)]


def solutions(notebook):
    """Exercise id -> solution source, in the order of the solutions notebook."""
    found = {}
    for cell in notebook.cells:
        for tag in cell.metadata.get("tags", []):
            if tag.startswith("solution:"):
                found[tag.removeprefix("solution:")] = cell.source
    return found


def with_solutions(notebook, solved):
    """A copy of the notebook in which each check runs twice; and the ids in that order."""
    cells, ids, waiting = [], [], 0
    for cell in notebook.cells:
        cells.append(cell)
        if "exercise" in cell.metadata.get("tags", []):
            waiting += 1
        elif cell.cell_type == "code" and (match := CHECK.search(cell.source)):
            name = match["id"]
            assert waiting == 1, f"the check of {name} needs one stub cell before it"
            assert name in solved, f"{name} has no cell tagged solution:{name}"
            cell.metadata["tags"] = [f"stub:{name}"]
            again = new_code_cell(cell.source, metadata={"tags": [f"solved:{name}"]})
            cells += [new_code_cell(solved[name]), again]
            ids.append(name)
            waiting = 0
    assert waiting == 0, "a stub cell has no check after it"
    copy = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
    return copy, ids


def said(notebook, tag):
    """The text that the cell with this tag showed."""
    cell = next(c for c in notebook.cells if tag in c.metadata.get("tags", []))
    return "".join(o.data.get("text/plain", "") for o in cell.outputs if "data" in o)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stubs_are_open_and_solutions_pass(path, tmp_path):
    solved = solutions(nbformat.read(places.solutions_of(path)[0], as_version=4))
    copy, ids = with_solutions(nbformat.read(path, as_version=4), solved)
    assert sorted(ids) == sorted(solved), "each solution answers one exercise of the notebook"
    # Beside the original the relative paths in it would work too; a folder of its own keeps the
    # tree clean, and the course's notebooks read nothing by relative path.
    target = tmp_path / path.name
    nbformat.write(copy, target)
    run = execute_notebook(target, RECORDED)
    assert run.ok, run.failure
    for name in ids:
        assert said(run.notebook, f"stub:{name}").startswith(f"○ Not attempted ({name})")
        assert said(run.notebook, f"solved:{name}").startswith(f"✓ Right ({name})")


def test_every_notebook_has_solutions_if_it_has_exercises():
    for path in places.all_notebooks():
        cells = nbformat.read(path, as_version=4).cells
        if any("exercise" in cell.metadata.get("tags", []) for cell in cells):
            assert places.solutions_of(path), f"{path.stem} has exercises and no solutions"


@pytest.mark.parametrize("cells", [[("check", "01.1")], [("stub",)], [("stub",), ("stub",)]])
def test_a_stub_without_check_and_a_check_without_stub_are_found(make_notebook, cells):
    made = [
        new_code_cell("x = ...", metadata={"tags": ["exercise"]})
        if cell == ("stub",)
        else new_code_cell(f'check("{cell[1]}", x)')
        for cell in cells
    ]
    with pytest.raises(AssertionError, match="stub cell"):
        with_solutions(make_notebook(*made), {"01.1": "x = 1"})


def test_a_check_without_solution_is_found(make_notebook):
    stub = new_code_cell("x = ...", metadata={"tags": ["exercise"]})
    with pytest.raises(AssertionError, match="solution:01.1"):
        with_solutions(make_notebook(stub, new_code_cell('check("01.1", x)')), {})
