"""The same `chat` against any OpenAI-compatible server: Ollama, vLLM, llama.cpp, a classroom's.

The OpenAI client library speaks the protocol, with a timeout always set and a bounded number of
retries that honour Retry-After. A server gives text, not token ids: what needs ids or logits
raises NeedsTokens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Message, Reply, ToolCall
from course_utils.models.chat import Conversation, Tools, as_messages, log_reply, tool_schemas
from course_utils.parsing import ParseError

KNOWN_FIELDS = {"role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"}


class NeedsTokens(CourseError):
    """The lesson looks at token ids or probabilities, which a model server does not give."""


class ServerModel:
    """A model behind an address; `load(mode="http://…/v1")` makes one.

    `timeout` is in seconds and applies to each attempt; `retries` is how often a refused
    connection, a timeout, 429 or 5xx is tried again. The key comes from COURSE_API_KEY (local
    servers want none). The server's model is `name` if it serves one of that name, the one in
    COURSE_SERVER_MODEL, or the only one that there is.

    >>> ServerModel("http://127.0.0.1:11434/v1", "qwen2.5-coder:1.5b")  # doctest: +SKIP
    """

    def __init__(
        self, address: str, name: str, *, timeout: float = 120.0, retries: int = 2
    ) -> None:
        import openai

        self.address = address.rstrip("/")
        self.timeout = timeout
        self.retries = retries
        self._wanted = os.environ.get("COURSE_SERVER_MODEL") or name
        self._name: str | None = None
        self._client = openai.OpenAI(
            base_url=self.address,
            api_key=os.environ.get("COURSE_API_KEY") or "none",
            timeout=timeout,
            max_retries=retries,
        )

    def __repr__(self) -> str:
        return f"ServerModel({self.address!r}, {self._wanted!r})"

    @property
    def name(self) -> str:
        """The model's name on the server, asked for once."""
        if self._name is None:
            served = [model.id for model in self._ask(self._client.models.list).data]
            if self._wanted in served:
                self._name = self._wanted
            elif len(served) == 1 and "COURSE_SERVER_MODEL" not in os.environ:
                self._name = served[0]
            else:
                raise CourseError(
                    f"The server {self.address} has no model {self._wanted!r}. It has: "
                    f"{', '.join(served) or 'none'}. Name one in COURSE_SERVER_MODEL."
                )
        return self._name

    def chat(
        self,
        messages: Conversation,
        tools: Tools | None = None,
        *,
        max_new_tokens: int = 256,
        stop: Sequence[str] = (),
        grammar: dict | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        trial: int = 0,
        top_k: int = 0,
    ) -> Reply:
        """Send a conversation, get the model's next message, with the server's own tool calls.

        Raises CourseError naming the server and what to do: unreachable, refused key, too many
        requests, server error, timeout, or an answer that is no chat completion.
        """
        if top_k:
            raise NeedsTokens(_needs_tokens("top_k"))
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [_wire(message) for message in as_messages(messages)],
            "max_tokens": max_new_tokens,
            "temperature": temperature,
            "seed": seed + trial,
        }
        if stop:
            body["stop"] = [stop] if isinstance(stop, str) else list(stop)
        if tools:
            body["tools"] = tool_schemas(tools)
        if grammar is not None:
            named = {"name": "reply", "schema": grammar, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        answer = self._ask(lambda: self._client.chat.completions.create(**body))
        reply = self._reply(answer)
        log_reply(reply)
        return reply

    def _reply(self, answer: Any) -> Reply:
        choices = getattr(answer, "choices", None)
        if not choices or choices[0].message is None:
            raise CourseError(
                f"The server {self.address} answered with something that is no chat completion. "
                "Does its address end in /v1?"
            )
        message, usage = choices[0].message, answer.usage
        calls, errors = _calls(message.tool_calls or [])
        opaque = {k: v for k, v in (message.model_extra or {}).items() if k not in KNOWN_FIELDS}
        details = getattr(usage, "prompt_tokens_details", None)
        return Reply(
            text=message.content or "",
            origin="live",
            model=self.name,
            content=message.content or "",
            tool_calls=calls,
            parse_errors=errors,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            cached_tokens=getattr(details, "cached_tokens", None) or 0,
            output_tokens=usage.completion_tokens if usage else 0,
            finish_reason=choices[0].finish_reason or "stop",
            opaque=opaque or None,
        )

    def _ask(self, request: Any) -> Any:
        import openai

        try:
            return request()
        except openai.APITimeoutError as error:
            raise CourseError(
                f"The server {self.address} did not answer within {self.timeout:g} seconds."
            ) from error
        except openai.APIConnectionError as error:
            raise CourseError(
                f"No server answers at {self.address}. Start it, or correct COURSE_MODEL."
            ) from error
        except openai.AuthenticationError as error:
            raise CourseError(
                f"The server {self.address} refused the key (401): set COURSE_API_KEY."
            ) from error
        except openai.RateLimitError as error:
            raise CourseError(
                f"The server {self.address} is over its limit (429), also after waiting: try later."
            ) from error
        except openai.APIStatusError as error:
            raise CourseError(
                f"The server {self.address} refused the request ({error.status_code}): "
                f"{_short(error.message)}"
            ) from error
        except (openai.APIResponseValidationError, json.JSONDecodeError) as error:
            raise CourseError(
                f"The server {self.address} answered with something that is not JSON. "
                "Is it a model server, and does its address end in /v1?"
            ) from error

    def langchain(self, **settings: Any) -> Any:
        """LangChain's own ChatOpenAI on this server; takes what `CourseModel.langchain` takes."""
        from course_utils.models.langchain_model import openai_chat

        return openai_chat(self, **settings)

    def pipeline(self, **_: Any) -> Any:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("pipeline"))

    def complete(self, *_: Any, **__: Any) -> Reply:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("complete"))

    def encode(self, text: str) -> list[int]:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("encode"))

    def decode(self, ids: Sequence[int]) -> str:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("decode"))

    def render(self, messages: Conversation, tools: Tools | None = None) -> str:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("render"))

    def count(self, messages: Conversation, tools: Tools | None = None) -> int:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("count"))


def _needs_tokens(what: str) -> str:
    return (
        f"`{what}` needs the model's tokens, and a model server gives only text. Use a local model "
        "for this cell: load(mode='auto'), or unset COURSE_MODEL."
    )


def _wire(message: Message) -> dict[str, Any]:
    wire = message.to_dict()
    opaque = wire.pop("opaque", None)
    if isinstance(opaque, dict):
        wire.update(opaque)
    wire.pop("name", None)  # servers pair results with calls by id alone
    return wire


def _calls(raw: Sequence[Any]) -> tuple[tuple[ToolCall, ...], tuple[ParseError, ...]]:
    calls, errors = [], []
    for number, call in enumerate(raw, 1):
        text = call.function.arguments or "{}"
        try:
            arguments = json.loads(text)
        except json.JSONDecodeError as error:
            errors.append(ParseError("invalid_json", f"{call.function.name}: {error}", error.pos))
            continue
        if not isinstance(arguments, dict):
            errors.append(
                ParseError("bad_arguments", f"{call.function.name}: arguments are no object", 0)
            )
            continue
        calls.append(ToolCall(call.id or f"call_{number}", call.function.name, arguments))
    return tuple(calls), tuple(errors)


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
