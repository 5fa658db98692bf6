"""A run as a table."""

from __future__ import annotations

from course_utils.show.tables import table
from course_utils.show.view import View
from course_utils.trace import Trace, shorten

LONGEST = 200  # characters of a choice or an observation


def trace(of: Trace, columns: list[str] | None = None, caption: str = "") -> View:
    """Show a trace as a table, one row for each call, answer or fault.

    Args:
        of: The trace, for example `run.trace`.
        columns: Which columns, out of step, messages, tools, choice, observation, tokens in,
            cached, tokens out, origin. Default: all but tools.
        caption: What is shown. Default: how the run stopped.

    >>> trace(Trace())
    step  messages  choice  observation  tokens in  cached  tokens out  origin
    ----  --------  ------  -----------  ---------  ------  ----------  ------
    """
    chosen = columns or [
        "step",
        "messages",
        "choice",
        "observation",
        "tokens in",
        "cached",
        "tokens out",
        "origin",
    ]
    rows = [
        {
            name: shorten(cell, LONGEST) if isinstance(cell, str) else cell
            for name, cell in row.items()
        }
        for row in of.rows()
    ]
    stopped = f"stopped: {of.stopped.reason}" if of.stopped else ""
    return table(rows, chosen, caption or stopped)
