"""The variant `bubblewrap`."""

from __future__ import annotations


def problem() -> str | None:
    return "bwrap is not installed"
