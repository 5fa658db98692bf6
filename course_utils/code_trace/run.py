"""The parts of a run, and the views that people read: rows, growth, tools, text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall
from course_utils.trace import call_text, count, shorten

CODE_BEGINS = re.compile(r"<code>|```(?:python|py)?")
UNREADABLE = ("Error in code parsing", "Error while parsing tool call")
FINAL = "final_answer"  # how smolagents names the tool that ends a run


@dataclass(frozen=True)
class Call:
    """A tool that was called, with its named arguments.

    `result` is text, as the model's code or the model itself saw it; None if nothing recorded it.

    >>> Call("add", {"a": 1, "b": 2}, "3")
    add(a=1, b=2) → 3
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    result: str | None = None
    ok: bool = True

    @property
    def text(self) -> str:
        """The call as one would type it."""
        return call_text(ToolCall("", self.name, self.arguments))

    def __repr__(self) -> str:
        result = "(not recorded)" if self.result is None else shorten(self.result)
        return f"{self.text} → {'' if self.ok else 'failed: '}{result}"


@dataclass(frozen=True)
class CodeStep:
    """One reply of the model and what came of it.

    `added` are the messages that this prompt had and the one before had not; `reread` counts the
    others, which are read again. `kind` is *action*, *plan*, or *forced*: at the step limit
    smolagents asks once more, for an answer without tools. `text` is what the model wrote, `code`
    the program found in it. `observation` is what the step put before the model, `error` what went
    wrong.
    """

    number: int
    text: str = ""
    code: str | None = None
    calls: tuple[Call, ...] = ()
    observation: str = ""
    error: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    origin: str = ""
    is_final: bool = False
    kind: str = "action"
    added: tuple[Message, ...] = ()
    reread: int = 0

    @property
    def thought(self) -> str:
        """What the model wrote before its code, without the word "Thought:"."""
        if self.code is None:
            return self.text.strip()
        return CODE_BEGINS.split(self.text, maxsplit=1)[0].strip().removeprefix("Thought:").strip()

    @property
    def forced(self) -> bool:
        """Whether this is the answer that was asked for at the step limit."""
        return self.kind == "forced"

    @property
    def unreadable(self) -> bool:
        """Whether no code or call could be found in the text."""
        return self.error.startswith(UNREADABLE)

    @property
    def outcome(self) -> str:
        """What the step led to, in a few words or as it was observed."""
        if self.error:
            return self.error
        if self.forced:
            return f"step limit: asked for an answer → {self.text}"
        return self.observation or (self.text if self.is_final or self.kind == "plan" else "")


@dataclass(frozen=True)
class CodeRun:
    """A run from its task to its answer.

    `tools` maps each offered tool to its text in the prompt ("" if that is not known), `given` are
    names that the code may use besides (variables passed in). `stop_reason` is *answer*,
    *max_steps*, *unfinished*, or what the course's own loop says.

    >>> CodeRun("Hi", {}, (CodeStep(1, "Hello!", is_final=True, origin="scripted"),), "Hello!")
    step 1 · 0 tokens in, 0 out · scripted
      → Hello!
    Hello!
    [scripted · 1 step · 0 tokens in, 0 out · answer]
    """

    task: str
    tools: dict[str, str]
    steps: tuple[CodeStep, ...]
    answer: str | None = None
    stop_reason: str = "answer"
    model: str = ""
    given: tuple[str, ...] = ()

    # -- sums ------------------------------------------------------------------------------------

    @property
    def tokens_in(self) -> int:
        """Prompt tokens of all steps."""
        return sum(step.tokens_in for step in self.steps)

    @property
    def tokens_out(self) -> int:
        """Tokens that the model wrote in all steps."""
        return sum(step.tokens_out for step in self.steps)

    @property
    def origin(self) -> str:
        """*recorded*, *live* or *scripted*; several joined by "and"; "unknown" if none is known."""
        return " and ".join(sorted({s.origin for s in self.steps if s.origin})) or "unknown"

    @property
    def calls(self) -> list[Call]:
        """Every call of the run, in order."""
        return [call for step in self.steps for call in step.calls]

    def tools_offered(self) -> list[str]:
        """Names of the tools that the prompt offered, without `final_answer`."""
        return [name for name in self.tools if name != FINAL]

    def tools_used(self) -> dict[str, int]:
        """Offered tool -> how many calls of it succeeded; the difference is what was never used."""
        used = dict.fromkeys(self.tools_offered(), 0)
        for call in self.calls:
            if call.ok and call.name in used:
                used[call.name] += 1
        return used

    def growth(self) -> list[int]:
        """Prompt tokens, step by step: what is read again each time."""
        return [step.tokens_in for step in self.steps]

    def parts(self, tokens: Callable[[str], int]) -> list[dict[str, int]]:
        """Where each prompt's tokens go: *system prompt*, *tool list*, *earlier steps*, *new*.

        `tokens` counts a text: `lambda text: len(model.encode(text))`. The parts sum to the step's
        prompt tokens; the few tokens that the chat template adds are counted with what is new.
        """
        return list(_parts(self.steps, "\n".join(self.tools.values()), tokens))

    # -- views -----------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """One row for each step, ready for `course_utils.show.table`.

        *messages* are those of the prompt, *so far* counts the tokens read and written up to here.
        """
        rows, so_far = [], 0
        for step in self.steps:
            so_far += step.tokens_in + step.tokens_out
            rows.append(
                {
                    "step": step.number,
                    "messages": f"{step.reread} again, {len(step.added)} new",
                    "tokens in": step.tokens_in,
                    "tokens out": step.tokens_out,
                    "so far": so_far,
                    "called": "\n".join(call.text for call in step.calls),
                    "observed": "" if step.error else step.outcome,
                    "error": step.error,
                    "origin": step.origin,
                }
            )
        return rows

    def label(self) -> str:
        """Origin, steps, tokens and the reason for the end in one line."""
        counts = f"{self.tokens_in:,} tokens in, {self.tokens_out:,} out"
        parts = [self.origin, self.model, count(len(self.steps), "step"), counts, self.stop_reason]
        return f"[{' · '.join(part for part in parts if part)}]"

    def __repr__(self) -> str:
        lines = [line for step in self.steps for line in _lines(step)]
        return "\n".join([*lines, "(no answer)" if self.answer is None else self.answer]) + (
            f"\n{self.label()}"
        )

    def _repr_html_(self) -> str:
        from course_utils.show.runs import steps_table

        return steps_table(self).html

    # -- on disk ---------------------------------------------------------------------------------

    def save(self, path: Path | str) -> None:
        """Write the run as JSON lines, one line an event; `load_run` reads it back exactly."""
        from course_utils.code_trace.saved import to_lines

        Path(path).write_text("\n".join(to_lines(self)) + "\n", encoding="utf-8", newline="\n")

    def step(self, number: int) -> CodeStep:
        """The first step of that number; CourseError if there is none."""
        for step in self.steps:
            if step.number == number:
                return step
        raise CourseError(f"This run has {count(len(self.steps), 'step')}, and none is {number}.")


def _lines(step: CodeStep) -> Iterator[str]:
    marks = {"forced": " · the step limit: asked once more", "plan": " · a plan"}
    yield (
        f"step {step.number} · {step.tokens_in:,} tokens in, {step.tokens_out:,} out"
        f"{' · ' + step.origin if step.origin else ''}{marks.get(step.kind, '')}"
    )
    for call in step.calls:
        yield f"  {call!r}"
    if step.error:
        yield f"  error: {shorten(step.error)}"
    elif step.outcome and not (step.calls and step.is_final):
        yield f"  → {shorten(step.text if step.forced else step.outcome)}"


def goes_on(before: CodeStep, step: CodeStep) -> bool:
    """Whether a prompt is the one before with something added, nothing changed or left out."""
    whole = before.reread + len(before.added)
    changed = any(message.role == "system" for message in step.added)
    return step.reread == whole and not changed and step.tokens_in >= before.tokens_in


def _parts(
    steps: tuple[CodeStep, ...], tool_list: str, tokens: Callable[[str], int]
) -> Iterator[dict[str, int]]:
    system = tools = 0
    for place, step in enumerate(steps):
        own = [message for message in step.added if message.role != "system"]
        if len(own) < len(step.added):
            text = "\n".join(m.content for m in step.added if m.role == "system")
            within = bool(tool_list) and all(line in text for line in tool_list.splitlines())
            tools = tokens(tool_list) if within else 0
            system = tokens(text) - tools
        room = max(0, step.tokens_in - system - tools)
        if place == 0:
            new = room
        elif goes_on(steps[place - 1], step):
            new = step.tokens_in - steps[place - 1].tokens_in
        else:
            new = sum(tokens(message.content) for message in own)
        fixed, new = step.tokens_in - room, min(new, room)
        yield {
            "system prompt": fixed - min(tools, fixed),
            "tool list": min(tools, fixed),
            "earlier steps": room - new,
            "new": new,
        }
