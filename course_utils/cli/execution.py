"""Execute one notebook in a fresh kernel of this very environment, with a progress bar."""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.cli.places import ROOT, short
from course_utils.errors import CourseError

CELL_TIMEOUT = 1200  # seconds; a live reply of a small model on a busy laptop takes minutes


@dataclass
class Execution:
    """What came of executing one notebook."""

    path: Path
    notebook: object  # nbformat's NotebookNode, outputs included
    cells: int = 0  # code cells executed
    seconds: float = 0.0
    replies: Counter = field(default_factory=Counter)  # origin -> how many
    failure: str | None = None  # one line: cell number and error

    @property
    def ok(self) -> bool:
        return self.failure is None


def execute_notebook(path: Path, variables: dict[str, str]) -> Execution:
    """Execute the notebook at `path` in memory; the file itself is not touched.

    `variables` are added to the kernel's environment. A cell tagged `raises-exception` must
    raise; any other must not. A failure is told in the result, not raised. Raises CourseError
    for a file that is no notebook.
    """
    notebook = read_notebook(path)
    result = Execution(path, notebook)
    with tempfile.TemporaryDirectory(prefix="course-run-") as scratch:
        log = Path(scratch) / "replies.jsonl"
        kernel_variables = kernel_environment(variables | {"COURSE_REPLY_LOG": str(log)})
        started = time.monotonic()
        _run_cells(result, kernel_variables)
        result.seconds = time.monotonic() - started
        result.replies = count_replies(log)
    if result.ok:
        result.failure = missing_error(notebook)
    return result


def read_notebook(path: Path):
    """The notebook at `path`, as nbformat's NotebookNode; CourseError if the file is damaged."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        code_cells(notebook)
    # For JSON that is no notebook nbformat's reader fails in one of these ways.
    except (nbformat.ValidationError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise CourseError(
            f"{short(path)} is not a readable notebook ({_one_line(str(error), 120)}). Restore it "
            f"with `git checkout -- {short(path)}`."
        ) from error
    return notebook


def kernel_environment(variables: dict[str, str]) -> dict[str, str]:
    """The environment variables of a kernel: ours, plus what keeps outputs the same each run."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    fixed = {
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    return os.environ | fixed | variables


def count_replies(log: Path) -> Counter:
    """How many replies of each origin the notebook's models wrote to the reply log."""
    if not log.exists():
        return Counter()
    lines = log.read_text(encoding="utf-8").splitlines()
    return Counter(json.loads(line)["origin"] for line in lines if line.strip())


def missing_error(notebook) -> str | None:
    """The first cell tagged `raises-exception` that raised nothing, as a failure line."""
    for number, cell in enumerate(code_cells(notebook), start=1):
        raised = any(output.output_type == "error" for output in cell.outputs)
        if "raises-exception" in cell.metadata.get("tags", []) and not raised:
            return f"cell [{number}]: tagged raises-exception, but it raised nothing"
    return None


def code_cells(notebook) -> list:
    """The code cells that hold something; their order is their number in the notebook."""
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def _run_cells(result: Execution, variables: dict[str, str]) -> None:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from tqdm import tqdm

    cells = code_cells(result.notebook)
    bar = tqdm(
        total=len(cells),
        desc=result.path.stem,
        unit="cell",
        leave=False,
        mininterval=0.1 if sys.stderr.isatty() else 15,
        bar_format="{desc} |{bar:24}| {n_fmt}/{total_fmt} cells, {elapsed}",
    )

    def executed(cell, cell_index, execute_reply):
        result.cells += 1
        bar.update()

    client = NotebookClient(
        result.notebook,
        kernel_manager_class=_kernel_manager_class(),
        kernel_name="python3",
        timeout=CELL_TIMEOUT,
        coalesce_streams=True,
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(result.path.parent)}},
        on_cell_executed=executed,
    )
    try:
        client.execute(env=variables)
    except CellExecutionError as error:
        result.failure = f"cell [{result.cells}]: {_one_line(f'{error.ename}: {error.evalue}')}"
    except CellTimeoutError:
        result.failure = f"cell [{result.cells + 1}]: not finished after {CELL_TIMEOUT} s"
    except DeadKernelError:
        result.failure = f"cell [{result.cells + 1}]: the kernel died"
    finally:
        bar.close()


def _kernel_manager_class() -> type:
    """Kernel managers that start this interpreter, whatever kernels the user has installed."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name):
            launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            # Its warnings about loopback sockets would land in the middle of the progress bar.
            launch.append("--IPKernelApp.log_level=40")
            return KernelSpec(argv=launch, display_name="Python 3", language="python")

    class ThisPythonsKernels(AsyncKernelManager):
        def __init__(self, **settings):
            super().__init__(kernel_spec_manager=ThisPython(), **settings)

    return ThisPythonsKernels


def _one_line(text: str, width: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
