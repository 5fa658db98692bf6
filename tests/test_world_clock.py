"""The clock always shows the course's day and refuses what is no date."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.world import Clock


def test_today_is_the_monday_of_the_course():
    clock = Clock()
    assert clock.get_current_date() == "2026-08-10"
    assert clock.get_weekday("2026-08-10") == "Monday"


def test_a_hundred_days_later_is_a_wednesday():
    clock = Clock()
    assert clock.get_future_date(100) == "2026-11-18"
    assert clock.get_weekday(clock.get_future_date(100)) == "Wednesday"


@given(st.dates())
def test_weekday_agrees_with_the_calendar(day):
    # 2024-01-01 was a Monday; counting days from there is a second way to the same answer.
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert Clock().get_weekday(day.isoformat()) == names[(day - date(2024, 1, 1)).days % 7]


@given(st.integers(-5000, 5000))
def test_future_date_counts_days(days):
    expected = date(2026, 8, 10) + timedelta(days=days)
    assert Clock().get_future_date(days) == expected.isoformat()


@pytest.mark.parametrize("text", ["tomorrow", "10.08.2026", "2026-02-30", "20260810", "", None, 5])
def test_a_bad_date_is_a_value_error_with_an_example(text):
    with pytest.raises(ValueError, match="2026-08-10|like") as caught:
        Clock().get_weekday(text)
    assert isinstance(caught.value, CourseError)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("days", ["100", 1.5, True, 10**9, None])
def test_bad_days_are_named(days):
    with pytest.raises(ValueError, match="days"):
        Clock().get_future_date(days)
