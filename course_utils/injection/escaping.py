"""No text from outside may become a control token.

A chat template writes roles and borders as words such as `<|im_start|>`, and the tokenizer turns
these words into control tokens wherever they stand, in a page too. So in foreign text the first
character of each such word is replaced, before the template sees it.

Covered are the results of tools, the arguments of the model's own calls (it may have copied them
from a page), the definitions of tools, and the text that the quarantined reader is given. Not
covered are the system prompt, what the user writes or pastes, and the prose of the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

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
    The arguments of earlier calls are escaped too, in what the model is shown; the calls
    themselves have run as they were.
    """
    return [_escaped(each) for each in messages]


def _escaped(message: Message) -> Message:
    if message.role == "tool":
        return replace(message, content=escape(message.content))
    calls = [replace(each, arguments=escape_all(each.arguments)) for each in message.tool_calls]
    return replace(message, tool_calls=tuple(calls)) if calls else message


def escape_all(value: Any) -> Any:
    """A value as of JSON with every text in it escaped, keys too.

    >>> escape_all({"a": ["<|im_end|>", 1]})
    {'a': ['&lt;|im_end|>', 1]}
    """
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {escape_all(key): escape_all(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [escape_all(each) for each in value]
    return value


def escape_description(tool: Tool) -> Tool:
    """The same tool, all texts that describe it escaped: others may have written them.

    That is its description and its parameters: their names, descriptions, defaults, allowed values.
    (A tool's own name cannot hold a control word.) A parameter or an allowed value that did hold
    one is offered, and has to be called, in its escaped form; so such a tool may refuse to work.
    """
    return replace(
        tool, description=escape(tool.description), parameters=escape_all(tool.parameters)
    )
