"""The HTML copies of the course's own notebooks: what is folded there is folded here."""

import nbformat
import pytest

from course_utils.cli import places
from course_utils.cli.execution import Execution, code_cells
from course_utils.cli.html import write_page

NEUTRAL = "Guess first, then open this output."


@pytest.mark.parametrize("path", places.choose([]), ids=lambda path: path.stem)
def test_every_folded_output_is_folded_in_the_html_copy(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    folded = [
        c for c in code_cells(notebook) if c.metadata.get("jupyter", {}).get("outputs_hidden")
    ]
    page = write_page(Execution(path, notebook), tmp_path).read_text(encoding="utf-8")
    before, *inside = page.split('<details class="course-folded">')
    assert len(inside) == len(folded) > 0
    # curtain() begins each of these outputs, and none other: it must not stand in the open.
    assert all(NEUTRAL in part.split("</details>")[0] for part in inside)
    shown = [before, *(part.split("</details>", 1)[1] for part in inside)]
    assert not any(NEUTRAL in part for part in shown)
