"""The one small call through which everything local passes: token ids in, token ids out.

Recordings, the live engine and the judge all stand behind it; chat, pipelines and agent
libraries stand on top. A request is made of ids, never of text, because the same text can stand
for different ids: an escaped `<|im_end|>` and the control token look alike once decoded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.messages import Alternative


@dataclass(frozen=True)
class Request:
    """What is asked of a model.

    `max_new_tokens` caps the reply (the end token is not counted). `stop` are strings at which
    generation ends. `grammar` is a JSON schema in canonical text, or None. Temperature 0 is
    greedy: always the most likely token. `trial` tells repeated samples apart. `top_k` asks for
    that many candidates per token; it does not change the reply, so it is no part of the key.

    >>> Request((785, 6722), max_new_tokens=8).temperature
    0.0
    """

    prompt_ids: tuple[int, ...]
    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()
    grammar: str | None = None
    temperature: float = 0.0
    seed: int = 0
    trial: int = 0
    top_k: int = 0

    def __post_init__(self) -> None:
        if not self.prompt_ids:
            raise CourseError("The prompt is empty: a model needs at least one token to continue.")
        for name in ("max_new_tokens", "seed", "trial", "top_k"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise CourseError(f"{name} must be a whole number, not {value!r}.")
        if not isinstance(self.temperature, int | float):
            raise CourseError(f"temperature must be a number, not {self.temperature!r}.")
        if any(not isinstance(text, str) for text in self.stop):
            raise CourseError(f"stop must hold texts only, not {list(self.stop)!r}.")
        if self.top_k < 0:
            raise CourseError(f"top_k must be 0 or more, not {self.top_k}.")
        if self.max_new_tokens < 1:
            raise CourseError(f"max_new_tokens must be at least 1, not {self.max_new_tokens}.")
        if self.temperature < 0:
            raise CourseError(f"temperature must be 0 or more, not {self.temperature}.")
        if any(not text for text in self.stop):
            raise CourseError("A stop string must not be empty: it would end every reply at once.")

    def key(self, model_sha256: str) -> str:
        """The name of this request's recording: SHA-256 over model file, ids and settings."""
        parts = [
            model_sha256,
            list(self.prompt_ids),
            self.max_new_tokens,
            list(self.stop),
            self.grammar,
            float(self.temperature),
            self.seed,
            self.trial,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Generation:
    """What came back.

    `ids` are the generated tokens without the end token. `finish_reason` is `stop` (the model
    chose its end token), `stop_string` (a stop string was completed: `ids` includes the token that
    completed it, `text` ends before it) or `length`. `alternatives` has one row per generated
    token, with one more row for the end token when the model chose it; the tokens that spell a stop
    string may have none.
    """

    ids: tuple[int, ...]
    text: str
    finish_reason: str
    alternatives: tuple[tuple[Alternative, ...], ...] = ()
    origin: str = "recorded"


def canonical_grammar(grammar: dict | None) -> str | None:
    """A JSON schema as text; property order is kept, because constrained replies follow it."""
    if grammar is None:
        return None
    if not isinstance(grammar, dict):
        raise CourseError(f"grammar must be a JSON schema (a dict), not {type(grammar).__name__}.")
    return json.dumps(grammar, ensure_ascii=False, separators=(",", ":"))


def reply_text(ids: Sequence[int], stop: Sequence[str], decode: Callable[[list[int]], str]) -> str:
    """The text of generated ids, cut before the first stop string in it.

    >>> reply_text([1, 2], ["b"], lambda ids: "abc")
    'a'
    """
    text = decode(list(ids))
    cuts = [text.find(mark) for mark in stop if mark in text]
    return text[: min(cuts)] if cuts else text
