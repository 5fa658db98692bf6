"""Tables: semantic HTML and an aligned text twin."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.show.view import BORDER, TEXT, View, safe

WRAP = 60  # characters of a column in the text twin before it continues on the next line


def table(
    rows: Sequence[Mapping[str, Any] | Sequence[Any]],
    columns: Sequence[str] | None = None,
    caption: str = "",
) -> View:
    """Show rows as a table; the first column names the rows.

    Args:
        rows: Dicts, or lists in the order of `columns`.
        columns: The headings; for dicts also which keys are shown. Default: the keys of the dicts
            in the order in which they turn up.
        caption: What the table shows.

    Raises:
        CourseError: A row does not fit the columns.

    >>> table([{"tool": "add", "calls": 2}], caption="Calls")
    Calls
    tool  calls
    ----  -----
    add       2
    """
    heads = _columns(rows, columns)
    body = [_cells(row, heads) for row in rows]
    numeric = [
        bool(body) and all(_is_number(cells[place]) for cells in body)
        for place in range(len(heads))
    ]
    shown = [[_plain(cell) for cell in cells] for cells in body]
    return View(_text(heads, shown, numeric, caption), _html(heads, shown, numeric, caption))


def _columns(rows: Sequence[Any], columns: Sequence[str] | None) -> list[str]:
    if columns is not None:
        return [str(column) for column in columns]
    if not all(isinstance(row, Mapping) for row in rows):
        raise CourseError("Rows that are not dicts need `columns`: the list of their headings.")
    return list(dict.fromkeys(str(key) for row in rows for key in row))


def _cells(row: Any, heads: list[str]) -> list[Any]:
    if isinstance(row, Mapping):
        return [row.get(head, "") for head in heads]
    if isinstance(row, str) or len(row) != len(heads):
        raise CourseError(
            f"The row {row!r} does not fit the {len(heads)} columns {', '.join(heads)}."
        )
    return list(row)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _plain(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _text(heads: list[str], rows: list[list[str]], numeric: list[bool], caption: str) -> str:
    wrapped = [[_wrap(cell) for cell in cells] for cells in rows]
    widths = [
        max([len(head), *(len(line) for cells in wrapped for line in cells[place])])
        for place, head in enumerate(heads)
    ]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    lines = [caption] if caption else []
    lines += [line(heads), "  ".join("-" * width for width in widths)]
    for cells in wrapped:
        for level in range(max(map(len, cells), default=0)):
            lines.append(line([cell[level] if level < len(cell) else "" for cell in cells]))
    return "\n".join(lines)


def _wrap(cell: str) -> list[str]:
    return [
        part
        for row in cell.splitlines() or [""]
        for part in textwrap.wrap(row, WRAP, drop_whitespace=False) or [""]
    ]


def _html(heads: list[str], rows: list[list[str]], numeric: list[bool], caption: str) -> str:
    cell = f"border-bottom: 1px solid {BORDER}; padding: 3px 10px; vertical-align: top"

    def style(place: int) -> str:
        align = "right" if numeric[place] else "left"
        return f'style="{cell}; text-align: {align}; white-space: pre-wrap"'

    head = "".join(
        f'<th scope="col" {style(place)}>{safe(name)}</th>' for place, name in enumerate(heads)
    )
    body = []
    for cells in rows:
        row = "".join(
            f'<th scope="row" {style(place)}>{safe(value)}</th>'
            if place == 0
            else f"<td {style(place)}>{safe(value)}</td>"
            for place, value in enumerate(cells)
        )
        body.append(f"<tr>{row}</tr>")
    title = f'<caption style="text-align: left">{safe(caption)}</caption>' if caption else ""
    return (
        f'<table style="{TEXT}; border-collapse: collapse">{title}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
