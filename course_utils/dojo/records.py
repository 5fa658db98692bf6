"""The user's own records that look-ups returned, and which of them the request means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from course_utils.approval import canonical
from course_utils.dojo import derive
from course_utils.dojo.knowledge import Source


@dataclass(frozen=True)
class Record:
    """One record: its id and name, what may be copied from it, how long it lasts (events)."""

    id: str
    content: str
    name: str
    copied: tuple[tuple[tuple[str, ...], Any], ...]  # words for the field, and what stands in it
    lasts: timedelta | None
    alone: bool  # the only result of a look-up whose arguments all come from the user


class Records:
    """The records seen so far in one run.

    Args:
        stands_in_request: Says whether a value stands in the user's request.
    """

    def __init__(self, stands_in_request: Callable[[Any], bool]) -> None:
        self._stands = stands_in_request
        self._seen: list[Record] = []

    def saw(self, source: Source, result: Any, asked_by_user: bool) -> None:
        """Keep the records of a look-up's result (JSON values)."""
        rows = [row for row in _rows(result) if source.name in row]
        for row in rows:
            self._seen.append(
                Record(
                    id=str(row.get(source.id, "")),
                    content=canonical(row),
                    name=str(row[source.name]),
                    copied=tuple(
                        (words, row[key]) for key, words in source.copied.items() if key in row
                    ),
                    lasts=_lasts(row),
                    alone=asked_by_user and len(rows) == 1,
                )
            )

    def meant(self) -> list[Record]:
        """The records that the request means: by a name that only one of them has, or alone."""
        owners: dict[str, set[str]] = {}
        for record in self._seen:
            owners.setdefault(record.name.casefold(), set()).add(record.id or record.content)
        return [
            record
            for record in self._seen
            if record.alone
            or (len(owners[record.name.casefold()]) == 1 and self._stands(record.name))
        ]

    def has_id(self, value: Any) -> bool:
        """Whether `value` is the id of a record that the request means."""
        return any(record.id == str(value) for record in self.meant() if record.id)

    def copies(self, value: Any, request: str) -> bool:
        """Whether the request names the field of a meant record in which `value` stands."""
        return any(
            derive.has_word(words, request) and value in _listed(held)
            for record in self.meant()
            for words, held in record.copied
        )

    def lasting(self, id: Any) -> set[timedelta]:
        """How long the meant record with this id lasts."""
        return {r.lasts for r in self.meant() if r.lasts is not None and r.id == str(id)}


def _rows(result: Any) -> list[Mapping[str, Any]]:
    found = result if isinstance(result, list) else [result]
    return [row for row in found if isinstance(row, Mapping)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _lasts(row: Mapping[str, Any]) -> timedelta | None:
    times = [_minutes(row.get(name)) for name in ("start_time", "end_time")]
    return None if None in times else times[1] - times[0]


def _minutes(value: Any) -> Any:
    found = re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", str(value))
    return derive.moment(found.group().replace("T", " ")) if found else None
