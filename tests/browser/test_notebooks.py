"""Every notebook in a real JupyterLab: Run All Cells, no error in a cell or on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
# Messages of JupyterLab itself, which come with an empty notebook too.
LAB_NOISE = ("favicon", "WebSocket", "ResizeObserver", "status of 404", "status of 403")
READ_CELLS = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content.model.toJSON();
  return notebook.cells.filter(cell => cell.cell_type === 'code').map(cell => ({
    count: cell.execution_count,
    tags: cell.metadata.tags || [],
    errors: cell.outputs.filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue),
    stderr: cell.outputs.filter(o => o.name === 'stderr').length,
  }));
}"""


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1600})
    page.set_default_timeout(120_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on(
        "console",
        lambda message: page.problems.append(message.text) if message.type == "error" else None,
    )
    yield page
    page.close()


def open_notebook(page, lab, path: str) -> None:
    """Open a notebook and wait until its kernel is idle."""
    address, token = lab
    page.goto(f"{address}/lab/tree/{path}?token={token}&reset")
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', state="attached")


def run_all(page) -> list[dict]:
    """Run > Run All Cells, as from the menu; the state of every code cell afterwards."""
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', state="attached")
    return page.evaluate(READ_CELLS)


def expected_counts(path) -> list[int | None]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [c["execution_count"] for c in cells if c["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[p.name[:2] for p in NOTEBOOKS])
def test_run_all_cells_gives_no_error(page, lab, path):
    open_notebook(page, lab, f"notebooks/{path.name}")
    cells = run_all(page)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{path.stem}.png")
    unexpected = [c for c in cells if c["errors"] and "raises-exception" not in c["tags"]]
    assert not unexpected
    assert [c["count"] for c in cells] == expected_counts(path), "not every cell ran, in order"
    assert not [c for c in cells if c["stderr"]]
    assert not [p for p in page.problems if not any(noise in p for noise in LAB_NOISE)]


def test_a_failing_cell_would_be_seen(page, lab):
    """The check above must be able to fail."""
    open_notebook(page, lab, f"notebooks/{NOTEBOOKS[0].name}")
    page.evaluate(
        """() => {
          const notebook = window.jupyterapp.shell.currentWidget.content.model;
          notebook.sharedModel.insertCell(0, {cell_type: 'code', source: '1 / 0'});
        }"""
    )
    cells = run_all(page)
    assert cells[0]["errors"] == ["ZeroDivisionError: division by zero"]
