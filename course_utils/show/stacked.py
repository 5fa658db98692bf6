"""Stacked bars: what each of several wholes consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course_utils.errors import CourseError
from course_utils.show.charts import ROW, UNITS, WIDTH, _check, _figure, _number
from course_utils.show.tables import table
from course_utils.show.view import View, safe

# A part differs by its fill and by the letter in it, so that colour is never the only signal.
FILLS = (
    "var(--jp-brand-color1, #1976d2)",
    "var(--jp-warn-color1, #b26a00)",
    "var(--jp-border-color1, #8a8a8a)",
    "var(--jp-success-color1, #2e7d32)",
)
LETTERS = "ABCD"
INSIDE = "var(--jp-layout-color0, #ffffff)"


def stacked(
    labels: Sequence[str],
    parts: Sequence[Mapping[str, int]],
    caption: str,
    alt: str,
    heading: str = "",
) -> View:
    """Draw one horizontal bar for each label, made of its parts one after the other.

    Args:
        labels: One name for each bar.
        parts: For each bar, part -> number of 0 or more; the same parts in the same order, at
            most four.
        caption: What is shown.
        alt: The conclusion in a sentence, for people who cannot see the picture.
        heading: What the labels are, for the table that is the text twin.

    >>> stacked(["a"], [{"old": 1, "new": 2}], "Tokens", "Most are new.")
    Tokens
       old  new  all
    -  ---  ---  ---
    a    1    2    3
    """
    names = list(parts[0]) if parts else []
    if len(names) > len(FILLS) or any(list(part) != names for part in parts):
        raise CourseError(f"Stacked bars need the same parts in each bar, at most {len(FILLS)}.")
    _check(caption, alt, [labels, parts], [value for part in parts for value in part.values()])
    rows = [
        [str(label), *part.values(), sum(part.values())]
        for label, part in zip(labels, parts, strict=True)
    ]
    text = table(rows, [heading, *names, "all"], caption).text
    totals = [row[-1] for row in rows]
    left = min(160, UNITS * max([len(str(label)) for label in labels], default=0) + 12)
    room = WIDTH - left - UNITS * max([len(_number(t)) for t in totals], default=0) - 16
    scale = room / (max(totals, default=0) or 1)
    shapes, at = [], 4
    for letter, fill, name in zip(LETTERS, FILLS, names, strict=False):
        shapes += [
            *_box(at, 14, 22, fill, letter),
            f'<text x="{at + 28}" y="18">{safe(name)}</text>',
        ]
        at += 28 + UNITS * len(name) + 18
    for place, (label, part, total) in enumerate(zip(labels, parts, totals, strict=True)):
        middle, at = 34 + ROW * place + ROW / 2, float(left)
        shapes.append(
            f'<text x="{left - 8}" y="{middle + 4:g}" text-anchor="end">{safe(label)}</text>'
        )
        for letter, fill, value in zip(LETTERS, FILLS, part.values(), strict=False):
            if value:
                shapes += _box(at, middle, scale * value, fill, letter)
            at += scale * value
        shapes.append(f'<text x="{at + 8:.1f}" y="{middle + 4:g}">{_number(total)}</text>')
    shapes = [f"{shape} " for shape in shapes]  # keeps the words apart where only text is shown
    return View(text, _figure(shapes, 38 + ROW * len(rows), caption, alt))


def _box(x: float, middle: float, width: float, fill: str, letter: str) -> list[str]:
    box = (
        f'<rect x="{x:.1f}" y="{middle - 9:g}" width="{width:.1f}" height="18" '
        f'style="fill: {fill}; stroke: {INSIDE}"/>'
    )
    inside = (
        f'<text x="{x + width / 2:.1f}" y="{middle + 4:g}" text-anchor="middle" '
        f'style="fill: {INSIDE}">{letter}</text>'
    )
    return [box, inside] if width > 14 else [box]
