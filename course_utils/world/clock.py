"""A clock that always shows the same day, so that every run of the course agrees."""

from __future__ import annotations

from datetime import date, timedelta

from course_utils.world.problems import BadValue

TODAY = date(2026, 8, 10)  # a Monday
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Clock:
    """Dates seen from one fixed day. Its methods are ready to be tools.

    >>> clock = Clock()
    >>> clock.get_weekday(clock.get_future_date(100))
    'Wednesday'
    """

    def __init__(self, today: date = TODAY) -> None:
        self.today = today

    def get_current_date(self) -> str:
        """Return today's date as YYYY-MM-DD."""
        return self.today.isoformat()

    def get_future_date(self, days: int) -> str:
        """Return the date that lies the given number of days after today, as YYYY-MM-DD.

        Args:
            days: How many days after today. 0 is today, negative numbers lie in the past.
        """
        # A bool is an int to Python, but never a number of days.
        if isinstance(days, bool) or not isinstance(days, int):
            raise BadValue(f"days must be a whole number, not {days!r}.", code="bad_days")
        try:
            return (self.today + timedelta(days=days)).isoformat()
        except OverflowError as error:
            raise BadValue(
                f"{days} days from today is outside the years 1 to 9999.", code="bad_days"
            ) from error

    def get_weekday(self, date_str: str) -> str:
        """Return the English name of the weekday of a date.

        Args:
            date_str: The date, written as YYYY-MM-DD.
        """
        return WEEKDAYS[_read_date(date_str).weekday()]


def _read_date(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise BadValue(
            f"{text!r} is not a date written as YYYY-MM-DD.",
            code="bad_date",
            hint="Write it like 2026-08-10.",
        ) from error
    # Python also reads 20260810 and 2026-W33-1; the description promises one form only.
    if day.isoformat() != text:
        raise BadValue(
            f"{text!r} is not a date written as YYYY-MM-DD.",
            code="bad_date",
            hint=f"Write it like {day.isoformat()}.",
        )
    return day
