"""One way to look at three kinds of messages: the course's, wire-format dicts, LangChain's.

LangChain's messages are recognised by their shape, so that this module needs no import of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Message, ToolCall

# The names that LangChain gives to the roles, for whole messages and for streamed pieces.
LANGCHAIN_ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
}


def as_message(message: Any) -> Message:
    """A message of any of the three kinds as a course Message.

    Raises CourseError for anything else, and for content that is not text (pictures, for example).

    >>> as_message({"role": "user", "content": "Hi"}).role
    'user'
    """
    if isinstance(message, Message):
        return message
    if isinstance(message, dict):
        return Message.from_dict(message)
    if not hasattr(message, "type") or not hasattr(message, "content"):
        raise CourseError(
            f"A message is a Message, a dict with 'role' and 'content', or a LangChain message, "
            f"not a {type(message).__name__}."
        )
    calls = tuple(
        ToolCall(call["id"] or f"call_{number}", call["name"], call["args"])
        for number, call in enumerate(getattr(message, "tool_calls", None) or (), 1)
    )
    return Message(
        role_of(message),
        _text(message.content),
        tool_calls=calls,
        tool_call_id=getattr(message, "tool_call_id", None),
        name=message.name,
    )


def as_messages(messages: Iterable[Any]) -> list[Message]:
    """A conversation as course Messages; raises CourseError if it is empty or no list."""
    if isinstance(messages, str | dict | Message) or hasattr(messages, "content"):
        raise CourseError("A conversation is a list of messages, not a single one: put it in [ ].")
    read = [as_message(message) for message in messages]
    if not read:
        raise CourseError("The conversation is empty: there is nothing to send or to count.")
    return read


def role_of(message: Any) -> str:
    """system, user, assistant or tool.

    >>> role_of({"role": "tool", "content": "2"})
    'tool'
    """
    if isinstance(message, dict):
        return message.get("role", "")
    if isinstance(message, Message):
        return message.role
    kind = getattr(message, "type", "")
    role = LANGCHAIN_ROLES.get(kind) or getattr(message, "role", None)
    if role is None:
        raise CourseError(f"A LangChain message of type {kind!r} has no place in a chat prompt.")
    return role


def with_content(message: Any, text: str) -> Any:
    """A copy of a message of any kind with another text; the original is left as it is."""
    if isinstance(message, Message):
        return replace(message, content=text)
    if isinstance(message, dict):
        return {**message, "content": text}
    return message.model_copy(update={"content": text})


def call_positions(messages: Sequence[Any]) -> list[int]:
    """For every message, the position of the call that it answers.

    That is its own position for anything but a tool result, and -1 for a result whose call is not
    in the history. Ids may repeat in later turns (`call_1` again), so the nearest call before the
    result counts.

    >>> call_positions([{"role": "user", "content": "Hi"}, {"role": "tool", "content": "2"}])
    [0, -1]
    """
    positions, latest = [], {}
    last_caller = -1
    for index, message in enumerate(messages):
        role = role_of(message)
        if role == "assistant":
            read = as_message(message)
            for call in read.tool_calls:
                latest[call.id] = index
                last_caller = index
        if role == "tool":
            read = as_message(message)
            # A result without an id can only belong to the calls just before it.
            known = last_caller if read.tool_call_id is None else latest.get(read.tool_call_id, -1)
            positions.append(known)
        else:
            positions.append(index)
    return positions


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    pieces = []
    for block in content:
        if isinstance(block, str):
            pieces.append(block)
        elif isinstance(block, dict) and block.get("type") == "text":
            pieces.append(block["text"])
        else:
            kind = block.get("type") if isinstance(block, dict) else type(block).__name__
            raise CourseError(f"The model reads text only; a message holds a block of type {kind}.")
    return "".join(pieces)
