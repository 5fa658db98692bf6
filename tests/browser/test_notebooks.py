"""Every notebook in a real JupyterLab: Run All Cells, no error in a cell or on the page."""

from __future__ import annotations

import pytest
from driver import insert_first, open_notebook, run_all

from course_utils.cli.places import ROOT

pytestmark = pytest.mark.browser
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.name[:2] for p in NOTEBOOKS])
def test_run_all_cells_gives_no_error(page, lab, screenshots, path):
    open_notebook(page, lab, f"notebooks/{path.name}")
    cells = run_all(page)
    page.screenshot(path=screenshots / f"{path.stem}.png")
    failed = {n: c["errors"] for n, c in enumerate(cells, 1) if c["errors"]}
    meant = {n for n, c in enumerate(cells, 1) if "raises-exception" in c["tags"]}
    unexpected = [f"cell {n}: {errors}" for n, errors in failed.items() if n not in meant]
    assert not unexpected, "\n".join(unexpected)
    assert set(failed) == meant, "a cell that is meant to fail does not"
    counts = [c["count"] for c in cells]
    assert counts == list(range(1, len(cells) + 1)), "not every cell ran once, in order"
    assert not [c["stderr"] for c in cells if c["stderr"]]
    assert not page.problems


@pytest.mark.parametrize(
    ("source", "field", "found"),
    [
        ("1 / 0", "errors", ["ZeroDivisionError: division by zero"]),
        ("import sys; print('careful', file=sys.stderr)", "stderr", ["careful\n"]),
    ],
)
def test_a_failing_cell_would_be_seen(page, lab, source, field, found):
    """The check above must be able to fail."""
    open_notebook(page, lab, "empty.ipynb")
    insert_first(page, source)
    cells = run_all(page)
    assert cells[0][field] == found
    assert cells[0]["count"] == 1
    if field == "errors":
        assert cells[1]["count"] is None, "the cells after an error do not run"


def test_cells_behind_one_that_is_meant_to_fail_are_waited_for(page, lab):
    open_notebook(page, lab, "empty.ipynb")
    insert_first(page, "import time; time.sleep(2)")
    insert_first(page, "1 / 0", tags=["raises-exception"])
    assert [cell["count"] for cell in run_all(page)] == [1, 2, 3]


def test_an_error_on_the_page_would_be_seen(page, lab):
    open_notebook(page, lab, "empty.ipynb")
    insert_first(
        page,
        "from IPython.display import HTML\n"
        "HTML('<img src=missing.png><script>console.error(\"broken\")</script>')",
    )
    run_all(page)
    page.wait_for_timeout(500)
    assert "console: broken" in page.problems
    assert [p for p in page.problems if "missing.png" in p]
