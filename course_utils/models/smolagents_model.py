"""The course's models for smolagents: generation ends at a stop string, and counts are exact.

smolagents' own class for local models loads weights itself and cannot be given a model that is
already there, so this is a subclass of its `Model`. Prompts are made as its `TransformersModel`
makes them: the roles tool-call and tool-response become assistant and user, neighbours of one role
become one message, and the model's chat template does the rest. It is imported only by
`CourseModel.smolagents()`, because importing smolagents takes seconds.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
    get_clean_message_list,
    get_tool_json_schema,
    remove_content_after_stop_sequences,
    tool_role_conversions,
)
from smolagents.monitoring import TokenUsage
from smolagents.utils import AgentGenerationError

from course_utils.errors import CourseError
from course_utils.messages import Message, Reply, ToolCall
from course_utils.parsing import parse

if TYPE_CHECKING:
    from course_utils.models.server import ServerModel

# smolagents' own default of 4,096 would be minutes of a small model that does not stop.
DEFAULTS = {"max_new_tokens": 256, "temperature": 0.0, "seed": 0, "trial": 0, "top_k": 0}


def _only_the_message(error: AgentGenerationError) -> list[str]:
    """What IPython shows for a CourseError that an agent has wrapped: its sentence alone."""
    if isinstance(error.__cause__, CourseError):
        return error.__cause__._render_traceback_()
    return traceback.format_exception(error)


AgentGenerationError._render_traceback_ = _only_the_message


class CourseSmolModel(Model):
    """A CourseModel (or a scripted one, or anything with its `chat`) that smolagents can use.

    `settings` are max_new_tokens (256 unless given), temperature, seed, trial and top_k; each can
    be given for one call of `generate` too. Every answer carries the course's Reply in `raw`, with
    origin, counts and candidates, and `replies` keeps them all in order.

    >>> from smolagents import CodeAgent  # doctest: +SKIP
    >>> CodeAgent([], load().smolagents(), verbosity_level=0).run("2+2?")  # doctest: +SKIP
    4
    """

    def __init__(self, model: Any, **settings: Any) -> None:
        _refuse_unknown(settings)
        super().__init__(flatten_messages_as_text=True, model_id=model.name)
        self.model = model
        self.settings = DEFAULTS | settings
        self.replies: list[Reply] = []

    def generate(
        self,
        messages: Sequence[ChatMessage | dict[str, Any]],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, Any] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **settings: Any,
    ) -> ChatMessage:
        """Answer a conversation of smolagents.

        `stop_sequences` end the generation at the token that completes one of them, and the text
        ends before it. `response_format` is a JSON schema in OpenAI's form: the reply is held to
        it by a grammar. Calls are looked for only if `tools_to_call_from` are given. Raises
        CourseError for pictures, unknown settings, and as `CourseModel.chat` does.
        """
        _refuse_unknown(settings)
        schemas = [get_tool_json_schema(tool) for tool in tools_to_call_from or []]
        reply = self.model.chat(
            course_messages(messages),
            schemas or None,
            stop=tuple(stop_sequences or ()),
            grammar=_grammar(response_format),
            **(self.settings | settings),
        )
        # A scripted reply knows no stop strings; for a generated one this changes nothing.
        text = remove_content_after_stop_sequences(reply.text, stop_sequences)
        if text != reply.text:
            calls = parse(text).calls if schemas else ()
            reply = replace(reply, text=text, content=text, tool_calls=calls)
        self.replies.append(reply)
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=reply.text,
            tool_calls=_library_calls(reply.tool_calls, _calls_before(messages)) or None,
            raw=reply,
            token_usage=TokenUsage(
                input_tokens=reply.prompt_tokens, output_tokens=reply.output_tokens
            ),
        )

    def parse_tool_calls(self, message: ChatMessage) -> ChatMessage:
        """The message with its calls, read by the course's parser.

        Raises CourseError that says why there is none; smolagents shows that to the model.
        """
        if not message.tool_calls:
            parsed = parse(_text(message.content))
            if not parsed.calls:
                why = "; ".join(f"{e.kind}: {e.message}" for e in parsed.errors)
                raise CourseError(
                    f"The reply holds no tool call that can be read ({why or 'it is only text'}). "
                    'A call looks like {"name": "…", "arguments": {…}}.'
                )
            message.tool_calls = _library_calls(parsed.calls, 0)
        message.role = MessageRole.ASSISTANT
        return message


def course_messages(messages: Sequence[ChatMessage | dict[str, Any]]) -> list[Message]:
    """smolagents' messages as the chat template gets them from its TransformersModel.

    Raises CourseError for a message with a picture: the course's models read text only.
    """
    texts = []
    for message in messages:
        if isinstance(message, dict):
            message = ChatMessage.from_dict(dict(message))
        # Of several blocks smolagents would keep the first one only.
        block = {"type": "text", "text": _text(message.content)}
        texts.append(ChatMessage(role=message.role, content=[block]))
    clean = get_clean_message_list(
        texts, role_conversions=tool_role_conversions, flatten_messages_as_text=True
    )
    return [Message(MessageRole(entry["role"]).value, entry["content"]) for entry in clean]


def openai_model(server: ServerModel, **settings: Any) -> Any:
    """smolagents' own OpenAIModel for the server behind a ServerModel; same settings, no top_k."""
    from smolagents import OpenAIModel

    _refuse_unknown(settings)
    if settings.pop("top_k", 0):
        raise CourseError("top_k needs the model's tokens, and a model server gives only text.")
    chosen = DEFAULTS | settings
    return OpenAIModel(
        model_id=server.name,
        api_base=server.address,
        api_key=os.environ.get("COURSE_API_KEY") or "none",
        client_kwargs={"timeout": server.timeout, "max_retries": server.retries},
        flatten_messages_as_text=True,  # some local servers take no lists of blocks
        retry=False,  # the client above tries again already
        max_tokens=chosen["max_new_tokens"],
        temperature=chosen["temperature"],
        seed=chosen["seed"] + chosen["trial"],
    )


def _refuse_unknown(settings: dict[str, Any]) -> None:
    unknown = sorted(settings.keys() - DEFAULTS.keys())
    if unknown:
        raise CourseError(
            f"The course's smolagents model has no setting {unknown[0]!r}. "
            f"It has {', '.join(DEFAULTS)}."
        )


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for block in content:
        if block.get("type") != "text":
            raise CourseError(
                f"The message holds a block of type {block.get('type')}: the course's models read "
                "text only, so leave pictures out of the task and of the tools' results."
            )
    return "\n".join(block["text"] for block in content)


def _grammar(response_format: dict[str, Any] | None) -> dict[str, Any] | None:
    kind = (response_format or {"type": "text"}).get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind == "json_schema":
        return response_format["json_schema"]["schema"]
    raise CourseError(
        f"response_format has the type {kind!r}; known are text, json_object and json_schema."
    )


def _calls_before(messages: Sequence[ChatMessage | dict[str, Any]]) -> int:
    """At least as many as the calls that the conversation has, so that no id comes twice."""
    count = 0
    for message in messages:
        role, content = (
            (message.get("role"), message.get("content"))
            if isinstance(message, dict)
            else (message.role, message.content)
        )
        if role == MessageRole.TOOL_CALL:
            count += _text(content).count("'type': 'function'")
    return count


def _library_calls(calls: Sequence[ToolCall], before: int) -> list[ChatMessageToolCall]:
    # smolagents would give random ids, which stand in the next prompt: no reply would ever repeat.
    return [
        ChatMessageToolCall(
            function=ChatMessageToolCallFunction(name=call.name, arguments=call.arguments),
            id=f"call_{number}",
            type="function",
        )
        for number, call in enumerate(calls, before + 1)
    ]
