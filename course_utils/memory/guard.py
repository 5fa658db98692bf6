"""Only the model's answer belongs in the memory: refuse whatever else got into a reply."""

from __future__ import annotations

from course_utils.errors import CourseError
from course_utils.parsing import parse

CONTROL_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


class NotAnAnswer(CourseError):
    """A reply that must not be stored as the assistant's message."""


def checked_answer(text: str, prompt: str | None = None) -> str:
    """The text itself, if it is an answer and nothing else.

    Raises NotAnAnswer if it begins with the `prompt` that it replies to (a pipeline that returns
    the full text does that), holds control tokens of the template, is a tool call, or is empty.

    >>> checked_answer("Your name is Bob.")
    'Your name is Bob.'
    """
    if prompt and text.startswith(prompt):
        raise NotAnAnswer(
            f"The reply begins with its whole prompt ({len(prompt)} of {len(text)} characters). "
            "Set return_full_text=False on the pipeline, and store the answer only."
        )
    for token in CONTROL_TOKENS:
        if token in text:
            raise NotAnAnswer(
                f"The reply holds the control token {token}: stored, it would open or close a "
                "message inside a message. Decode without special tokens."
            )
    if parse(text).calls:
        raise NotAnAnswer(
            "The reply is a tool call, not an answer: run it, and store call and result as such."
        )
    if not text.strip():
        raise NotAnAnswer("The reply is empty: ask again instead of storing it.")
    return text
