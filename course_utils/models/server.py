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
from course_utils.parsing import ParseError, decode

KNOWN_FIELDS = {"role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"}


class NeedsTokens(CourseError):
    """The lesson looks at token ids or probabilities, which a model server does not give."""


class ServerModel:
    """A model behind an address; `load(mode="http://…/v1")` makes one.

    `timeout` is the longest silence of the server in each attempt, in seconds (one that goes on
    sending is not cut off); `retries` is how often a refused connection, a timeout, 429 or 5xx is
    tried again. The key comes from COURSE_API_KEY (local
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
            api_key=_key(),
            timeout=timeout,
            max_retries=retries,
        )

    def __repr__(self) -> str:
        return f"ServerModel({self.address!r}, {self._wanted!r})"

    @property
    def name(self) -> str:
        """The model's name on the server, asked for once."""
        if self._name is None:
            served = self._served()
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

    def _served(self) -> list[str]:
        try:  # the client library does not check what a server sends, and falls over it
            return [model.id for model in self._ask(self._client.models.list).data]
        except (AttributeError, TypeError) as error:
            raise self._no_answer("list of models") from error

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
        # The client library does not check what a server sends: any field can be of any kind.
        try:
            choice = answer.choices[0]
            message = choice.message
            calls, errors = _calls(message.tool_calls or [])
            extra = message.model_extra or {}
            text = message.content or ""
        except (AttributeError, TypeError, LookupError) as error:
            raise self._no_answer("chat completion") from error
        opaque = {name: value for name, value in extra.items() if name not in KNOWN_FIELDS}
        usage = answer.usage
        return Reply(
            text=text,
            origin="live",
            model=self.name,
            content=text,
            tool_calls=calls,
            parse_errors=errors,
            prompt_tokens=_count(usage, "prompt_tokens"),
            cached_tokens=_count(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
            output_tokens=_count(usage, "completion_tokens"),
            finish_reason=choice.finish_reason or "stop",
            opaque=opaque or None,
        )

    def _no_answer(self, wanted: str) -> CourseError:
        return CourseError(
            f"The server {self.address} answered with something that is no {wanted}. "
            "Does its address end in /v1?"
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
        except (openai.APIResponseValidationError, ValueError) as error:  # no JSON, or no text
            raise CourseError(
                f"The server {self.address} answered with something that is not JSON. "
                "Is it a model server, and does its address end in /v1?"
            ) from error

    def langchain(self, **settings: Any) -> Any:
        """LangChain's own ChatOpenAI on this server; takes what `CourseModel.langchain` takes."""
        from course_utils.models.langchain_model import openai_chat

        return openai_chat(self, **settings)

    def smolagents(self, **settings: Any) -> Any:
        """smolagents' own OpenAIModel on this server; takes what `CourseModel.smolagents` takes."""
        from course_utils.models.smolagents_model import openai_model

        return openai_model(self, **settings)

    @property
    def tokenizer(self) -> Any:
        """Not on a server: raises NeedsTokens."""
        raise NeedsTokens(_needs_tokens("tokenizer"))

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
        name = getattr(call.function, "name", None)
        if not isinstance(name, str) or not name:
            errors.append(ParseError("missing_name", f"Call {number} names no tool.", 0))
            continue
        # Text by the protocol; some servers send the object itself.
        text = call.function.arguments or "{}"
        try:
            arguments = decode(text if isinstance(text, str) else json.dumps(text))
        except ValueError as error:
            errors.append(ParseError("invalid_json", f"{name}: {error}", 0))
            continue
        if not isinstance(arguments, dict):
            errors.append(ParseError("bad_arguments", f"{name}: arguments are no object", 0))
            continue
        calls.append(ToolCall(call.id or f"call_{number}", name, arguments))
    return tuple(calls), tuple(errors)


def _count(holder: Any, name: str) -> int:
    """A number of tokens, 0 where the server does not say."""
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0


def _key() -> str:
    key = os.environ.get("COURSE_API_KEY", "").strip() or "none"
    if not (key.isascii() and key.isprintable()):
        raise CourseError("COURSE_API_KEY has characters that no key can have: copy it again.")
    return key


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
