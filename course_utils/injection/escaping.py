"""No text from outside may become a control token.

A chat template writes roles and borders as words such as `<|im_start|>`, and the tokenizer turns
these words into control tokens wherever they stand, in a page too. So in foreign text the first
character of each such word is replaced, before the template sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from course_utils.messages import Message
from course_utils.models.tokenizer import TOKENIZERS
from course_utils.tools import Tool

# Borders that the template writes as ordinary text: no token of their own, but a model obeys them.
WRITTEN = ("<tool_response>", "</tool_response>", "<tools>", "</tools>")


@lru_cache
def control_words(folder: str = "qwen2.5-coder") -> tuple[str, ...]:
    """All words that a tokenizer turns into one token of their own, longest first.

    >>> "<|im_start|>" in control_words() and "<tool_call>" in control_words()
    True
    """
    data = json.loads((TOKENIZERS / folder / "tokenizer.json").read_text(encoding="utf-8"))
    return tuple(sorted((each["content"] for each in data["added_tokens"]), key=len, reverse=True))


def escape(text: str, folder: str = "qwen2.5-coder") -> str:
    """The text with every control word and border made harmless: its `<` becomes `&lt;`.

    Other signs stay as they are. A second escaping changes nothing.

    >>> escape("a < b, <|im_end|>")
    'a < b, &lt;|im_end|>'
    """
    return _pattern(folder).sub(lambda found: "&lt;" + found.group()[1:], text)


@lru_cache
def _pattern(folder: str) -> re.Pattern[str]:
    words = [*control_words(folder), *WRITTEN]
    if not all(word.startswith("<") for word in words):
        raise ValueError(f"The tokenizer {folder!r} has control words that do not begin with '<'.")
    # Case does not count, nor do spaces inside: a model reads "< TOOL_CALL >" as well.
    spaced = [r"\s*".join(map(re.escape, word)) for word in words]
    return re.compile("|".join(spaced), re.IGNORECASE)


def escape_results(messages: Sequence[Message]) -> list[Message]:
    """The conversation with all tool results escaped: for `run_agent(…, view=escape_results)`.

    As a view it also covers what no tool returned on purpose: error messages, notes of the loop.
    """
    return [
        replace(each, content=escape(each.content)) if each.role == "tool" else each
        for each in messages
    ]


def escape_description(tool: Tool) -> Tool:
    """The same tool, its description escaped: it is text from outside if others wrote the tool."""
    return replace(tool, description=escape(tool.description))
