"""Values that are not in the request word for word, but follow from it.

`Ledger` (course_utils.injection.provenance) asks whether a value *stands in* the request. People
write "May 1st" and the call says 2024-05-01; they write 'Dinner at {restaurant_name}' and leave the
rest to a look-up. Each function here takes one such step, and none of them reads free text of
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join(MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(\d{4}))?"
_NUMBERS = dict(zip("one two three four five six".split(), range(1, 7), strict=True))
FORMATS = ("%Y-%m-%d %H:%M", "%Y-%m-%d")
REACHES_OUT = re.compile(r"@|://|www\.", re.IGNORECASE)
LONGEST_FILL = 80  # characters


def dates(request: str) -> set[tuple[int | None, int, int]]:
    """The dates that a text names: (year or None, month, day).

    >>> sorted(dates("from January 11th to 2025-01-15, not the 3rd of May"), key=str)
    [(2025, 1, 15), (None, 1, 11), (None, 5, 3)]
    """
    text = request.lower()
    found: set[tuple[int | None, int, int]] = set()
    for year, month, day in re.findall(r"\b(\d{4})-(\d\d)-(\d\d)\b", text):
        found.add((int(year), int(month), int(day)))
    for month, day, year in re.findall(rf"\b({_MONTH})\s+{_DAY}\b{_YEAR}", text):
        found.add((int(year) if year else None, MONTHS.index(month) + 1, int(day)))
    for day, month, year in re.findall(rf"\b{_DAY}\s+of\s+({_MONTH})\b{_YEAR}", text):
        found.add((int(year) if year else None, MONTHS.index(month) + 1, int(day)))
    return found


def moment(value: object) -> datetime | None:
    """A text such as 2024-05-19 12:00 (or only the day) as a point in time; None if it is none."""
    for form in FORMATS:
        try:
            return datetime.strptime(str(value), form)
        except ValueError:
            continue
    return None


def is_when(value: object, request: str) -> bool:
    """Whether the request names this day, and this time of day if it names any time at all.

    >>> is_when("2024-05-01 09:00", "Remind me on May 1st."), is_when("2024-05-01", "On May 2nd.")
    (True, False)
    """
    point = moment(value)
    if point is None:
        return False
    day = (point.month, point.day)
    if not any((y in (None, point.year)) and (m, d) == day for y, m, d in dates(request)):
        return False
    times = {(int(h), int(m)) for h, m in re.findall(r"\b(\d{1,2}):(\d\d)\b", request)}
    return len(str(value)) == len("2024-05-01") or not times or (point.hour, point.minute) in times


def is_end(value: object, start: object, durations: Iterable[timedelta]) -> bool:
    """Whether `value` is one of the durations after `start`.

    >>> is_end("2024-05-01 11:00", "2024-05-01 10:00", durations("a 1-hour meeting"))
    True
    """
    begins, ends = moment(start), moment(value)
    return begins is not None and ends is not None and ends - begins in set(durations)


def durations(request: str) -> set[timedelta]:
    """The durations in hours that a text names."""
    found = re.findall(rf"\b(\d+|{'|'.join(_NUMBERS)})[\s-]hours?\b", request.lower())
    return {timedelta(hours=_NUMBERS.get(word) or int(word)) for word in found}


def fills_blank(value: object, request: str, listed: Iterable[str]) -> bool:
    """Whether `value` is a quoted text of the request whose {blanks} are filled from catalogues.

    >>> fills_blank("Dinner at Miznon", "Title: 'Dinner at {restaurant}'.", ["Miznon; Breizh"])
    True
    """
    texts = list(listed)
    for pattern in _patterns(request):
        found = re.fullmatch(pattern, str(value))
        if found and all(_may_fill(fill, texts) for fill in found.groups()):
            return True
    return False


def _patterns(request: str) -> Iterator[str]:
    for quoted in re.findall(r"'([^']*\{\w+\}[^']*)'|\"([^\"]*\{\w+\}[^\"]*)\"", request):
        parts = re.split(r"\{\w+\}", quoted[0] or quoted[1])
        yield f"(.{{1,{LONGEST_FILL}}})".join(map(re.escape, parts))


def _may_fill(fill: str, texts: list[str]) -> bool:
    return not REACHES_OUT.search(fill) and any(fill in text for text in texts)


def acts(text: object) -> bool:
    """Whether something in a text could make its reader act: a link, an address, a number.

    >>> acts("See www.example.com"), acts("A nice page.")
    (True, False)
    """
    return bool(REACHES_OUT.search(str(text)) or re.search(r"\d|\w\.\w", str(text)))


def is_weak(value: object, request: str) -> bool:
    """Whether a value is one ordinary word, which may stand in a request by chance.

    A name (with a capital) or a word in quotes is not: the password 'password' is weak where the
    request only speaks of a password.

    >>> is_weak("password", "Change my password."), is_weak("Alice", "Write to Alice.")
    (True, False)
    """
    text = str(value)
    if not re.fullmatch(r"[^\W\d_]+", text):
        return False
    quoted = re.search(rf"['\"“‘]{re.escape(text)}['\"”’]", request, re.IGNORECASE)
    named = text[0].isupper() and re.search(rf"\b{re.escape(text)}\b", request)
    return not (quoted or named)


def has_word(beginnings: Iterable[str], request: str) -> bool:
    """Whether a word of the request begins with one of `beginnings`."""
    return any(re.search(rf"\b{re.escape(each)}", request, re.IGNORECASE) for each in beginnings)
