"""Runs of agents: their steps as a table, the growth of their prompts as stacked bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_utils.code_trace import as_run, goes_on
from course_utils.show.stacked import stacked
from course_utils.show.tables import table
from course_utils.show.view import View
from course_utils.trace import shorten

LONGEST = 160  # characters of a cell
COLUMNS = "step,messages,tokens in,tokens out,so far,called,observed,error,origin".split(",")


def steps_table(run: Any, columns: Sequence[str] | None = None, caption: str = "") -> View:
    """Show a run as a table, one row for each step.

    Args:
        run: A CodeRun, a Trace, or what `run_agent` returns.
        columns: Which columns, out of step, messages (of the prompt), tokens in, tokens out, so far
            (tokens), called, observed, error, origin. Default: all, but no "error" if there is
            none, and no "messages" if they are not known.
        caption: What is shown. Default: the answer, and the label of the run.

    >>> from course_utils.code_trace import CodeRun, CodeStep
    >>> steps_table(CodeRun("Hi", {}, (CodeStep(1, "Hello!", is_final=True),), "Hello!"))
    Hello! [unknown · 1 step · 0 tokens in, 0 out · answer]
    step  tokens in  tokens out  so far  called  observed  origin
    ----  ---------  ----------  ------  ------  --------  ------
       1          0           0       0          Hello!
    """
    run = as_run(run)
    rows = [
        {
            name: "\n".join(shorten(line, LONGEST) for line in cell.split("\n"))
            if name == "called"
            else shorten(cell, LONGEST)
            if isinstance(cell, str)
            else cell
            for name, cell in row.items()
        }
        for row in run.rows()
    ]
    absent = set()
    if not any(row["error"] for row in rows):
        absent.add("error")
    if not any(step.added for step in run.steps):
        absent.add("messages")
    chosen = columns or [name for name in COLUMNS if name not in absent]
    answer = "(no answer)" if run.answer is None else shorten(run.answer, LONGEST)
    return table(rows, chosen, caption or f"{answer} {run.label()}")


def growth_chart(
    run: Any, tokens: Callable[[str], int] | None = None, caption: str = "", alt: str = ""
) -> View:
    """Show what each step's prompt consists of, in tokens.

    Args:
        run: A CodeRun, a Trace, or what `run_agent` returns.
        tokens: Counts a text: `lambda text: len(model.encode(text))`. It splits the prompt into
            system prompt, tool list, earlier steps and new. Without it there are two parts, what
            the step before read too and what is new; where a prompt does not simply go on from the
            one before, the first is what may have been read before, at most.
        caption, alt: What is shown, and the conclusion; by default from the numbers.

    >>> from course_utils.code_trace import CodeRun, CodeStep
    >>> steps = (CodeStep(1, tokens_in=20), CodeStep(2, tokens_in=30))
    >>> growth_chart(CodeRun("Hi", {}, steps))
    Prompt tokens of each step
    step  read before  new  all
    ----  -----------  ---  ---
    1               0   20   20
    2              20   10   30
    """
    run = as_run(run)
    growth = run.growth()
    if tokens is None:
        pairs = list(zip(run.steps, run.steps[1:], strict=False))
        sure = all(goes_on(before, step) for before, step in pairs)
        first = "read before" if sure else "read before (at most)"
        parts = [
            {first: min(before, now), "new": max(0, now - before)}
            for before, now in zip([0, *growth], growth, strict=False)
        ]
    else:
        parts = run.parts(tokens)
    if not alt and growth:
        again = sum(sum(part.values()) - part["new"] for part in parts)
        alt = (
            f"The prompts of {len(growth)} steps have {sum(growth):,} tokens together, from "
            f"{growth[0]:,} in the first to {growth[-1]:,} in the last; {again:,} are not new."
        )
    labels = [f"{step.number}{' (limit)' if step.forced else ''}" for step in run.steps]
    return stacked(
        labels, parts, caption or "Prompt tokens of each step", alt or "No step.", "step"
    )


def findings_table(findings: Sequence[Any], caption: str = "") -> View:
    """Show what the claim check found, or that it found nothing.

    Args:
        findings: What `check_claims` returned.
        caption: Which run this is about.

    >>> findings_table([], "Paris")
    Paris: the claim check found nothing.
    """
    if not findings:
        text = "the claim check found nothing."
        text = f"{caption}: {text}" if caption else text.capitalize()
        return View(text, table([[text]], ["claim check"]).html)
    rows = [[f.kind, shorten(f.claim, LONGEST), f.evidence] for f in findings]
    return table(rows, ["finding", "in", "what the trace shows"], caption)
