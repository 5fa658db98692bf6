"""How the parts of the loop say that it is over."""

from __future__ import annotations

from course_utils.agent.limits import StopReason


class Stop(Exception):
    """The run ends here: the reason, a sentence, and the exception behind it if there is one.

    Only the loop raises and catches it; it never reaches the caller.
    """

    def __init__(self, reason: StopReason, detail: str, error: Exception | None = None) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.error = reason, detail, error
