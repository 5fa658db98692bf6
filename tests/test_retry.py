"""Trying again, mostly against a real server on a real socket."""

import os
import time
from datetime import UTC, datetime

import httpx
import pytest
from agent_kit import asks, fault, says

from course_utils.agent import Limits, killable, run_agent
from course_utils.errors import CourseError
from course_utils.models import scripted
from course_utils.retry import (
    RetryPolicy,
    ToolTimeout,
    call_with_retry,
    error_code,
    is_transient,
    retry_after,
)
from course_utils.tools import Tool, tool
from course_utils.trace import Attempt, Observed
from course_utils.world.weather import STALL, WeatherService


@pytest.fixture
def service():
    with WeatherService(timeout_s=0.3) as service:
        yield service


ASK = ("get_weather", {"city": "Moscow"})


def ask_weather(service, **options):
    """One question through the whole loop: the run, its one observation, the waits."""
    waits = []
    done = run_agent(
        scripted([asks(ASK), says("Done.")]),
        [tool(service.get_weather)],
        "Weather?",
        sleep=waits.append,
        **options,
    )
    return done, next(done.trace.of(Observed)), waits


@pytest.mark.parametrize("status", [503, 429, 502, STALL])
def test_a_passing_failure_is_waited_out_and_the_model_never_sees_it(service, status):
    service.fail_next(2, status)
    done, seen, waits = ask_weather(service)
    assert len(service.log) == 3 and len(waits) == 2
    assert seen.ok and '"temp_c": 2' in seen.content and not seen.note
    assert [attempt.waited_s for attempt in seen.attempts] == [round(wait, 3) for wait in waits]
    assert done.answer == "Done."


@pytest.mark.parametrize("status", [404, 400, 403])
def test_a_lasting_failure_is_not_tried_again(service, status):
    service.fail_next(1, status)
    _, seen, waits = ask_weather(service)
    assert len(service.log) == 1 and waits == [] and not seen.ok


def test_tries_are_bounded_and_then_the_model_is_told(service):
    service.fail_always(503)
    done, seen, waits = ask_weather(service)
    assert len(service.log) == 3 and len(waits) == 2
    assert fault(done.trace.messages[-2]) == "unavailable"
    assert [attempt.error for attempt in seen.attempts] == ["unavailable"] * 3


def test_retry_after_is_honoured_exactly(service):
    service.fail_next(1, 429, retry_after=3)
    assert ask_weather(service)[2] == [3.0]


def test_a_service_that_asks_for_too_much_patience_gets_no_second_try(service):
    service.fail_next(1, 429, retry_after=3600)
    done, seen, waits = ask_weather(service)
    assert len(service.log) == 1 and waits == []
    assert fault(done.trace.messages[-2]) == "rate_limited"


def test_no_wait_goes_beyond_the_time_of_the_run(service):
    service.fail_next(1, 429, retry_after=7)
    limits = Limits(max_seconds=6, tool_seconds=None)
    assert ask_weather(service, limits=limits)[2] == []
    service.reset()
    service.fail_next(1, 429, retry_after=7)
    assert ask_weather(service, limits=Limits(max_seconds=60))[2] == [7.0]


def test_a_connection_that_nobody_answers(service):
    url = service.url
    service.stop()
    from course_utils.world.weather import get_weather as ask

    def get_weather(city: str) -> dict:
        return ask(city, url)

    weather = Tool("get_weather", "Weather.", None, lambda: get_weather("Moscow"))
    waits = []
    script = [asks(("get_weather", {})), says("Down.")]
    done = run_agent(scripted(script), [weather], "Weather?", sleep=waits.append)
    assert len(waits) == 2 and fault(done.trace.messages[-2]) == "unreachable"


def test_a_plain_httpx_tool_works_too(service):
    """A tool that lets the errors of its HTTP library through."""
    service.fail_next(1, 503, retry_after=2)
    service.fail_next(1, STALL)

    def get(path: str) -> str:
        with httpx.Client(timeout=0.3, trust_env=False) as client:
            return client.get(service.url + path).raise_for_status().text

    waits = []
    text = call_with_retry(lambda: get("/weather?city=Paris"), sleep=waits.append)
    assert "Paris" in text and waits[0] == 2.0 and len(waits) == 2
    with pytest.raises(httpx.HTTPStatusError):
        call_with_retry(lambda: get("/weather?city=Nowhere"), sleep=waits.append)
    assert len(waits) == 2


def test_a_write_without_a_key_is_tried_again_only_if_it_was_surely_refused(service):
    def book() -> str:
        return str(service.get_weather("Moscow"))

    def run(status, retry_after=None):
        service.reset()
        service.fail_next(1, status, retry_after)
        write = Tool("book", "Book.", None, book, "irreversible")
        script = scripted([asks(("book", {})), says("Done.")])
        done = run_agent(script, [write], "Book.", sleep=lambda seconds: None)
        return len(service.log), next(done.trace.of(Observed)).happened

    assert run(429) == (2, "yes")
    assert run(503, retry_after=1) == (2, "yes")
    assert run(503) == (1, "unknown")
    assert run(STALL) == (1, "unknown")
    assert run(400) == (1, "no")


# -- without a server ------------------------------------------------------------------------------


def fails(times, error):
    left = [error] * times

    def function():
        if left:
            raise left.pop()
        return "ok"

    return function


def waits_of(policy, times=9):
    waits = []
    with pytest.raises(TimeoutError):
        call_with_retry(fails(times, TimeoutError()), policy, sleep=waits.append)
    return waits


def test_waits_grow_are_bounded_and_spread():
    policy = RetryPolicy(attempts=7, first_wait_s=1, max_wait_s=8, seed=1)
    waits = waits_of(policy)
    assert len(waits) == 6
    for wait, longest in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert longest / 2 <= wait <= longest
    assert waits != waits_of(RetryPolicy(7, 1, 8, seed=2)) and waits == waits_of(policy)


def test_the_failed_tries_are_noted_and_one_attempt_means_no_retry():
    failed = []
    policy = RetryPolicy(attempts=5)
    result = call_with_retry(
        fails(2, TimeoutError()), policy, sleep=lambda seconds: None, failed=failed
    )
    assert result == "ok" and [each.error for each in failed] == ["timeout_error"] * 2
    assert isinstance(failed[0], Attempt)
    assert waits_of(RetryPolicy(attempts=1)) == []
    with pytest.raises(CourseError):
        RetryPolicy(attempts=0)


class Says(Exception):
    def __init__(self, **parts):
        self.__dict__.update(parts)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), True),
        (ToolTimeout("x"), False),
        (ConnectionResetError(), True),
        (httpx.ReadTimeout("x"), True),
        (httpx.ConnectError("x"), True),
        (Says(status=429), True),
        (Says(status_code=503), True),
        (Says(status=503, transient=False), False),
        (Says(transient=True), True),
        (Says(status=404), False),
        (Says(status=500), False),
        (Says(code="timeout"), False),
        (ValueError(), False),
        (PermissionError(), False),
        (CourseError("x"), False),
    ],
)
def test_what_may_pass_by_itself(error, expected):
    assert is_transient(error) is expected


def test_retry_after_in_all_its_forms():
    now = datetime(2026, 8, 10, 12, 0, 0, tzinfo=UTC)

    def header(value):
        return retry_after(Says(headers={"Retry-After": value}), now)

    assert header("7") == 7.0
    assert header("Mon, 10 Aug 2026 12:00:30 GMT") == 30.0
    assert header("Mon, 10 Aug 2026 11:00:00 GMT") == 0.0
    assert header("Mon, 10 Aug 2026 12:00:30 -0000") == header("Mon, 10 Aug 2026 12:00:30") == 30.0
    assert header("soon") is None and header("-5") == 0.0
    assert retry_after(Says(retry_after=2)) == 2.0 and retry_after(ValueError()) is None


def test_errors_have_names_for_programs():
    assert error_code(Says(code="bad_date")) == "bad_date"
    assert error_code(ZeroDivisionError()) == "zero_division_error"
    assert error_code(Says(code=5)) == "says"


def test_the_time_limit_of_a_tool_is_for_all_its_tries_together(service):
    """0.3 s a try until the tool itself gives up: 0.5 s are enough for one and a half."""
    service.fail_always(STALL)
    began = time.monotonic()
    limits, retry = Limits(tool_seconds=0.5), RetryPolicy(first_wait_s=0)
    done, seen, _ = ask_weather(service, limits=limits, retry=retry)
    assert time.monotonic() - began < 1.5 and len(service.log) == 2
    assert fault(done.trace.messages[-2]) == "timeout" and not seen.ok


def test_a_write_whose_process_died_is_unknown(service):
    write = Tool("write", "Write.", None, killable(seconds=20)(lambda: os._exit(1)), "reversible")
    script = scripted([asks(("write", {})), says("?")])
    done = run_agent(script, [write], "Go")
    assert next(done.trace.of(Observed)).happened == "unknown"
