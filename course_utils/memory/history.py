"""One way to look at three kinds of messages: the course's, wire-format dicts, LangChain's.

LangChain's messages are recognised by their shape, so that this module needs no import of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    check_list(messages)
    read = [as_message(message) for message in messages]
    if not read:
        raise CourseError("The conversation is empty: there is nothing to send or to count.")
    return read


def check_list(messages: Any, method: str = "__iter__") -> None:
    """Raises CourseError if this is a single message, or nothing that has list's `method`."""
    if isinstance(messages, str | dict | Message) or hasattr(messages, "content"):
        raise CourseError("A conversation is a list of messages, not a single one: put it in [ ].")
    if not hasattr(messages, method):
        raise CourseError(f"A conversation is a list of messages, not a {type(messages).__name__}.")


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


def call_ids(message: Any) -> list[str]:
    """Ids of the calls that an assistant's message makes, read without converting the message.

    >>> call_ids({"role": "assistant", "tool_calls": [{"id": "call_1"}]})
    ['call_1']
    """
    get = message.get if isinstance(message, dict) else lambda name: getattr(message, name, None)
    calls = get("tool_calls") or ()
    return [call.id if isinstance(call, ToolCall) else call.get("id") for call in calls]


def answered_id(message: Any) -> str | None:
    """Id of the call that a tool's message answers, if it tells."""
    if isinstance(message, dict):
        return message.get("tool_call_id")
    return getattr(message, "tool_call_id", None)


def whole_tails(messages: Sequence[Any], first: int = 0) -> Iterator[int]:
    """Positions from which on no tool result lacks its call, newest first.

    Walking backwards, a result opens its id and the nearest message that makes that call closes
    it: ids may repeat in later turns (`call_1` again). A result without an id belongs to the
    nearest calls before it. A result whose call is in no message leaves no position before it.

    >>> list(whole_tails([{"role": "user"}, {"role": "tool"}, {"role": "user"}]))
    [2]
    """
    waiting: set[str | None] = set()
    for index in range(len(messages) - 1, first - 1, -1):
        role = role_of(messages[index])
        if role == "tool":
            waiting.add(answered_id(messages[index]))
        elif role == "assistant" and waiting:
            made = call_ids(messages[index])
            waiting -= {*made, None} if made else set()
        if not waiting:
            yield index


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
