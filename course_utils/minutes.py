"""How long a notebook takes a learner: one rule, computed from its cells.

The number that a notebook states in its opener must lie within 15 % of what the rule gives.
"""

from __future__ import annotations

from typing import Any

from course_utils.cli.lint import prose_words

CODE_CELL = 45  # seconds to read a cell, run it and look at its output
WORDS_A_MINUTE = 130
PREDICTION = 30  # seconds to think before looking
EXERCISE = 8 * 60  # seconds
TOLERANCE = 0.15


def minutes(notebook: Any) -> float:
    """The minutes that the rule gives for a notebook (as nbformat reads it).

    45 s a code cell, 130 words of prose a minute, 30 s a prediction, 8 minutes an exercise. Code,
    tables and markup are no prose. A stub tagged `exercise` is one exercise.

    >>> minutes(nbformat.read("notebooks/00_start_here.ipynb", as_version=4))  # doctest: +SKIP
    30.4
    """
    code = [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]
    words = sum(prose_words(c.source) for c in notebook.cells if c.cell_type == "markdown")
    predictions = sum(_is_prediction(cell) for cell in code)
    exercises = sum("exercise" in cell.metadata.get("tags", []) for cell in code)
    seconds = CODE_CELL * len(code) + PREDICTION * predictions + EXERCISE * exercises
    return seconds / 60 + words / WORDS_A_MINUTE


def complaint(notebook: Any, stated: float | None) -> str:
    """An empty text if the stated minutes are within 15 % of the rule, else what is wrong.

    >>> complaint(notebook, stated=30)  # doctest: +SKIP
    ''
    """
    computed = minutes(notebook)
    if stated is None:
        return f"The opener states no minutes; the rule gives {computed:.0f}."
    if abs(stated - computed) > TOLERANCE * computed:
        return f"The opener states {stated:g} minutes; the rule gives {computed:.0f} (± 15 %)."
    return ""


def _is_prediction(cell: Any) -> bool:
    return any(line.startswith("predict(") for line in cell.source.splitlines())
