"""A picture maker: what it was asked for becomes a row, and the picture is a card with that text.

No image is generated here, and the card does not pretend to be one. An agent that makes pictures
is judged by the prompt that the maker received, and the prompt is what the row and the card show.
"""

from __future__ import annotations

import textwrap
from html import escape
from pathlib import Path
from typing import Any

from course_utils.world.effects import Effects
from course_utils.world.problems import BadValue, NotFound

LINE = 50  # characters of the prompt in one line of a card


class PictureMaker:
    """Pictures asked for, as rows in SQLite, in memory or in a file.

    >>> pictures = PictureMaker()
    >>> pictures.make_picture("A red kite over the sea")
    'picture_1'
    >>> pictures.made()
    [{'picture': 'picture_1', 'prompt': 'A red kite over the sea'}]
    """

    def __init__(self, path: str | Path | None = None, *, effects: Effects | None = None) -> None:
        self._effects = effects or Effects(path)

    def make_picture(self, prompt: str) -> str:
        """Make a picture from a description and return its name.

        Args:
            prompt: What the picture shows.
        """
        if not isinstance(prompt, str) or not prompt.strip():
            raise BadValue("prompt must be a text that is not empty.", code="bad_prompt")
        row = self._effects.record("picture", {"prompt": prompt})
        before = [other for other in self._rows() if other["number"] < row["number"]]
        return f"picture_{len(before) + 1}"

    def made(self) -> list[dict[str, Any]]:
        """Return the pictures in the order of asking, as rows with picture and prompt."""
        return [
            {"picture": f"picture_{number}", "prompt": row["prompt"]}
            for number, row in enumerate(self._rows(), start=1)
        ]

    def count(self) -> int:
        """Return how many pictures were made."""
        return len(self._rows())

    def card(self, picture: str) -> str:
        """Return a picture as SVG text: a card that carries the prompt it was made from.

        Raises:
            NotFound: There is no picture of that name.
        """
        prompts = {row["picture"]: row["prompt"] for row in self.made()}
        if picture not in prompts:
            raise NotFound(f"There is no picture {picture!r}.", code="picture_not_found")
        return _card(picture, prompts[picture])

    def _rows(self) -> list[dict[str, Any]]:
        return self._effects.rows("picture")


def _card(name: str, prompt: str) -> str:
    lines = textwrap.wrap(prompt, LINE, max_lines=14, placeholder=" …") or [""]
    height = 58 + 20 * len(lines)
    # The colours come from the page, so that the card is readable in light and dark themes.
    ink = "var(--jp-ui-font-color1, #222)"
    text = " ".join(  # spaces for those who see the text without the picture
        f'<text x="16" y="{58 + 20 * row}" font-size="14" fill="{ink}">{escape(line)}</text>'
        for row, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 {height}" width="400" '
        f'role="img" aria-label="{escape(f"Card of {name}, asked for as: {prompt}")}" '
        'font-family="sans-serif">'
        f'<rect x="1" y="1" width="398" height="{height - 2}" rx="8" '
        'fill="var(--jp-layout-color2, #eee)" stroke="var(--jp-border-color1, #999)"/>'
        f'<text x="16" y="28" font-size="12" fill="{ink}">{escape(name)}: asked for as</text> '
        f"{text}</svg>"
    )
