"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass

from course_utils.agent.limits import StopReason
from course_utils.trace import Observed, Replied, Trace, call_text, count, shorten


@dataclass(frozen=True, repr=False)
class Run:
    """A run that has stopped, with an answer or without one.

    `answer` is None unless the model answered. `stop_reason` is the name of the reason, `detail` a
    sentence about it. `error` is the exception behind a stop with the reason *error*.
    """

    trace: Trace
    error: Exception | None = None

    @property
    def stop_reason(self) -> StopReason:
        """Why the run stopped."""
        return StopReason(self.trace.stopped.reason)

    @property
    def detail(self) -> str:
        """A sentence about why the run stopped."""
        return self.trace.stopped.detail

    @property
    def answer(self) -> str | None:
        """The answer of the model, or None if the run stopped without one."""
        if self.stop_reason is not StopReason.ANSWER:
            return None
        reply = self.trace.last_reply.reply
        return reply.content or reply.text

    @property
    def observations(self) -> list[Observed]:
        """The successful observations: what is known whether there is an answer or not."""
        return [event for event in self.trace.of(Observed) if event.ok]

    @property
    def steps(self) -> int:
        """How many times the model was called."""
        return sum(1 for _ in self.trace.of(Replied))

    @property
    def tokens(self) -> int:
        """Tokens read and written by the model, over all steps."""
        return self.trace.tokens()

    @property
    def partial(self) -> str:
        """The result as far as it goes: the answer, or what was found and what is missing."""
        if self.answer is not None:
            return self.answer
        found = list(
            dict.fromkeys(
                f"- {call_text(each.call)} → {shorten(each.content, 200)}"
                for each in self.observations
            )
        )
        known = "\n".join(["Known so far:", *found]) if found else "Nothing was found out."
        return f"No answer. {self.detail}\n{known}\nMissing: the answer to the task."

    def __repr__(self) -> str:
        warning = [self.detail] if self.answer is not None and self.detail else []
        return "\n".join([self.partial, *warning, f"[{self.stop_reason} · {self.summary()}]"])

    def summary(self) -> str:
        """Steps, tokens and origin in one line."""
        origins = sorted({event.reply.origin for event in self.trace.of(Replied)})
        counts = [count(self.steps, "step"), count(self.tokens, "token")]
        return " · ".join([*counts, ", ".join(origins)] if origins else counts)
