"""What travels between a program and a model: messages, calls, results and replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from course_utils.errors import CourseError

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class ToolCall:
    """One request of the model to run a function: its id, the function's name, its arguments.

    >>> ToolCall("call_1", "get_weather", {"city": "Paris"}).name
    'get_weather'
    """

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """What a call gave back, as text for the model; `call_id` says which call it answers.

    >>> ToolResult("call_1", "get_weather", '{"temp": 2}').ok
    True
    """

    call_id: str
    name: str
    content: str
    ok: bool = True


@dataclass(frozen=True)
class Message:
    """One entry of a conversation.

    `role` is system, user, assistant or tool. `tool_call_id` pairs a tool message with the call
    that it answers. `opaque` holds whatever a provider wants back untouched (some sign their
    reasoning, for example); the course never looks inside.

    >>> Message("user", "Hi! I'm Bob").to_dict()
    {'role': 'user', 'content': "Hi! I'm Bob"}
    """

    role: str
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    opaque: Any = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise CourseError(
                f"A message's role must be one of {', '.join(ROLES)}, not {self.role!r}."
            )
        if not isinstance(self.content, str):
            raise CourseError(
                f"A message's content must be text, not {type(self.content).__name__}: "
                "turn it into a string first, for example with json.dumps."
            )
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    def to_dict(self) -> dict[str, Any]:
        """Return the message in the wire format of chat-completion APIs.

        There, `arguments` is a string that holds JSON, and a message that only calls has `content`
        null (source: the OpenAI API reference, "Create chat completion").
        """
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            wire["content"] = self.content or None
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            wire["name"] = self.name
        if self.opaque is not None:
            wire["opaque"] = self.opaque
        return wire

    @classmethod
    def from_dict(cls, wire: dict[str, Any]) -> Message:
        """Read a message in wire format; raises CourseError if a call's arguments are no object."""
        if not isinstance(wire, dict) or "role" not in wire:
            raise CourseError(f"A message must be a dict with a 'role', not {wire!r}.")
        return cls(
            role=wire["role"],
            content=wire.get("content") or "",
            tool_calls=tuple(_call_from_dict(call) for call in wire.get("tool_calls") or ()),
            tool_call_id=wire.get("tool_call_id"),
            name=wire.get("name"),
            opaque=wire.get("opaque"),
        )


def _call_from_dict(wire: dict[str, Any]) -> ToolCall:
    function = wire.get("function", wire)
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except json.JSONDecodeError as error:
            raise CourseError(
                f"The arguments of the call to {function.get('name')!r} are not JSON: {error}."
            ) from error
    if not isinstance(arguments, dict):
        raise CourseError(
            f"The arguments of the call to {function.get('name')!r} must be a JSON object."
        )
    return ToolCall(wire.get("id") or "call_1", function["name"], arguments)


def system(text: str) -> Message:
    """A system message: the standing instructions."""
    return Message("system", text)


def user(text: str) -> Message:
    """A message of the person."""
    return Message("user", text)


def assistant(text: str, tool_calls: tuple[ToolCall, ...] = ()) -> Message:
    """A message of the model."""
    return Message("assistant", text, tool_calls=tool_calls)


def tool(result: ToolResult) -> Message:
    """The message that carries a tool's result back to the model."""
    return Message("tool", result.content, tool_call_id=result.call_id, name=result.name)


@dataclass(frozen=True)
class Alternative:
    """One candidate for a token: its id, its text and the model's log-probability of it."""

    id: int
    text: str
    logprob: float


@dataclass(frozen=True)
class Reply:
    """One answer of a model, and where it comes from.

    `text` is exactly what the model wrote; `content` is the prose in it outside of calls.
    `origin` is *recorded*, *live* or *scripted*. Token counts are exact for local models;
    `cached_tokens` is how much of the prompt a prefix cache would have had already: the longest
    common prefix with the previous prompt of the same model object. `alternatives` holds, for each
    token of the reply, the most likely candidates if they were asked for. `opaque` is what a
    provider wants back with the message.

    >>> Reply("Hello!", origin="scripted", model="by hand").message().role
    'assistant'
    """

    text: str
    origin: str
    model: str
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    parse_errors: tuple[Any, ...] = ()
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = "stop"
    alternatives: tuple[tuple[Alternative, ...], ...] = field(default=(), repr=False)
    ids: tuple[int, ...] = field(default=(), repr=False)
    opaque: Any = field(default=None, repr=False)

    def message(self) -> Message:
        """The reply as the next message of the conversation."""
        text = self.content if self.tool_calls else self.text
        return Message("assistant", text, self.tool_calls, opaque=self.opaque)

    def label(self) -> str:
        """Origin, model, token counts and finish reason in one line."""
        counts = f"{self.prompt_tokens} tokens in, {self.output_tokens} out"
        return f"[{self.origin} · {self.model} · {counts} · {self.finish_reason}]"

    def __repr__(self) -> str:
        return f"{self.text}\n{self.label()}"
