"""Constrained decoding, seen from inside: which tokens a JSON schema allows at each step.

A grammar says which texts are right; a model chooses tokens. Before each step the grammar is asked
which tokens can still lead to a right text, and every other token's score is set to minus
infinity. Only the tokenizer is needed for that, no weights. The live engine has the same library
(llguidance) inside and gets the same grammar text, so these are the masks that it worked under.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from course_utils.errors import CourseError
from course_utils.models.seam import canonical_grammar
from course_utils.models.tokenizer import CourseTokenizer

if TYPE_CHECKING:
    import numpy as np

# Either of them ends a reply, and so may come where the grammar allows the text to end.
ENDS = ("<|im_end|>", "<|endoftext|>")


class NotAllowed(CourseError):
    """A token that the grammar does not allow at its place."""

    def __init__(self, position: int, text: str) -> None:
        self.position = position
        super().__init__(f"The grammar does not allow {text!r} as token {position} of the reply.")


def walk(
    schema: dict[str, Any] | str, ids: Sequence[int], tok: CourseTokenizer
) -> Iterator[np.ndarray]:
    """The mask at each step of a reply: True where a token is allowed.

    `schema` is a JSON schema as a dict or as text. Yields len(ids) + 1 boolean arrays as long as
    the vocabulary: one before each token, and one after the last (where the end tokens are
    allowed if the text is complete). Raises NotAllowed at the first token outside its mask, and
    CourseError for a schema that cannot be a grammar.

    >>> masks = list(walk({"type": "boolean"}, tok.encode("true"), tok))  # doctest: +SKIP
    >>> [int(mask.sum()) for mask in masks]
    """
    matcher = _matcher(schema, tok)
    for position, token in enumerate(ids):
        mask = _mask(matcher, tok)
        yield mask
        known = 0 <= token < len(mask)
        if not (known and mask[token] and matcher.consume_token(token)):
            raise NotAllowed(position, tok.decode([token]) if known else f"id {token}")
    yield _mask(matcher, tok)


def allowed_tokens(
    schema: dict[str, Any] | str, prefix_ids: Sequence[int], tok: CourseTokenizer
) -> list[int]:
    """The ids that may follow `prefix_ids` (the reply so far), in ascending order.

    >>> [tok.decode([i]) for i in allowed_tokens({"const": 7}, [], tok)]  # doctest: +SKIP
    ['7']
    """
    for mask in walk(schema, prefix_ids, tok):
        last = mask
    return [int(token) for token in last.nonzero()[0]]


def token_texts(ids: Sequence[int], tok: CourseTokenizer, n: int = 8) -> list[str]:
    """The texts of `n` of these tokens, shortest first, then in the order of their ids.

    >>> token_texts([9707, 0], tok)  # doctest: +SKIP
    ['!', 'Hello']
    """
    texts = [tok.decode([token]) for token in ids]
    return sorted(texts, key=len)[:n]  # sorted() keeps the order of ids among equally long ones


def complete(schema: dict[str, Any] | str, ids: Sequence[int], tok: CourseTokenizer) -> bool:
    """Whether the reply may end after these ids: the text is one the schema accepts.

    >>> complete({"type": "boolean"}, tok.encode("tru"), tok)  # doctest: +SKIP
    False
    """
    return tok.end_id in set(allowed_tokens(schema, ids, tok))


def _matcher(schema: dict[str, Any] | str, tok: CourseTokenizer) -> Any:
    import llguidance

    text = schema if isinstance(schema, str) else canonical_grammar(schema)
    # The very text that llama.cpp makes of a request's JSON schema when built with llguidance.
    grammar = llguidance.LLMatcher.grammar_from_lark(f"%llguidance {{}}\nstart: %json {text}")
    matcher = llguidance.LLMatcher(_vocabulary(tok), grammar, log_level=0)
    if matcher.is_error():
        reason = " ".join(matcher.get_error().split())
        raise CourseError(f"This JSON schema cannot be used as a grammar: {reason}")
    return matcher


def _mask(matcher: Any, tok: CourseTokenizer) -> np.ndarray:
    import llguidance.numpy as bits
    import numpy as np

    size = _vocabulary(tok).vocab_size
    packed = bits.allocate_token_bitmask(1, size)  # 32 tokens to a number
    bits.fill_next_token_bitmask(matcher, packed)
    return np.unpackbits(packed[0].view(np.uint8), bitorder="little")[:size].astype(bool)


@lru_cache
def _vocabulary(tok: CourseTokenizer) -> Any:
    # Some seconds: every token's bytes go into one search tree.
    import llguidance

    text = (tok.path / "tokenizer.json").read_text(encoding="utf-8")
    control = {t["content"]: t["id"] for t in json.loads(text)["added_tokens"]}
    return llguidance.LLTokenizer(text, eos_token=[control[name] for name in ENDS])
