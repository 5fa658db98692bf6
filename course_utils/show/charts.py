"""Bar and line charts as inline SVG: no image files, readable in light and dark themes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from course_utils.errors import CourseError
from course_utils.show.tables import table
from course_utils.show.view import TEXT, View, safe

WIDTH = 640
ROW = 28
UNITS = 7  # what a letter of the 13-unit font needs, at most on average
# Each line of a chart differs by dash and marker too, so that colour is never the only signal.
SERIES = (
    ("var(--jp-brand-color1, #1976d2)", "", "●"),
    ("var(--jp-warn-color1, #b26a00)", "8 4", "■"),
    ("var(--jp-success-color1, #2e7d32)", "2 4", "▲"),
    ("var(--jp-error-color1, #c62828)", "10 3 2 3", "◆"),
)


def bars(
    labels: Sequence[str],
    values: Sequence[float],
    caption: str,
    alt: str,
    *,
    unit: str = "",
    intervals: Sequence[tuple[float, float]] | None = None,
) -> View:
    """Draw horizontal bars.

    Args:
        labels: One name for each bar.
        values: Numbers of 0 or more.
        caption: What is shown.
        alt: The conclusion in a sentence, for people who cannot see the picture.
        unit: Written after each number, such as "tokens".
        intervals: (low, high) for each bar, drawn as a thin line.

    >>> bars(["a", "b"], [1, 2], "Calls", "b calls twice as often as a.")
    Calls
    a  1  ████████████
    b  2  ████████████████████████
    """
    _check(caption, alt, [labels, values, intervals or values], values)
    spans = list(intervals or [])
    top = max([*values, *(high for _, high in spans), 0]) or 1
    numbers = [f"{_number(value)} {unit}".strip() for value in values]
    if spans:
        limits = [f" ({_number(low)}–{_number(high)})" for low, high in spans]
        numbers = [number + limit for number, limit in zip(numbers, limits, strict=True)]
    wide, wide_number = (max(map(len, map(str, each)), default=0) for each in (labels, numbers))
    text = [caption] + [
        f"{label!s:<{wide}}  {number:>{wide_number}}  {'█' * round(24 * value / top)}".rstrip()
        for label, number, value in zip(labels, numbers, values, strict=True)
    ]
    left = min(260, UNITS * wide + 12)
    room = max(120, WIDTH - left - UNITS * wide_number - 12)
    shapes = []
    for place, (label, number, value) in enumerate(zip(labels, numbers, values, strict=True)):
        low, high = spans[place] if spans else (value, value)
        ends = [room * (each / top) for each in (value, low, high)]
        shapes += _bar(place, str(label), number, left, ends)
    return View("\n".join(text), _figure(shapes, ROW * len(labels), caption, alt))


def _bar(place: int, label: str, number: str, left: int, ends: list[float]) -> list[str]:
    middle, fits = ROW * place + ROW / 2, (left - 12) // UNITS
    name = label if len(label) <= fits else f"{label[: fits - 1]}…"
    length, low, high = ends
    shapes = [
        f'<text x="{left - 8}" y="{middle + 4:g}" text-anchor="end">{safe(name)}</text>',
        f'<rect x="{left}" y="{middle - 9:g}" width="{length:.1f}" height="18" '
        f'style="fill: {SERIES[0][0]}"/>',
        f'<text x="{left + max(length, high) + 8:.1f}" y="{middle + 4:g}">{safe(number)}</text>',
    ]
    if low < high:
        shapes.append(
            f'<path d="M{left + low:.1f} {middle - 5:g}v10m0 -5H{left + high:.1f}m0 -5v10" '
            'fill="none" stroke="currentColor" stroke-width="1.5"/>'
        )
    return shapes


def lines(
    series: Mapping[str, Sequence[float]],
    caption: str,
    alt: str,
    *,
    x: Sequence[float] | None = None,
    x_label: str = "",
    y_label: str = "",
) -> View:
    """Draw growth curves, each labelled at its end.

    Args:
        series: Name -> numbers of 0 or more, all equally many; at most four curves.
        caption: What is shown.
        alt: The conclusion in a sentence, for people who cannot see the picture.
        x: Where the numbers stand from left to right, rising; default 1, 2, 3, …
        x_label: What x counts, such as "turn".
        y_label: What the numbers count, such as "tokens".

    >>> lines({"whole": [1, 2]}, "Growth", "It doubles.", x_label="turn")
    Growth
    turn  whole
    ----  -----
       1      1
       2      2
    """
    if not series or len(series) > len(SERIES):
        raise CourseError(f"A line chart needs 1 to {len(SERIES)} curves, not {len(series)}.")
    first = next(iter(series.values()))
    places = list(x) if x is not None else list(range(1, len(first) + 1))
    _check(caption, alt, [places, *series.values()], [v for each in series.values() for v in each])
    if not places or any(a >= b for a, b in zip(places, places[1:], strict=False)):
        raise CourseError("x must hold one number or more, each larger than the one before.")
    rows = [list(row) for row in zip(places, *series.values(), strict=True)]
    text = table(rows, [x_label or "x", *series], caption).text
    shapes, ends = _axes(places, series, x_label, y_label), []
    for (name, values), (colour, dash, marker) in zip(series.items(), SERIES, strict=False):
        points = [_point(places, series, place, v) for place, v in zip(places, values, strict=True)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        shapes.append(
            f'<polyline points="{path}" fill="none" stroke-width="2" '
            f'stroke-dasharray="{dash}" style="stroke: {colour}"/>'
        )
        shapes += [
            f'<text x="{px:.1f}" y="{py + 4:.1f}" text-anchor="middle" '
            f'style="fill: {colour}; font-size: 11px">{marker}</text>'
            for px, py in points
        ]
        ends.append((points[-1][1], f"{marker} {name}: {_number(values[-1])}"))
    shapes += _end_labels(ends)
    return View(text, _figure(shapes, HEIGHT, caption, alt))


# The frame of a line chart: the plot lies between these edges, labels right of it.
HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 260, 70, 440, 24, 216


def _point(
    places: Sequence[float], series: Mapping[str, Sequence[float]], place: float, value: float
) -> tuple[float, float]:
    span = (places[-1] - places[0]) or 1
    top = max(max(values) for values in series.values()) or 1
    across = LEFT + (RIGHT - LEFT) * ((place - places[0]) / span)
    return across, BOTTOM - (BOTTOM - TOP) * (value / top)


def _end_labels(ends: list[tuple[float, str]]) -> list[str]:
    # From the lowest curve up, each label at least a line above the one below it.
    shapes, below = [], float("inf")
    for height, label in sorted(ends, reverse=True):
        below = min(height + 4, below - 16)
        shapes.append(f'<text x="{RIGHT + 10}" y="{below:.1f}">{safe(label)}</text>')
    return shapes


def _axes(
    places: Sequence[float], series: Mapping[str, Sequence[float]], x_label: str, y_label: str
) -> list[str]:
    top = max(max(values) for values in series.values())
    shapes = [
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="currentColor"/>',
        f'<text x="{LEFT - 8}" y="{BOTTOM + 4}" text-anchor="end">0</text>',
        f'<text x="{LEFT - 8}" y="{TOP + 4}" text-anchor="end">{_number(top)}</text>',
        f'<text x="{LEFT}" y="{BOTTOM + 20}" text-anchor="middle">{_number(places[0])}</text>',
        f'<text x="{(LEFT + RIGHT) / 2:g}" y="{BOTTOM + 38}" text-anchor="middle">'
        f"{safe(x_label)}</text>",
        f'<text x="{LEFT}" y="{TOP - 10}">{safe(y_label)}</text>',
    ]
    if len(places) > 1:
        last = _number(places[-1])
        shapes.append(f'<text x="{RIGHT}" y="{BOTTOM + 20}" text-anchor="middle">{last}</text>')
    return shapes


def _check(
    caption: str, alt: str, columns: Sequence[Sequence[object]], numbers: Sequence[float]
) -> None:
    if not str(alt).strip() or not str(caption).strip():
        raise CourseError("A chart needs a caption, and an alt text that states the conclusion.")
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(str(len(column)) for column in columns)
        raise CourseError(f"All columns of a chart must be equally long, not {sizes}.")
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise CourseError("A chart here shows finite numbers of 0 or more only.")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _figure(shapes: list[str], height: float, caption: str, alt: str) -> str:
    return (
        f'<figure style="{TEXT}; margin: 0; max-width: {WIDTH}px">'
        f'<svg role="img" aria-label="{safe(alt)}" viewBox="0 0 {WIDTH} {height:g}" width="100%" '
        'style="font: 13px sans-serif" fill="currentColor" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{safe(alt)}</title>{''.join(shapes)}</svg>"
        f"<figcaption>{safe(caption)}</figcaption></figure>"
    )
