"""An outbox: the e-mails that the agent really sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from course_utils.world.effects import Effects
from course_utils.world.problems import BadValue


class Outbox:
    """Sent e-mails as rows in SQLite, in memory or in a file.

    >>> outbox = Outbox()
    >>> outbox.send("Ana", "Take a jacket.")
    'Sent to Ana.'
    >>> outbox.count()
    1
    """

    def __init__(self, path: str | Path | None = None, *, effects: Effects | None = None) -> None:
        self._effects = effects or Effects(path)

    def send(self, to: str, text: str, key: str | None = None) -> str:
        """Send an e-mail.

        Args:
            to: The name or the address of the person.
            text: The text of the e-mail.
            key: Idempotency key: repeated with the same key, the e-mail goes out once.
        """
        for name, value in (("to", to), ("text", text)):
            if not isinstance(value, str) or not value.strip():
                raise BadValue(f"{name} must be a text that is not empty.", code=f"bad_{name}")
        self._effects.record("email", {"to": to, "text": text}, key=key)
        return f"Sent to {to}."

    def send_email(self, to: str, text: str) -> str:
        """Send an e-mail to one person.

        Args:
            to: The name or the address of the person.
            text: The text of the e-mail.
        """
        # The same as send() without a key: as a tool, it is all that a model should see.
        return self.send(to, text)

    def sent(self) -> list[dict[str, Any]]:
        """Return the e-mails in the order of sending, as rows with to, text and key."""
        return [
            {name: row[name] for name in ("to", "text", "key")}
            for row in self._effects.rows("email")
        ]

    def count(self) -> int:
        """Return how many e-mails were sent."""
        return self._effects.count("email")

    def reset(self) -> None:
        """Empty the outbox (and whatever else shares its rows)."""
        self._effects.reset()
