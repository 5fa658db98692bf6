"""What can go wrong in the world, named, so that a program can decide what to do about it."""

from __future__ import annotations

from course_utils.errors import CourseError


class WorldError(CourseError):
    """A refusal of the world: a sentence for people, a `code` for programs, a `hint` what to do.

    >>> WorldError("No invoice INV-000000.", code="invoice_not_found").code
    'invoice_not_found'
    """

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.code = code
        self.hint = hint


class BadValue(WorldError, ValueError):
    """An argument that cannot be right. It is also a ValueError, as in plain Python."""


class NotFound(WorldError, LookupError):
    """What was asked for does not exist."""
