"""What a check says: right, not yet, or not attempted, with a sentence about why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

# For each state: .ok, icon, word, and the theme's colour with a fallback for pages without theme.
# The icon and the word say it all; colour only repeats them.
STATES = {
    "right": (True, "✓", "Right", "var(--jp-success-color1, #2e7d32)"),
    "partly": (False, "◐", "Partly right", "var(--jp-warn-color1, #b26a00)"),
    "wrong": (False, "✗", "Not yet", "var(--jp-error-color1, #c62828)"),
    "open": (None, "○", "Not attempted", "var(--jp-border-color1, #8a8a8a)"),
    "hint": (None, "➜", "Hint", "var(--jp-info-color1, #0277bd)"),
    "note": (None, "•", "Prediction", "var(--jp-info-color1, #0277bd)"),
}


@dataclass(frozen=True)
class Feedback:
    """The outcome of a check as data, as text and as HTML.

    `ok` is True (right), False (partly or not) or None (not attempted, a hint, a prediction).

    >>> Feedback("right", "Both dates agree.", "01.1")
    ✓ Right (01.1): Both dates agree.
    """

    state: str
    message: str
    exercise_id: str = ""

    @property
    def ok(self) -> bool | None:
        return STATES[self.state][0]

    def about(self, exercise_id: str) -> Feedback:
        """The same feedback with the id of its exercise."""
        return replace(self, exercise_id=exercise_id)

    def _heading(self) -> str:
        _, icon, word, _ = STATES[self.state]
        return f"{icon} {word} ({self.exercise_id})" if self.exercise_id else f"{icon} {word}"

    def __repr__(self) -> str:
        return f"{self._heading()}: {self.message}"

    def _repr_html_(self) -> str:
        colour = STATES[self.state][3]
        return (
            f'<div role="status" style="border-left: 4px solid {colour}; padding: 4px 10px; '
            'color: var(--jp-ui-font-color1, inherit); white-space: pre-wrap">'
            f"<strong>{escape(self._heading())}</strong>: {escape(self.message)}</div>"
        )


def right(message: str) -> Feedback:
    """The answer is right; say why."""
    return Feedback("right", message)


def partly(message: str) -> Feedback:
    """A part of the answer is right; say which, and what is missing."""
    return Feedback("partly", message)


def wrong(message: str) -> Feedback:
    """The answer is not right yet; say what is wrong with this one."""
    return Feedback("wrong", message)
