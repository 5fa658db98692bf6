"""How many tokens a conversation costs: exactly, and message by message.

The exact count is the length of the rendered prompt, and nothing else: chat template, tool list and
the marker that opens the reply are all in it. Counting message by message is only right if the
template is *additive*, which the counter here verifies instead of assuming it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.memory.history import as_messages
from course_utils.messages import Message, ToolCall
from course_utils.tools import Tool

# Stands before a message whose cost is measured: without a system message, some templates add one.
_ANCHOR = Message("system", "x")
_PROBE_CALL = ToolCall("call_1", "look", {"at": "x"})
_PROBE = [
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("user", "Anyone?"),
    Message("assistant", "Yes.\n"),
    Message("user", "Look."),
    Message("assistant", "I look.", (_PROBE_CALL,)),
    Message("tool", "nothing", tool_call_id="call_1"),
    Message("tool", "\nstill nothing\n", tool_call_id="call_1"),
    Message("assistant", "", (_PROBE_CALL, _PROBE_CALL)),
    Message("tool", "", tool_call_id="call_1"),
    Message("assistant", "Nothing."),
    Message("assistant", "Really."),
    Message("system", "Stop."),
    Message("user", ""),
]


class NotAdditive(CourseError):
    """The template's tokens are no sum over messages, so counting in parts would be wrong."""


def count_tokens(
    messages: Sequence[Any],
    tokenizer: Any,
    tools: Sequence[Any] | None = None,
    *,
    generation_prompt: bool = True,
) -> int:
    """Tokens of the prompt that this conversation and these tools become.

    `messages` are Message objects, wire-format dicts or LangChain messages; `tokenizer` is a
    model's (`model.tokenizer`); `tools` are Tool objects or schemas. `generation_prompt` counts
    the marker that opens the model's reply too, which every real request has. Raises CourseError
    for an empty conversation, and for what is no conversation, tokenizer or tool list.

    >>> count_tokens([{"role": "user", "content": "Hi"}], load().tokenizer)  # doctest: +SKIP
    30
    """
    if not hasattr(tokenizer, "render") or hasattr(tokenizer, "tokenizer"):
        raise CourseError(
            f"Counting takes a course model's tokenizer, which knows its template: pass "
            f"model.tokenizer, not a {type(tokenizer).__name__}."
        )
    schemas = _schemas(tools)
    prompt = tokenizer.render(as_messages(messages), schemas or None, generation_prompt)
    return len(tokenizer.encode(prompt))


def _schemas(tools: Any) -> list[dict[str, Any]]:
    if isinstance(tools, Tool | dict | str):
        raise CourseError("Tools are a list, not a single one: put it in [ ].")
    schemas = [tool.schema() if isinstance(tool, Tool) else tool for tool in tools or ()]
    for schema in schemas:
        if not isinstance(schema, dict):
            raise CourseError(
                f"A tool is a course Tool or a schema (a dict), not a {type(schema).__name__}."
            )
    return schemas


class TokenCounter:
    """Counts in parts, and gets the same as the rendered whole.

    A prompt costs `fixed(messages)` (what belongs to no message: the tool list, the reply marker,
    a system message that the template adds by itself) plus one cost per message. Calling the
    counter gives the sum of the costs, which makes it the right `token_counter` for LangChain's
    `trim_messages`: parts of a history add up to the whole. `whole(messages)` adds the fixed part
    and equals `count_tokens`.

    A message's cost is what it adds to a conversation, measured behind a message of the same role
    as the one it stands behind (in some templates results in a row share a wrapper). Each is
    rendered once and remembered. Raises NotAdditive if a probe conversation, in any of its
    beginnings, does not add up; `check` tells the same of your own conversation.

    >>> counter = TokenCounter(load().tokenizer)  # doctest: +SKIP
    >>> counter.whole(messages) == count_tokens(messages, load().tokenizer)  # doctest: +SKIP
    True
    """

    def __init__(self, tokenizer: Any, tools: Sequence[Any] | None = None) -> None:
        self._tokenizer = tokenizer
        self._tools = _schemas(tools)
        self._costs: dict[tuple[str, ...], int] = {}
        self._fixed: dict[str, int] = {}
        self._contexts: dict[str, int] = {}
        for length in range(1, len(_PROBE) + 1):
            self.check(_PROBE[:length])
            if length > 1:
                self.check(_PROBE[1:length])

    def __call__(self, messages: list[Any]) -> int:
        """The messages' own tokens: a sum, without the fixed part."""
        return sum(self.costs(messages))

    def costs(self, messages: Sequence[Any]) -> list[int]:
        """Each message's own tokens."""
        read = as_messages(messages)
        before = [None, *read[:-1]]
        return [self._cost(m, p.role if p else "system") for m, p in zip(read, before, strict=True)]

    def fixed(self, messages: Sequence[Any]) -> int:
        """Tokens of this conversation's prompt that belong to none of its messages."""
        first = as_messages(messages)[0]
        anchor = first if first.role == "system" else Message("user", "x")
        known = first.content if first.role == "system" else None
        if known not in self._fixed:
            whole = count_tokens([anchor], self._tokenizer, self._tools)
            self._fixed[known] = whole - self._cost(anchor, "system")
        return self._fixed[known]

    def whole(self, messages: Sequence[Any]) -> int:
        """The whole prompt's tokens, by addition."""
        return self.fixed(messages) + self(messages)

    def check(self, messages: Sequence[Any]) -> int:
        """The whole prompt's tokens, by addition and by rendering; NotAdditive if they differ."""
        added = self.whole(messages)
        exact = count_tokens(messages, self._tokenizer, self._tools)
        if added != exact:
            raise NotAdditive(
                f"Counted in parts the conversation has {added} tokens, rendered as a whole "
                f"{exact}: this chat template is not additive. Count with count_tokens instead."
            )
        return exact

    def _cost(self, message: Message, previous: str) -> int:
        calls = json.dumps([[c.name, c.arguments] for c in message.tool_calls])
        key = (message.role, message.content, calls, previous)
        if key not in self._costs:
            context = [_ANCHOR] if previous == "system" else [_ANCHOR, Message(previous, "x")]
            if previous not in self._contexts:
                self._contexts[previous] = self._rendered(context)
            self._costs[key] = self._rendered([*context, message]) - self._contexts[previous]
        return self._costs[key]

    def _rendered(self, messages: list[Message]) -> int:
        return count_tokens(messages, self._tokenizer, generation_prompt=False)
