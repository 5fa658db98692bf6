"""Trying again: which failures of the world may pass by themselves, and how long to wait.

The waiting is done under the agent loop, by the library tenacity: the model never sees a failure
that was over after a second. A failure that will not pass (not found, invalid, forbidden) is
never tried again.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from course_utils.errors import CourseError
from course_utils.events import Attempt

TRANSIENT_STATUS = {408, 425, 429, 502, 503, 504}


class ToolTimeout(CourseError, TimeoutError):
    """A tool did not return within the time limit that the program has set.

    It is not tried again: the limit is the patience of the program, and that is used up.
    """

    code = "timeout"
    transient = False


class ToolProcessDied(CourseError, ChildProcessError):
    """The process of a tool ended without a result."""

    code = "tool_died"


@dataclass(frozen=True)
class RetryPolicy:
    """How often to try (the first try included) and how long to wait in between, in seconds.

    The wait doubles from `first_wait_s` up to `max_wait_s`. A random part of it (between half and
    all) is waited, so that many clients do not come back at the same moment; `seed` fixes the
    random numbers. A service that says Retry-After is obeyed, unless it asks for more than
    `max_wait_s`: then there is no further try (source: Brooker, "Exponential Backoff And Jitter",
    2015).

    >>> RetryPolicy(attempts=1)   # never try again
    RetryPolicy(attempts=1, first_wait_s=0.5, max_wait_s=8.0, seed=0)
    """

    attempts: int = 3
    first_wait_s: float = 0.5
    max_wait_s: float = 8.0
    seed: int | None = 0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.first_wait_s <= self.max_wait_s:
            raise CourseError(
                "A retry policy needs attempts of 1 or more, and 0 <= first_wait_s <= max_wait_s."
            )


def is_transient(error: BaseException) -> bool:
    """Whether trying again can help.

    An error's own attribute `transient` decides; then time-outs and broken connections; then an
    HTTP status (`status`, `status_code` or `response.status_code`) of 408, 425, 429, 502, 503, 504.

    >>> is_transient(ConnectionResetError()), is_transient(FileNotFoundError())
    (True, False)
    """
    own = getattr(error, "transient", None)
    if isinstance(own, bool):
        return own
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    httpx = sys.modules.get("httpx")  # not loaded: then the error is none of its errors
    if httpx and isinstance(error, httpx.TransportError):
        return True
    return status_of(error) in TRANSIENT_STATUS


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, if any."""
    response = getattr(error, "response", None)
    for holder, name in (
        (error, "status"),
        (error, "status_code"),
        (error, "code"),
        (response, "status_code"),
    ):
        value = getattr(holder, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def retry_after(error: BaseException, now: datetime | None = None) -> float | None:
    """The seconds that a service asks to wait: the error's `retry_after`, or its header.

    The header is a number of seconds or a date (RFC 9110, section 10.2.3).
    """
    value = getattr(error, "retry_after", None)
    if value is None:
        headers = getattr(error, "headers", None) or getattr(
            getattr(error, "response", None), "headers", None
        )
        value = headers.get("Retry-After") if headers is not None else None
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        pass
    try:
        when = parsedate_to_datetime(str(value))
    except ValueError:
        return None  # neither form: as if the header were not there
    if when.tzinfo is None:  # a date without a zone, or with the zone -0000
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def call_with_retry(
    function: Callable[[], Any],
    policy: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
    *,
    sleep: Callable[[float], None] = time.sleep,
    failed: list[Attempt] | None = None,
    time_left: Callable[[], float] = lambda: float("inf"),
    when: Callable[[BaseException], bool] = is_transient,
) -> Any:
    """Call a function, again if its failure is transient, and return what it returns.

    `when` decides which failures are. `failed` collects the tries that failed. `time_left` gives
    the seconds that the caller still has: a wait longer than that is not begun. Raises the last
    error.

    >>> call_with_retry(lambda: 7)
    7
    """
    try:
        return function()
    except Exception as error:
        if policy.attempts == 1 or not when(error):
            raise
        first = error
    # Only now tenacity (loading it and setting it up costs more than most calls do). It begins
    # with the failure that has just happened, in place of a try of its own.
    failed = [] if failed is None else failed
    return _retrying(function, first, policy, sleep, failed, time_left, when)


def _retrying(
    function: Callable[[], Any],
    first: Exception,
    policy: RetryPolicy,
    sleep: Callable[[float], None],
    failed: list[Attempt],
    time_left: Callable[[], float],
    when: Callable[[BaseException], bool],
) -> Any:
    import tenacity

    chance = random.Random(policy.seed)
    begin = [first]

    def again() -> Any:
        if begin:
            raise begin.pop()
        return function()

    def wait(state: tenacity.RetryCallState) -> float:
        asked = retry_after(state.outcome.exception())
        if asked is not None:
            return asked
        longest = min(policy.max_wait_s, policy.first_wait_s * 2 ** (state.attempt_number - 1))
        return longest * chance.uniform(0.5, 1.0)

    def give_up(state: tenacity.RetryCallState) -> bool:
        return state.upcoming_sleep > min(policy.max_wait_s, time_left())

    def note(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception()
        failed.append(Attempt(error_code(error), round(state.upcoming_sleep, 3)))

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(when),
        stop=tenacity.stop_any(tenacity.stop_after_attempt(policy.attempts), give_up),
        wait=wait,
        sleep=sleep,
        before_sleep=note,
        reraise=True,
    )(again)


def error_code(error: BaseException) -> str:
    """The name of an error for a program: its `code` if that is text, or its class.

    >>> error_code(FileNotFoundError("x"))
    'file_not_found_error'
    """
    code = getattr(error, "code", None)
    if isinstance(code, str) and code:
        return code
    name = type(error).__name__
    parts = [f"_{letter}" if letter.isupper() else letter for letter in name]
    return "".join(parts).lower().strip("_")
