"""A notebook in JupyterLab, driven as from its menus: open, clear, run all cells, read the cells.

Three things decide whether this can be relied on. A notebook is shown before its kernel is
connected; the indicator says "idle" all the while, and Run All Cells then opens the dialog "Select
Kernel" and waits, so the session is asked, not the indicator. Run All Cells comes back early after
a cell that is meant to fail, so an empty request behind all cells tells the end. And no promise of
the page is awaited from here, because such a wait has no end: the page notes how far it is, and the
note is polled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

POLL = 200  # milliseconds between looks, which leaves the processor to the kernel

READY = """path => {
  const panel = [...(window.jupyterapp?.shell.widgets('main') ?? [])]
    .find(widget => widget.context?.path === path);
  const kernel = panel?.sessionContext?.session?.kernel;
  const ready = panel?.context.isReady && panel.sessionContext.isReady
    && kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
  if (ready) window.course = {panel, ran: null};
  return Boolean(ready);
}"""
CLEAR = """() => {
  window.jupyterapp.shell.activateById(window.course.panel.id);
  return window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs');
}"""
# The kernel answers in order, so an empty request behind the cells is answered after all of them.
START = """() => {
  const note = text => { window.course.ran = text; };
  note(null);
  window.jupyterapp.commands.execute('notebook:run-all-cells')
    .then(() => window.course.panel.sessionContext.session.kernel
      .requestExecute({code: '', silent: true, store_history: false, stop_on_error: false}).done)
    .then(() => note('ran'), error => note(String(error)));
}"""
# A dialog would wait for an answer that nobody gives here.
ENDED = """() => window.course.ran
  || (document.querySelector('.jp-Dialog') && 'dialog: '
    + document.querySelector('.jp-Dialog').innerText)"""
READ_CELLS = """() => window.course.panel.content.model.toJSON().cells
  .filter(cell => cell.cell_type === 'code')
  .map(cell => ({
    count: cell.execution_count,
    outputs: cell.outputs.length,
    tags: cell.metadata.tags || [],
    errors: cell.outputs.filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue),
    stderr: cell.outputs.filter(o => o.name === 'stderr').map(o => [o.text].flat().join('')),
  }))"""
INSERT = """([source, tags]) => { window.course.panel.content.model.sharedModel
  .insertCell(0, {cell_type: 'code', source, metadata: {tags}}); }"""


def open_notebook(page: Any, lab: tuple[str, str], path: str) -> None:
    """Open a notebook (path below the server's folder) and wait until its kernel is idle."""
    address, token = lab
    page.goto(f"{address}/lab/tree/{path}?token={token}&reset")
    page.wait_for_function(READY, arg=path, polling=POLL)


def read_cells(page: Any) -> list[dict[str, Any]]:
    """What JupyterLab's model of the notebook holds of every code cell."""
    return page.evaluate(READ_CELLS)


def insert_first(page: Any, source: str, tags: Sequence[str] = ()) -> None:
    """Put a code cell before all others."""
    page.evaluate(INSERT, [source, list(tags)])


def run_all(page: Any, seconds: float = 300) -> list[dict[str, Any]]:
    """Clear what is stored, Run All Cells, wait for the end; every code cell afterwards."""
    page.evaluate(CLEAR)
    stored = [cell for cell in read_cells(page) if cell["count"] is not None or cell["outputs"]]
    assert not stored, "an output from before the run is still there"
    page.evaluate(START)
    ended = page.wait_for_function(ENDED, polling=POLL, timeout=1000 * seconds).json_value()
    assert ended == "ran", f"Run All Cells did not come to an end: {ended}"
    return read_cells(page)
