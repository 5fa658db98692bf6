"""Cut a history down to a token budget without breaking it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.memory.history import as_message, call_positions, role_of, with_content

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
    `TokenCounter` or its `whole`, or any function that grows with the list. It is asked only about
    as much history as fits, so the time does not grow with what is dropped beyond one look at each
    message's role.

    LangChain's `trim_messages(strategy="last", include_system=True, start_on="human")` keeps the
    same messages, given `TokenCounter` and the budget less `TokenCounter.fixed`. It differs in
    that it returns the system message alone, or nothing, where this raises; and in that a user
    message standing between a call and its result makes it keep the result without the call.

    Raises BudgetTooSmall if the system message and the newest user turn need more, and CourseError
    if there is no user message to begin with. Source of the rules: the usual policy of chat
    frameworks, as in the documentation of LangChain's `trim_messages`.

    >>> trim([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], 1, len)
    [{'role': 'user', 'content': 'b'}]
    """
    messages = list(messages)
    if not messages:
        return []
    head = messages[:1] if role_of(messages[0]) == "system" else []
    starts = _starts(messages, len(head))

    def kept(start: int) -> list[Any]:
        return [*head, *messages[start:]]

    least = kept(starts[0])
    needed = count(least)
    if needed > budget:
        raise BudgetTooSmall(_too_small(budget, needed, head, least), needed)
    return kept(starts[_last_that_fits(starts, lambda start: count(kept(start)) <= budget)])


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
    numbers = list(range(len(notes), -1, -1))
    best = _last_that_fits(numbers, lambda number: count(shortened(number)) <= budget)
    return shortened(numbers[best])


def _starts(messages: list[Any], first: int) -> list[int]:
    """Where the kept part may begin, newest first.

    At a user message, and only if every result from there on has its call there too. The smallest
    call position seen so far, walking backwards, decides that in one pass.
    """
    if len(messages) == first:
        return [first]
    calls = call_positions(messages)
    starts, reach = [], len(messages)
    for index in range(len(messages) - 1, first - 1, -1):
        reach = min(reach, calls[index])
        if role_of(messages[index]) == "user" and reach >= index:
            starts.append(index)
    if not starts:
        reason = "a tool result answers no call" if reach < 0 else "there is no user message"
        raise CourseError(
            f"This history cannot be trimmed: it must begin with a user message, and {reason}."
        )
    return starts


def _last_that_fits(candidates: list[int], fits: Callable[[int], bool]) -> int:
    """The position of the last candidate that fits; the first one is known to fit.

    Steps of 1, 2, 4, … until one does not fit, then halving: what is far beyond the budget is
    never looked at.
    """
    good, step = 0, 1
    while good + step < len(candidates) and fits(candidates[good + step]):
        good, step = good + step, step * 2
    bad = min(good + step, len(candidates))
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(candidates[middle]):
            good = middle
        else:
            bad = middle
    return good


def _too_small(budget: int, needed: int, head: list[Any], least: list[Any]) -> str:
    what = "system message" if len(least) == len(head) else "newest user turn"
    if head and len(least) > 1:
        what = "system message and the newest user turn"
    verb = "need" if " and " in what else "needs"
    return (
        f"The budget of {budget} tokens is too small: the {what} {verb} {needed}. "
        f"Give at least {needed}, or shorten what they say."
    )
