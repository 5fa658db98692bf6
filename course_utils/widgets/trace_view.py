"""One step of a run: what was read again, what was new, what the model wrote, what came of it."""

from __future__ import annotations

from typing import Any

from course_utils.code_trace import CodeRun, CodeStep, as_run, goes_on
from course_utils.errors import CourseError
from course_utils.show.view import BORDER, CODE, TEXT, View, safe
from course_utils.trace import count

LONGEST = 400  # characters of a block in the text twin; the HTML scrolls instead
COLOURS = {
    "new": "var(--jp-info-color1, #0277bd)",
    "wrote": "var(--jp-success-color1, #2e7d32)",
    "saw": "var(--jp-accent-color1, #8e24aa)",
    "error": "var(--jp-error-color1, #c62828)",
}
KINDS = {
    "plan": " This reply is a plan.",
    "forced": " The step limit was reached: the model is asked once more, for an answer.",
}


def trace_view(run: Any, place: int = 1) -> View:
    """Show one step of a run: its new messages, what is read again, the reply and its outcome.

    Args:
        run: A CodeRun, a Trace, or what `run_agent` returns.
        place: Which step, counted from 1 in the order in which the model was asked.

    Raises:
        CourseError: There is no such step, or this is no run.

    >>> trace_view(CodeRun("Hi", {}, (CodeStep(1, "Hello!", is_final=True),), "Hello!"))
    Step 1 of 1: 0 tokens in, 0 out; 0 tokens so far.
    ── the model wrote
    Hello!
    """
    run = as_run(run)
    if isinstance(place, bool) or not isinstance(place, int) or not 1 <= place <= len(run.steps):
        raise CourseError(
            f"This run has {count(len(run.steps), 'step')}; {place!r} is not the place of one."
        )
    step, headline = run.steps[place - 1], _headline(run, place)
    blocks = _blocks(step)
    text = [headline, *(f"── {label}\n{_cut(body)}" for _, label, body in blocks)]
    html = "".join(_html(kind, label, body) for kind, label, body in blocks)
    return View(
        "\n".join(text),
        f'<div style="{TEXT}; width: 0; min-width: 100%; line-height: 1.35">'
        f'<div role="status"><strong>{safe(headline)}</strong></div>'
        f"{_gauge(run, place)}{html}</div>",
    )


def _headline(run: CodeRun, place: int) -> str:
    step = run.steps[place - 1]
    again = _again(run, place)
    detail = f" ({again:,} read again, {step.tokens_in - again:,} new)" if again else ""
    so_far = sum(each.tokens_in + each.tokens_out for each in run.steps[:place])
    origin = f" [{step.origin}]" if step.origin else ""
    return (
        f"Step {place} of {len(run.steps)}: {count(step.tokens_in, 'token')} in{detail}, "
        f"{step.tokens_out:,} out; {count(so_far, 'token')} so far."
        f"{KINDS.get(step.kind, '')}{origin}"
    )


def _again(run: CodeRun, place: int) -> int:
    """Tokens of this prompt that the prompt before had too, if it goes on from that one."""
    if place == 1 or not goes_on(run.steps[place - 2], run.steps[place - 1]):
        return 0
    return run.steps[place - 2].tokens_in


def _blocks(step: CodeStep) -> list[tuple[str, str, str]]:
    """(kind, label, text) of everything that a step shows."""
    blocks = []
    if step.reread:
        blocks.append(("", f"read again: {count(step.reread, 'message')}", ""))
    for message in step.added:
        calls = ", ".join(call.name for call in message.tool_calls)
        text = message.content or (f"calls {calls}" if calls else "(empty)")
        blocks.append(("new", f"new message: {message.role}", text))
    blocks.append(("wrote", "the model wrote", step.text or "(nothing)"))
    if step.calls:
        blocks.append(("saw", "calls that were made", "\n".join(map(repr, step.calls))))
    if step.observation:
        blocks.append(("saw", "what the next step will see", step.observation))
    if step.error:
        blocks.append(("error", "error", step.error))
    return blocks


def _cut(text: str) -> str:
    over = len(text) - LONGEST
    return text if over <= 0 else f"{text[:LONGEST]}… ({count(over, 'character')} more)"


def _html(kind: str, label: str, text: str) -> str:
    colour = COLOURS.get(kind, BORDER)
    body = (
        f'<pre tabindex="0" aria-label="{safe(label)}" style="{TEXT}; {CODE}; '
        "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; margin: 0; "
        f'max-height: 14em; overflow: auto; background: none">{safe(text)}</pre>'
        if text
        else ""
    )
    return (
        f'<div style="border-left: 6px solid {colour}; padding: 2px 10px; margin: 4px 0">'
        f'<div style="font-weight: bold">{safe(label)}</div>{body}</div>'
    )


def _gauge(run: CodeRun, place: int) -> str:
    """The prompts of all steps as bars; those up to here are filled, what is read again darker."""
    room, floor = min(60.0, 636 / len(run.steps) - 4), 32
    width = max(320, round(4 + len(run.steps) * (room + 4)))
    scale = (floor - 2) / (max(run.growth()) or 1)
    shapes = []
    for at, step in enumerate(run.steps, 1):
        x, seen = 4 + (at - 1) * (room + 4), at <= place
        for tokens, opacity in ((step.tokens_in, 0.55), (_again(run, at), 1)):
            tall = scale * tokens
            line = "" if seen else ' stroke-dasharray="3 3"'
            shapes.append(
                f'<rect x="{x:.1f}" y="{floor - tall:.1f}" width="{room:.1f}" height="{tall:.1f}"'
                f'{line} style="fill: {COLOURS["new"]}; fill-opacity: {opacity if seen else 0}; '
                f'stroke: {COLOURS["new"]}"/>'
            )
        bold = ' font-weight="bold"' if at == place else ""
        shapes.append(f'<text x="{x + room / 2:.1f}" y="45" text-anchor="middle"{bold}>{at}</text>')
    alt = f"Prompt tokens of the steps: {', '.join(f'{n:,}' for n in run.growth())}."
    return (
        f'<svg role="img" aria-label="{safe(alt)}" viewBox="0 0 {width} 48" width="100%" '
        f'style="font: 12px sans-serif; max-width: {width}px; display: block" fill="currentColor" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{safe(alt)}</title>{"".join(shapes)}</svg>'
    )
