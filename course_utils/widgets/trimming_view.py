"""What trimming keeps, drops and why: a picture, and a text that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.memory.explain import Rules, Step, explain
from course_utils.memory.history import as_messages, role_of, whole_tails
from course_utils.memory.trimming import is_number
from course_utils.messages import Message
from course_utils.show.tables import table
from course_utils.show.view import BORDER, TEXT, View, safe
from course_utils.trace import count, shorten

WIDTH, BAR = 640, 90  # pixels: the gauge, and the bar of the largest message
LONGEST = 60  # characters of a message
KEPT_COLOUR = "var(--jp-brand-color1, #1976d2)"
OVER_COLOUR = "var(--jp-error-color1, #c62828)"
HEADS = ("no.", "role", "message", "tokens", "share kept", "sent", "why", "total")


def trimming_view(
    messages: Sequence[Any], costs: Sequence[int], budget: int, rules: Rules | None = None
) -> View:
    """Show what a budget leaves of a conversation: each message's fate, and what follows from it.

    Args:
        messages: Message objects, wire-format dicts or LangChain messages; one or more.
        costs: Tokens, one number a message: `TokenCounter.costs(messages)`, or made up.
        budget: Tokens that the kept messages may have together, 0 or more.
        rules: Which rules of trimming hold; default all.

    Raises:
        CourseError: No messages, not one cost a message, or what is no number of 0 or more.

    >>> trimming_view([{"role": "user", "content": "Hi"}], [5], 9)
    Budget 9 tokens: 1 of 1 message sent, 5 of 5 tokens.
    no.  role  message  tokens  sent  why         total
    ---  ----  -------  ------  ----  ----------  -----
    1    user  Hi            5  yes   kept: fits      5
    """
    rules = rules or Rules()
    read = as_messages(messages)
    if not all(is_number(number) and number >= 0 for number in (budget, *costs)):
        raise CourseError("A budget and the costs of messages are numbers of 0 or more.")
    steps = explain(messages, costs, budget, rules)
    kept = sum(step.kept for step in steps)
    sent, whole = sum(step.kept_tokens for step in steps), sum(costs)
    headline = (
        f"Budget {count(budget, 'token')}: {kept} of {count(len(steps), 'message')} sent, "
        f"{sent:,} of {count(whole, 'token')}."
    )
    notes = consequences(messages, steps, budget, rules)
    rows = [_cells(message, step) for message, step in zip(read, steps, strict=True)]
    # The bars are for the eye; totals with gaps in between are no numbers to `table`.
    plain = table([[*row[:4], *row[5:7], row[7].rjust(5)] for row in rows], HEADS[:4] + HEADS[5:])
    text = "\n".join([headline, plain.text, *(f"! {note}" for note in notes)])
    warned = "".join(f"<li>⚠ {safe(note)}</li>" for note in notes)
    # As wide as the page and no wider, also inside a widget; the table alone scrolls.
    html = (
        f'<div style="{TEXT}; width: 0; min-width: 100%; line-height: 1.35">'
        f'<div role="status"><strong>{safe(headline)}</strong>'
        f'<ul style="list-style: none; margin: 4px 0; padding: 0">{warned}</ul></div>'
        f"{_gauge(steps, sent, budget)}"
        f'<div style="overflow-x: auto">{_table(rows, steps)}</div></div>'
    )
    return View(text, html)


def consequences(
    messages: Sequence[Any], steps: Sequence[Step], budget: int, rules: Rules | None = None
) -> list[str]:
    """What is wrong with the history that is left, in sentences; none if nothing is.

    `steps` are what `explain` said of these messages, this budget and these rules.

    >>> history = [{"role": "user", "content": "Hi"}]
    >>> consequences(history, explain(history, [5], 4), 4)
    ['No user message is left. trim raises BudgetTooSmall here.']
    """
    kept = [messages[step.index] for step in steps if step.kept]
    roles = [role_of(message) for message in kept]
    body = roles[1:] if roles[:1] == ["system"] else roles
    sent = sum(step.kept_tokens for step in steps)
    found = []
    if sent > budget:
        found.append(f"{sent:,} tokens are more than the budget of {budget:,}.")
    if steps[0].role == "system" and not steps[0].kept:
        found.append("The system message is gone, and its instructions with it.")
    if "user" not in body:
        found.append("No user message is left.")
    elif body[0] == "assistant":
        found.append("It begins with an assistant's message: what that answers is gone.")
    found += [
        f"Message {step.index + 1} is cut: only {step.kept_tokens} of its {step.tokens} tokens "
        "are sent."
        for step in steps
        if 0 < step.kept_tokens < step.tokens
    ]
    if "user" in body and not steps[-1].kept:
        found.append("The newest message is not sent: the model answers something older.")
    if kept and 0 not in set(whole_tails(kept)):
        found.append("A tool result is sent without the call that it answers.")
    possible = any(role_of(messages[index]) == "user" for index in whole_tails(messages))
    if found and possible and (rules or Rules()) == Rules():
        found[-1] += " trim raises BudgetTooSmall here."
    return found


def _cells(message: Message, step: Step) -> list[Any]:
    names = ", ".join(call.name for call in message.tool_calls)
    text = message.content or (f"calls {names}" if names else "")
    share = step.kept_tokens / step.tokens if step.tokens else float(step.kept)
    sent = "no" if not step.kept else "in part" if share < 1 else "yes"
    # Behind the one that did not fit nothing is counted any more.
    total = "" if "than one that did not fit" in step.why else f"{step.total:,}"
    number = str(step.index + 1)
    return [number, step.role, shorten(text, LONGEST), step.tokens, share, sent, step.why, total]


def _table(rows: list[list[Any]], steps: Sequence[Step]) -> str:
    cell = f"border-bottom: 1px solid {BORDER}; padding: 3px 8px; vertical-align: middle"
    right, one_line = {"tokens", "total"}, {"role", "sent", "why"}
    styles = [
        f"{cell}; text-align: {'right' if head in right else 'left'}"
        f"; white-space: {'nowrap' if head in one_line else 'normal'}"
        for head in HEADS
    ]
    head = "".join(
        f'<th scope="col" style="{style}">{name}</th>'
        for name, style in zip(HEADS, styles, strict=True)
    )
    largest = max((step.tokens for step in steps), default=0) or 1
    marks = {"yes": "✓ yes", "no": "✗ no", "in part": "✂ in part"}
    body = []
    for row, step in zip(rows, steps, strict=True):
        shown = [*row[:4], None, marks[row[5]], *row[6:]]
        cells = [f'<th scope="row" style="{styles[0]}">{safe(shown[0])}</th>']
        for place, (value, style) in enumerate(zip(shown[1:], styles[1:], strict=True), 1):
            inside = _bar(step, row[4], largest) if place == 4 else safe(value)
            cells.append(f'<td style="{style}">{inside}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        '<table style="border-collapse: collapse; margin: 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def _bar(step: Step, share: float, largest: int) -> str:
    """A message's tokens as a box, filled as far as they are sent; dashed where nothing is."""
    width = max(4, round(BAR * step.tokens / largest))
    line = "solid" if step.kept else "dashed"
    return (
        f'<div aria-hidden="true" style="width: {width}px; height: 12px; box-sizing: border-box; '
        f'border: 1px {line} {KEPT_COLOUR if step.kept else BORDER}">'
        f'<div style="width: {100 * share:.0f}%; height: 100%; background: {KEPT_COLOUR}"></div>'
        "</div>"
    )


def _gauge(steps: Sequence[Step], sent: int, budget: int) -> str:
    """What is sent, message beside message, and where the budget ends."""
    whole = max(sum(step.tokens for step in steps), budget) or 1
    scale, at, shapes = (WIDTH - 2) / whole, 1.0, []
    for step in steps:
        width = scale * step.kept_tokens
        if width:
            shapes.append(
                f'<rect x="{at:.1f}" y="18" width="{width:.1f}" height="20" '
                f'style="fill: {KEPT_COLOUR}; stroke: var(--jp-layout-color0, white)"/>'
            )
        if width > 16:
            shapes.append(
                f'<text x="{at + width / 2:.1f}" y="32" text-anchor="middle" '
                f'style="fill: var(--jp-layout-color0, white)">{step.index + 1}</text>'
            )
        at += width
    mark = 1 + scale * budget
    side = "end" if mark > WIDTH / 2 else "start"
    colour = OVER_COLOUR if sent > budget else "currentColor"
    alt = f"{sent:,} tokens are sent of a budget of {budget:,}."
    return (
        f'<svg role="img" aria-label="{safe(alt)}" viewBox="0 0 {WIDTH} 46" width="100%" '
        f'style="font: 12px sans-serif; max-width: {WIDTH}px; display: block" '
        f'fill="currentColor" xmlns="http://www.w3.org/2000/svg"><title>{safe(alt)}</title>'
        f'<rect x="1" y="18" width="{WIDTH - 2}" height="20" fill="none" stroke="currentColor" '
        f'stroke-dasharray="3 3" stroke-opacity="0.5"/>{"".join(shapes)}'
        f'<path d="M{mark:.1f} 14V44" style="stroke: {colour}; stroke-width: 3"/>'
        f'<text x="{mark:.1f}" y="11" text-anchor="{side}">budget {budget:,}</text></svg>'
    )
