"""The limits of a run, and the names of the reasons to stop."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from course_utils.errors import CourseError
from course_utils.messages import Reply


class StopReason(StrEnum):
    """Why a run stopped."""

    ANSWER = "answer"  # the model answered
    EMPTY = "empty_reply"  # the model replied with nothing
    UNSUPPORTED = "unsupported_answer"  # the model answered, and the program refuses the answer
    MAX_STEPS = "max_steps"
    TOKENS = "token_budget"
    MONEY = "money_budget"
    TIME = "wall_clock"
    REPEATS = "repeats"
    DENIED = "denied"  # a person, or the rules, said no for good
    ERROR = "error"  # the model could not be asked
    WAITING = "waiting_for_approval"  # resume after a decision
    UNKNOWN = "unknown_effect"  # resume after somebody has looked


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any one currency: read anew, read from cache, written.

    >>> round(Prices(2.0, 0.2, 8.0).cost(Reply("", "scripted", "m", prompt_tokens=1000)), 6)
    0.002
    """

    read: float
    cached: float
    written: float

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise CourseError(f"The price {each.name} must be 0 or more, not {value!r}.")

    def cost(self, reply: Reply) -> float:
        """The price of one call of the model."""
        fresh = reply.prompt_tokens - reply.cached_tokens
        total = (
            fresh * self.read
            + reply.cached_tokens * self.cached
            + reply.output_tokens * self.written
        )
        return total / 1_000_000


@dataclass(frozen=True)
class Limits:
    """Where a run ends at the latest. None switches a limit off.

    Args:
        max_steps: Calls of the model.
        max_tokens: Tokens read and written, over all steps.
        max_cost: Money, in the currency of `prices`.
        prices: What tokens cost; needed by `max_cost`.
        max_seconds: Wall-clock time of the run.
        max_repeats: How often the same call may give the same result; one more stops the run.
        max_result_chars: Longest result of a tool that the model is given.
        tool_seconds: Longest wait for a call of a tool, all tries together (see
            `course_utils.agent.worker`).

    A limit is checked before each call of the model, so it is exceeded by one call at most.

    >>> Limits(max_steps=3).max_steps
    3
    """

    max_steps: int = 10
    max_tokens: int | None = 50_000
    max_cost: float | None = None
    prices: Prices | None = None
    max_seconds: float | None = 600.0
    max_repeats: int | None = 2
    max_result_chars: int | None = 8_000
    tool_seconds: float | None = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "prices" or value is None and each.name != "max_steps":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise CourseError(f"The limit {each.name} must be above 0, not {value!r}.")
        if self.max_cost is not None and self.prices is None:
            raise CourseError("A limit max_cost needs `prices`, for example Prices(2.0, 0.2, 8.0).")
