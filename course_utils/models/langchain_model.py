"""The course's models as a LangChain chat model: tools, stop, streaming, async, exact counts.

LangChain's own way to a local model (`ChatHuggingFace` over a pipeline) drops bound tools and
refuses a history that ends in a tool result, so this is a chat model of our own. It is imported
only by `CourseModel.langchain()`, because importing LangChain takes a second.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import model_validator

from course_utils.errors import CourseError
from course_utils.memory.counting import TokenCounter
from course_utils.memory.history import as_messages
from course_utils.messages import Reply
from course_utils.tools import Tool

if TYPE_CHECKING:
    from course_utils.models.server import ServerModel

SETTINGS = ("max_new_tokens", "temperature", "seed", "trial", "grammar")


class CourseChat(BaseChatModel):
    """A CourseModel (or a scripted one) that speaks LangChain.

    The fields are the defaults of every call; each can be given for one call too
    (`chat.invoke(messages, max_new_tokens=60)`). The message that comes back tells where it comes
    from: `response_metadata` has origin, model_name and finish_reason, `usage_metadata` the token
    counts. A broken call is in `invalid_tool_calls`, its error in `response_metadata` under
    parse_errors. Streaming gives the real tokens one by one, once the reply is complete. Ids of
    tool calls go on counting through a conversation, so that none appears twice.

    >>> load().langchain().invoke("Hi! I'm Bob").usage_metadata["input_tokens"]  # doctest: +SKIP
    35
    """

    model: Any
    max_new_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    trial: int = 0
    stop: list[str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _known_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        # By default a mistyped setting would be dropped without a word.
        unknown = sorted(values.keys() - cls.model_fields.keys())
        if unknown:
            raise _unknown_setting(unknown[0], SETTINGS[:4], "stop")
        return values

    @property
    def _llm_type(self) -> str:
        return "course"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model.name} | {
            name: getattr(self, name) for name in SETTINGS[:4]
        }

    @cached_property
    def counter(self) -> TokenCounter:
        """Counts messages by the model's tokenizer and template."""
        return TokenCounter(self._with_tokenizer().tokenizer)

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: str | bool | dict | None = None,
        **settings: Any,
    ) -> Any:
        """The chat model with tools offered: LangChain tools, course Tools, functions or schemas.

        `tool_choice` is auto (or None: the model decides), none, any (or required, or True: some
        call), or a tool's name (that call). A call is forced by a grammar, not by a request.
        """
        schemas = _schemas(tools)
        chosen = _offered(schemas, tool_choice)
        return self.bind(tools=chosen["tools"], **_without_none(chosen["grammar"]), **settings)

    def get_token_ids(self, text: str) -> list[int]:
        """The model's own token ids of a text."""
        return self._with_tokenizer().encode(text)

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """The messages' own tokens, template included: parts of a history add up.

        That is what `trim_messages` needs. `CourseModel.count` tells the length of the whole
        prompt, which has the reply's marker too.
        """
        total = self.counter(messages)
        if tools:
            schemas = _schemas(tools)
            with_tools = TokenCounter(self.model.tokenizer, schemas)
            total += with_tools.fixed(messages) - self.counter.fixed(messages)
        return total

    def _with_tokenizer(self) -> Any:
        if not hasattr(self.model, "tokenizer"):
            raise CourseError(
                f"The model {self.model.name!r} has no tokenizer, so there is nothing to count "
                "with: take TokenCounter(load().tokenizer)."
            )
        return self.model

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **settings: Any,
    ) -> ChatResult:
        reply, earlier = self._ask(messages, stop, settings)
        return ChatResult(generations=[ChatGeneration(message=_ai_message(reply, earlier))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **settings: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply, earlier = self._ask(messages, stop, settings)
        for piece in _pieces(reply, earlier, getattr(self.model, "decode", None)):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _ask(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> tuple[Reply, int]:
        """The reply, and how many calls the conversation had before it."""
        tools = settings.pop("tools", None)
        unknown = sorted(settings.keys() - set(SETTINGS))
        if unknown:
            raise _unknown_setting(unknown[0], SETTINGS, "stop and tools")
        defaults = {name: getattr(self, name) for name in SETTINGS[:4]}
        history = as_messages(messages)
        stop = stop or self.stop or ()
        # A single text would be taken apart into its letters.
        stop = (stop,) if isinstance(stop, str) else tuple(stop)
        reply = self.model.chat(history, tools or None, stop=stop, **(defaults | settings))
        return reply, sum(len(message.tool_calls) for message in history)


def openai_chat(server: ServerModel, **settings: Any) -> Any:
    """The ecosystem's own ChatOpenAI for the server behind a ServerModel.

    Takes the same settings as CourseChat.
    """
    from langchain_openai import ChatOpenAI

    seed = settings.pop("seed", 0) + settings.pop("trial", 0)
    return ChatOpenAI(
        model=server.name,
        base_url=server.address,
        api_key=os.environ.get("COURSE_API_KEY") or "none",
        timeout=server.timeout,
        max_retries=server.retries,
        temperature=settings.pop("temperature", 0.0),
        seed=seed,
        # In the body as it is: some servers do not know the newer name that ChatOpenAI would send.
        extra_body={"max_tokens": settings.pop("max_new_tokens", 256)},
        **settings,
    )


def _unknown_setting(name: str, known: Sequence[str], last: str) -> CourseError:
    return CourseError(
        f"The course's chat model has no setting {name!r}. It has {', '.join(known)}, {last}."
    )


def _schemas(tools: Sequence[Any]) -> list[dict[str, Any]]:
    return [t.schema() if isinstance(t, Tool) else convert_to_openai_tool(t) for t in tools]


def _offered(schemas: list[dict[str, Any]], choice: Any) -> dict[str, Any]:
    """The tools to offer and the grammar that forces a call, if one is to be forced."""
    if isinstance(choice, dict):
        choice = choice.get("function", choice).get("name")
    if choice in (None, "auto", False):
        return {"tools": schemas, "grammar": None}
    if choice == "none":
        return {"tools": None, "grammar": None}
    names = [schema["function"]["name"] for schema in schemas]
    forced = schemas
    if choice not in ("any", "required", True):
        forced = [schema for schema in schemas if schema["function"]["name"] == choice]
    if not forced:
        raise CourseError(
            f"tool_choice {choice!r} is no tool that is bound: {', '.join(names) or 'none is'}."
        )
    calls = [_call_schema(schema["function"]) for schema in forced]
    return {"tools": schemas, "grammar": calls[0] if len(calls) == 1 else {"anyOf": calls}}


def _call_schema(function: dict[str, Any]) -> dict[str, Any]:
    arguments = {"type": "object", "properties": {}, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {
            "name": {"const": function["name"]},
            "arguments": arguments | (function.get("parameters") or {}),
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _without_none(grammar: dict[str, Any] | None) -> dict[str, Any]:
    return {} if grammar is None else {"grammar": grammar}


def _facts(reply: Reply) -> dict[str, Any]:
    errors = [f"{error.kind}: {error.message}" for error in reply.parse_errors]
    return {
        "response_metadata": {
            "origin": reply.origin,
            "model_name": reply.model,
            "finish_reason": reply.finish_reason,
            **({"parse_errors": errors} if errors else {}),
        },
        "usage_metadata": {
            "input_tokens": reply.prompt_tokens,
            "output_tokens": reply.output_tokens,
            "total_tokens": reply.prompt_tokens + reply.output_tokens,
            "input_token_details": {"cache_read": reply.cached_tokens},
        },
    }


def _ai_message(reply: Reply, earlier: int) -> AIMessage:
    calls = [
        {"name": call.name, "args": call.arguments, "id": f"call_{number}"}
        for number, call in enumerate(reply.tool_calls, earlier + 1)
    ]
    return AIMessage(
        content=reply.message().content,
        tool_calls=calls,
        invalid_tool_calls=[
            {"name": None, "args": reply.text, "id": None, "error": f"{e.kind}: {e.message}"}
            for e in reply.parse_errors
        ],
        **_facts(reply),
    )


def _pieces(
    reply: Reply, earlier: int, decode: Callable[[Sequence[int]], str] | None
) -> Iterator[AIMessageChunk]:
    """The reply as chunks that add up to its message; the last one carries counts and origin."""
    whole = _ai_message(reply, earlier)
    for text in _texts(reply, whole.content, decode):
        yield AIMessageChunk(content=text)
    calls = [
        {**call, "args": json.dumps(call["args"], ensure_ascii=False), "index": number}
        for number, call in enumerate(whole.tool_calls)
    ]
    # Broken calls are told in response_metadata only: as chunks, LangChain would mend them into
    # calls of a tool without a name.
    yield AIMessageChunk(
        content="",
        tool_call_chunks=[{k: call[k] for k in ("name", "args", "id", "index")} for call in calls],
        chunk_position="last",
        **_facts(reply),
    )


def _texts(
    reply: Reply, content: str, decode: Callable[[Sequence[int]], str] | None
) -> Iterator[str]:
    """The content, a token at a time where the reply is nothing but content."""
    if content != reply.text or not reply.ids or decode is None:
        if content:
            yield content
        return
    sent = 0
    for end in range(1, len(reply.ids) + 1):
        text = decode(reply.ids[:end])
        # A character may take several tokens; until then it decodes to a question mark.
        if text.endswith("\ufffd") and end < len(reply.ids):
            continue
        text = text[: len(content)]
        if len(text) > sent:
            yield text[sent:]
            sent = len(text)
