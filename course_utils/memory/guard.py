"""Only the model's answer belongs in the memory: refuse whatever else got into a reply."""

from __future__ import annotations

import re

from course_utils.errors import CourseError
from course_utils.parsing import parse

# All control tokens of the course's models are written like this: <|im_start|>, <|fim_prefix|> …
CONTROL_TOKEN = re.compile(r"<\|[a-z_]+\|>")
OPENER = "<|im_start|>"
TOOL_MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


class NotAnAnswer(CourseError):
    """A reply that must not be stored as the assistant's message."""


def checked_answer(text: str, prompt: str | None = None) -> str:
    """The text itself, if it is an answer and nothing else.

    Raises NotAnAnswer if it begins with the `prompt` that it replies to (a pipeline that returns
    the full text does that), holds control tokens of the template, is a tool call (a broken one
    too) or a tool's result, or is empty. Raises CourseError for what is no text.

    >>> checked_answer("Your name is Bob.")
    'Your name is Bob.'
    """
    for given in (text, prompt or ""):
        if not isinstance(given, str):
            raise CourseError(
                f"An answer and its prompt are texts, not a {type(given).__name__}: pass "
                "reply.text, and model.render(messages) for the prompt."
            )
    if prompt and text.startswith(prompt):
        raise NotAnAnswer(
            f"The reply begins with its whole prompt ({len(prompt)} of {len(text)} characters). "
            "Set return_full_text=False on the pipeline, and store the answer only."
        )
    found = CONTROL_TOKEN.findall(text)
    if found:
        # The one that opens a message does the most harm, so it is named first.
        token = OPENER if OPENER in found else found[0]
        raise NotAnAnswer(
            f"The reply holds the control token {token}: stored, it would open or close a "
            "message inside a message. Decode without special tokens."
        )
    if parse(text).calls:
        raise NotAnAnswer(
            "The reply is a tool call, not an answer: run it, and store call and result as such."
        )
    for mark in TOOL_MARKS:
        if mark in text:
            raise NotAnAnswer(
                f"The reply holds {mark}: a broken tool call or a tool's result is no answer. "
                "Keep it in the trace, and ask again."
            )
    if not text.strip():
        raise NotAnAnswer("The reply is empty: ask again instead of storing it.")
    return text
