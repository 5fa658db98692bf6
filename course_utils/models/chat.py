"""A model as the notebooks use it: `load` one, `chat` with it, look at what it was sent."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from course_utils.errors import CourseError
from course_utils.messages import Message, Reply
from course_utils.models import catalogue
from course_utils.models.seam import Generation, Request, canonical_grammar
from course_utils.models.source import Source, chosen_mode
from course_utils.parsing import parse
from course_utils.tools import Tool

if TYPE_CHECKING:
    from course_utils.models.server import ServerModel

Conversation = Sequence[Message | dict[str, Any]]
Tools = Sequence[Tool | dict[str, Any]]


class CourseModel:
    """A local language model whose replies are recorded, live, or both in turn.

    Use `load` to make one.

    >>> load().chat([{"role": "user", "content": "What is the capital of France?"}]).text
    'The capital of France is Paris.'
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.spec = source.spec
        self.name = source.spec.name
        self.tokenizer = source.tok
        self._previous: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"CourseModel({self.name!r}, mode={self.source.mode!r})"

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids."""
        return self.tokenizer.decode(list(ids))

    def render(self, messages: Conversation, tools: Tools | None = None) -> str:
        """The exact prompt text for a conversation: chat template, tool list, reply marker."""
        return self.tokenizer.render(as_messages(messages), tool_schemas(tools))

    def count(self, messages: Conversation, tools: Tools | None = None) -> int:
        """How many tokens that prompt has."""
        return len(self.encode(self.render(messages, tools)))

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
        """Send a conversation, get the model's next message.

        Calls are looked for in the reply only if `tools` are offered. `grammar` is a JSON schema
        that the reply is held to. `top_k` asks for that many candidates per token. Temperature 0
        takes the most likely token each time; above 0, `seed` and `trial` choose the sample.
        Raises CourseError as `Source.generate` does.
        """
        reply = self.complete(
            self.render(messages, tools),
            max_new_tokens=max_new_tokens,
            stop=stop,
            grammar=grammar,
            temperature=temperature,
            seed=seed,
            trial=trial,
            top_k=top_k,
        )
        if not tools:
            return reply
        parsed = parse(reply.text)
        return replace(
            reply,
            content=parsed.content,
            tool_calls=parsed.calls,
            parse_errors=parsed.errors,
        )

    def complete(
        self,
        prompt: str | Sequence[int],
        *,
        max_new_tokens: int = 256,
        stop: Sequence[str] = (),
        grammar: dict | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        trial: int = 0,
        top_k: int = 0,
    ) -> Reply:
        """Continue a raw prompt, text or token ids, with no chat template around it."""
        ids = self.encode(prompt) if isinstance(prompt, str) else prompt
        request = Request(
            prompt_ids=tuple(ids),
            max_new_tokens=max_new_tokens,
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            grammar=canonical_grammar(grammar),
            temperature=temperature,
            seed=seed,
            trial=trial,
            top_k=top_k,
        )
        generation = self.source.generate(request)
        reply = _reply(request, generation, self.name, common_prefix(self._previous, ids))
        self._previous = request.prompt_ids
        log_reply(reply)
        return reply

    def pipeline(self, **settings: Any) -> Any:
        """The real `transformers.pipeline("text-generation")` on this model; greedy.

        `settings` are the pipeline's own, such as max_new_tokens or return_full_text. No weights
        are loaded into torch: prompts go where `complete` sends them.
        """
        from course_utils.models.causal_lm import course_pipeline

        return course_pipeline(self, **settings)

    def langchain(self, **settings: Any) -> Any:
        """A LangChain chat model on this model, with tools, stop, streaming and async.

        `settings` are the defaults of its calls: max_new_tokens, temperature, seed, trial, stop.
        """
        from course_utils.models.langchain_model import CourseChat

        return CourseChat(model=self, **settings)

    def smolagents(self, **settings: Any) -> Any:
        """A model for smolagents' agents on this model, with exact stops and token counts.

        `settings` are the defaults of its calls: max_new_tokens (256), temperature, seed, trial,
        top_k.
        """
        from course_utils.models.smolagents_model import CourseSmolModel

        return CourseSmolModel(self, **settings)


def load(name: str = "qwen2.5-coder-1.5b", mode: str | None = None) -> CourseModel | ServerModel:
    """A model of the catalogue by name, or a model on a server.

    `mode` is auto (recorded replies first, the live model for new prompts), recorded, live, or the
    address of an OpenAI-compatible server (`http://localhost:11434/v1` for Ollama); left out, the
    environment variable COURSE_MODEL decides, and auto without it. Raises CourseError for an
    unknown name or mode. Loading is instant: weights are read at first need.

    >>> load("qwen2.5-coder-0.5b").name
    'qwen2.5-coder-0.5b'
    """
    chosen = chosen_mode(mode)
    if chosen.startswith("http"):
        from course_utils.models.server import ServerModel

        return ServerModel(chosen, name)
    return CourseModel(Source(catalogue.spec(name), chosen))


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids two prompts share from the start: what a prefix cache need not read again."""
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


def as_messages(messages: Conversation) -> list[Message]:
    """A conversation as Message objects; wire-format dicts are read."""
    if isinstance(messages, str | Message | dict):
        raise CourseError(
            "A conversation is a list of messages: write [{'role': 'user', 'content': '…'}]."
        )
    read = [m if isinstance(m, Message) else Message.from_dict(m) for m in messages]
    if not read:
        raise CourseError("The conversation is empty: give the model at least one message.")
    return read


def tool_schemas(tools: Tools | None) -> list[dict[str, Any]] | None:
    """The tool list as the chat template wants it."""
    if not tools:
        return None
    return [t.schema() if isinstance(t, Tool) else t for t in tools]


def _reply(request: Request, generation: Generation, name: str, cached: int) -> Reply:
    return Reply(
        text=generation.text,
        origin=generation.origin,
        model=name,
        content=generation.text,
        prompt_tokens=len(request.prompt_ids),
        cached_tokens=cached,
        output_tokens=len(generation.ids),
        finish_reason=generation.finish_reason,
        alternatives=generation.alternatives,
        ids=generation.ids,
    )


def log_reply(reply: Reply) -> None:
    """Tell the runner where a reply came from (it counts them for its closing table)."""
    path = os.environ.get("COURSE_REPLY_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"origin": reply.origin, "model": reply.model}) + "\n")
