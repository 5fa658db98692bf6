"""The one class that all pictures and tables are made of."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

BORDER = "var(--jp-border-color1, #8a8a8a)"
TEXT = "color: var(--jp-content-font-color1, inherit)"
CODE = "font-family: var(--jp-code-font-family, monospace); font-size: 0.9em"


@dataclass(frozen=True)
class View:
    """Something to look at, as HTML and as plain text that says the same.

    Joined with `+`, two views stand one below the other.

    >>> View("2 rows", "<p>2 rows</p>")
    2 rows
    """

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    def __add__(self, other: View) -> View:
        return View(f"{self.text}\n\n{other.text}", f"{self.html}\n{other.html}")


def safe(value: object) -> str:
    """Text as HTML: markup in it is shown, not obeyed."""
    return escape(str(value), quote=True)
