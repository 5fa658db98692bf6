"""What several test modules share."""

import pytest
from hypothesis import settings

# No deadlines: they are timings, which say more about the machine than about the code. The same
# examples every time, so that a failure on one machine is a failure on all.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")


@pytest.fixture
def make_notebook():
    """A function that makes a notebook from cells: a str is prose, a pair is code and outputs."""
    import nbformat

    from course_utils.cli.normalise import normalise

    v4 = nbformat.v4

    def make(*cells, **metadata):
        made = []
        for cell in cells:
            if isinstance(cell, str):
                made.append(v4.new_markdown_cell(cell))
            elif isinstance(cell, tuple):
                source, *outputs = cell
                made.append(v4.new_code_cell(source, outputs=outputs))
            else:
                made.append(cell)
        for cell in made:
            cell.metadata.setdefault("slideshow", {"slide_type": "slide"})
        notebook = v4.new_notebook(cells=made, metadata=metadata)
        normalise(notebook)
        return notebook

    return make
