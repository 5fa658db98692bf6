"""What trimming a long history costs, beside the library: python tests/benchmarks/trimming.py

The same 5,000 messages, budget and counter for both, in one process, one after the other in several
rounds; the best round of each counts. Two counters: the exact one, which renders and tokenizes the
messages it is given, and the one that adds up remembered costs (filled before the clock starts).
The seconds are those of this machine; the ratios are the point.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, trim_messages

from course_utils.memory import TokenCounter, count_tokens, trim
from course_utils.models.tokenizer import tokenizer

MESSAGES = 5_000
BUDGET = 2_000
ROUNDS = 3
TOK = tokenizer("qwen2.5-coder")
WORDS = (
    "the order from Moscow was late again so please tell me when it leaves the warehouse".split()
)


def history() -> list[Any]:
    rng = random.Random(0)
    messages: list[Any] = [SystemMessage("You are a helpful assistant. Be brief.")]
    for number in range(MESSAGES - 1):
        kind = AIMessage if number % 2 else HumanMessage
        messages.append(kind(" ".join(rng.choices(WORDS, k=rng.randint(3, 40)))))
    return messages


def best(action: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def exact(messages: list[Any]) -> int:
    """The messages' tokens as rendered: no reply marker, no system message of the template's own.

    Parts of a history without its system message are rendered behind a short one, whose tokens are
    taken off again: otherwise the library's sums would count a default system message every time.
    """
    if isinstance(messages[0], SystemMessage):
        return count_tokens(messages, TOK, generation_prompt=False)
    return count_tokens([ANCHOR, *messages], TOK, generation_prompt=False) - ANCHOR_TOKENS


ANCHOR = SystemMessage("x")
ANCHOR_TOKENS = count_tokens([ANCHOR], TOK, generation_prompt=False)


def main() -> None:
    messages = history()
    added = TokenCounter(TOK)
    print(f"{MESSAGES} messages, {added(messages)} tokens, budget {BUDGET}, {ROUNDS} rounds")
    for name, count in [("exact, rendered", exact), ("remembered costs", added)]:

        def library(count: Callable[[list[Any]], int] = count) -> list[Any]:
            return trim_messages(
                messages,
                max_tokens=BUDGET,
                token_counter=count,
                strategy="last",
                include_system=True,
                start_on="human",
            )

        def ours(count: Callable[[list[Any]], int] = count) -> list[Any]:
            return trim(messages, BUDGET, count)

        theirs_seconds, theirs = best(library)
        our_seconds, kept = best(ours)
        assert kept == theirs, "the two keep different messages"
        print(
            f"{name:>17}: trim_messages {theirs_seconds * 1000:8.1f} ms, trim "
            f"{our_seconds * 1000:6.1f} ms, {theirs_seconds / our_seconds:5.0f} times; "
            f"both keep {len(kept)} messages, {added(kept)} tokens"
        )


if __name__ == "__main__":
    main()
