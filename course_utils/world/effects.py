"""Where every side effect of the world becomes a row in SQLite.

Attacks, duplicates and crashes are judged by what happened, and what happened is what stands
here. The idempotency key is handled in this one place: the same key a second time returns the
first row and writes nothing.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.world.problems import WorldError

SCHEMA = """
CREATE TABLE IF NOT EXISTS effects (
    number INTEGER PRIMARY KEY,
    effect TEXT NOT NULL,
    data   TEXT NOT NULL,
    key    TEXT,
    UNIQUE (effect, key)
)"""


class Effects:
    """The rows of all side effects, in memory or in a file that outlives the process.

    >>> effects = Effects()
    >>> for attempt in (1, 2):
    ...     row = effects.record("email", {"to": "Ana"}, key="k1")
    >>> effects.count("email")
    1
    """

    def __init__(self, path: str | Path | None = None) -> None:
        try:
            # Tools may run in a worker thread (per-tool timeouts need one), hence the lock.
            self._db = sqlite3.connect(
                str(path or ":memory:"), isolation_level=None, check_same_thread=False
            )
            self._db.execute(SCHEMA)
        except sqlite3.Error as error:
            raise CourseError(
                f"The file {str(path)!r} cannot hold the world's rows ({error}): "
                "choose a new file name in a folder that exists."
            ) from error
        self._lock = threading.RLock()

    def record(self, effect: str, data: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """Write one side effect and return its row.

        Args:
            effect: The kind, such as "email" or "payment".
            data: JSON values that say what happened.
            key: Idempotency key. A second effect of this kind with the same key and the same data
                is not written; the first row comes back.

        Raises:
            WorldError: The key was used before for something else.
        """
        text = json.dumps(data, ensure_ascii=False, sort_keys=True)
        with self._lock:
            # One statement decides and writes, so two threads cannot both be the first.
            self._db.execute(
                "INSERT INTO effects (effect, data, key) VALUES (?, ?, ?) "
                "ON CONFLICT (effect, key) DO NOTHING",
                (effect, text, key),
            )
            where, values = ("effect = ? AND key = ?", (effect, key))
            if key is None:
                where, values = ("number = last_insert_rowid()", ())
            row = self._select(where, values)[0]
        if {name: row[name] for name in data} != json.loads(text):
            raise WorldError(
                f"The key {key!r} already belongs to another {effect}.",
                code="key_reused",
                hint="Use a new key for a new action, and the same key only to try again.",
            )
        return row

    def rows(self, effect: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of one kind, oldest first; of all kinds, sorted by kind, if None."""
        if effect is None:
            return self._select("1 ORDER BY effect, number", ())
        return self._select("effect = ? ORDER BY number", (effect,))

    def count(self, effect: str | None = None) -> int:
        """Return how many rows of one kind (or of all kinds) there are."""
        return len(self.rows(effect))

    def reset(self) -> None:
        """Forget everything."""
        with self._lock:
            self._db.execute("DELETE FROM effects")

    def close(self) -> None:
        """Close the file; rows in memory are gone."""
        self._db.close()

    def _select(self, where: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        with self._lock:
            found = self._db.execute(
                f"SELECT number, effect, data, key FROM effects WHERE {where}", values
            ).fetchall()
        return [
            {"effect": effect, "number": number, **json.loads(data), "key": key}
            for number, effect, data, key in found
        ]
