"""The closing table of a run, and the lines that name what failed."""

from course_utils.cli.execution import Execution
from course_utils.cli.places import short

HEADINGS = ("notebook", "cells", "recorded", "live", "scripted", "seconds", "ok")


def table(results: list[Execution]) -> str:
    """One line per notebook: cells, replies by origin, seconds, and whether all went well."""
    rows = [HEADINGS] + [_row(result) for result in results]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [_line(row, widths) for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def failures(results: list[Execution]) -> list[str]:
    """For each notebook that failed, one line with its file, cell number and error."""
    return [f"FAILED {short(r.path)}, {r.failure}" for r in results if not r.ok]


def _row(result: Execution) -> tuple[str, ...]:
    origins = [str(result.replies[origin]) for origin in ("recorded", "live", "scripted")]
    verdict = "yes" if result.ok else "NO"
    return (result.path.stem, str(result.cells), *origins, f"{result.seconds:.1f}", verdict)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    first = row[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
    return "  ".join([first, *rest])
