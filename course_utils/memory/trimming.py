"""Cut a history down to a token budget without breaking it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import isfinite
from numbers import Real
from typing import Any

from course_utils.errors import CourseError
from course_utils.memory.history import as_message, check_list, role_of, whole_tails, with_content

Count = Callable[[list[Any]], int]


class BudgetTooSmall(CourseError):
    """Not even the least that must be kept fits; `needed` is the budget that it takes."""

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


def trim(messages: Sequence[Any], budget: int, count: Count) -> list[Any]:
    """The newest messages that fit in `budget` tokens, as `count` counts them.

    Four rules: the newest messages stay; a leading system message always stays, and is counted;
    no message is cut; what is kept begins with a user message. A tool result also never loses the
    call that it answers. `count` takes a list of messages and returns tokens: `model.count`, a
    `TokenCounter` or its `whole`, or any function that grows with the list. It is asked a few times
    about little more than what fits, and what is dropped beyond that is not looked at, so the time
    grows with the budget, not with the history.

    LangChain's `trim_messages(strategy="last", include_system=True, start_on="human")` keeps the
    same messages, given `TokenCounter` and the budget less `TokenCounter.fixed`. It differs in
    that it returns the system message alone, or nothing, where this raises; and in that a user
    message standing between a call and its result makes it keep the result without the call.

    Raises BudgetTooSmall if the system message and the newest user turn need more, and CourseError
    if there is no user message to begin with, or for what is no list, no number or no function.
    Source of the rules: the usual policy of chat frameworks, as in the documentation of
    LangChain's `trim_messages`.

    >>> trim([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], 1, len)
    [{'role': 'user', 'content': 'b'}]
    """
    _check(messages, budget, count)
    if not messages:
        return []
    head = list(messages[:1]) if role_of(messages[0]) == "system" else []
    starts = _Lazy(_starts(messages, len(head)))

    def kept(start: int) -> list[Any]:
        return [*head, *messages[start:]]

    if not starts.has(0):
        raise CourseError(_no_start(messages, len(head)))
    needed = count(kept(starts[0]))
    if needed > budget:
        raise BudgetTooSmall(_too_small(budget, needed, head, kept(starts[0])), needed)
    best = _last_that_fits(starts.has, lambda i: count(kept(starts[i])), budget, needed)
    return kept(starts[best])


def shorten_results(
    messages: Sequence[Any], budget: int, count: Count, *, keep: int = 1
) -> list[Any]:
    """The history with its oldest tool results replaced by a note, as few as make it fit.

    The newest `keep` results stay whole, and so does all that people and the model wrote: the
    model still sees what it asked for and when. A result shorter than the note stays too. Raises
    BudgetTooSmall if that is not enough.

    >>> shorten_results([{"role": "user", "content": "Hi"}], 1, len)
    [{'role': 'user', 'content': 'Hi'}]
    """
    _check(messages, budget, count)
    messages = list(messages)
    if not messages:
        return []
    results = [index for index, message in enumerate(messages) if role_of(message) == "tool"]
    notes = {}
    for index in results[: max(0, len(results) - keep)]:
        text = as_message(messages[index]).content
        note = f"[result of {len(text)} characters left out]"
        if len(note) < len(text):
            notes[index] = with_content(messages[index], note)

    def shortened(number: int) -> list[Any]:
        chosen = set(list(notes)[:number])
        return [notes[i] if i in chosen else message for i, message in enumerate(messages)]

    needed = count(shortened(len(notes)))
    if needed > budget:
        raise BudgetTooSmall(
            f"With every old tool result left out the history still has {needed} tokens, and the "
            f"budget is {budget}. Give at least {needed}, or drop old turns with trim.",
            needed,
        )
    whole = len(notes)
    best = _last_that_fits(
        lambda left: left <= whole, lambda left: count(shortened(whole - left)), budget, needed
    )
    return shortened(whole - best)


def is_number(value: Any) -> bool:
    """Whether it can be a number of tokens: neither text, nor nothing, nor endless."""
    return isinstance(value, Real) and isfinite(value)


def _check(messages: Any, budget: Any, count: Any) -> None:
    check_list(messages, "__getitem__")
    if not is_number(budget):
        raise CourseError(f"A budget is a number of tokens, not {budget!r}.")
    if not callable(count):
        raise CourseError(
            f"What counts is a function from a list of messages to tokens, such as model.count or "
            f"TokenCounter(model.tokenizer), not a {type(count).__name__}."
        )


class _Lazy:
    """An iterator read as a list, as far as it is asked for."""

    def __init__(self, values: Iterator[int]) -> None:
        self._values = values
        self._known: list[int] = []

    def has(self, position: int) -> bool:
        missing = position + 1 - len(self._known)
        self._known.extend(islice(self._values, max(0, missing)))
        return position < len(self._known)

    def __getitem__(self, position: int) -> int:
        return self._known[position]


def _starts(messages: Sequence[Any], first: int) -> Iterator[int]:
    """Where the kept part may begin, newest first: at a user message, no result without its call.

    A history that is only a system message ends where it begins.
    """
    if len(messages) == first:
        yield first
    for index in whole_tails(messages, first):
        if role_of(messages[index]) == "user":
            yield index


def _last_that_fits(
    has: Callable[[int], bool], tokens: Callable[[int], int], budget: int, least: int
) -> int:
    """The last candidate of at most `budget` tokens; candidate 0 has `least`, and fits.

    Tokens grow with the candidate, so it is guessed from the tokens a candidate had so far, and
    once one is known not to fit, from the line between the two. Every second guess doubles or
    halves instead, which bounds their number by twice the logarithm of what fits. Nothing far
    beyond the budget is looked at.
    """
    good, spent = 0, least
    bad, excess, step, guessing = None, 0, 0, True
    while has(good + 1) and (bad is None or bad - good > 1):
        if bad is None:
            guess = int((budget - spent) * (good + 1) / max(1, spent))
            step = max(1, guess if guessing else 2 * step)
            while not has(good + step):
                step = max(1, step // 2)
            candidate = good + step
        else:
            share = (budget - spent) / (excess - spent) if guessing else 0.5
            candidate = min(max(good + round((bad - good) * share), good + 1), bad - 1)
        found = tokens(candidate)
        if found <= budget:
            good, spent = candidate, found
        else:
            bad, excess = candidate, found
        guessing = not guessing
    return good


def _no_start(messages: Sequence[Any], first: int) -> str:
    users = any(role_of(message) == "user" for message in messages[first:])
    reason = "a tool result in it answers no call" if users else "it has no user message"
    return f"This history cannot be trimmed to one that begins with a user message: {reason}."


def _too_small(budget: int, needed: int, head: list[Any], least: list[Any]) -> str:
    what = "system message" if len(least) == len(head) else "newest user turn"
    if head and len(least) > 1:
        what = "system message and the newest user turn"
    verb = "need" if " and " in what else "needs"
    return (
        f"The budget of {budget} tokens is too small: the {what} {verb} {needed}. "
        f"Give at least {needed}, or shorten what they say."
    )
