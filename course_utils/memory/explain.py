"""The four rules of trimming, step by step, each of which can be switched off to see what it does.

`trim` is what a program calls. `explain` walks the same way aloud, on token costs alone, for a
table, a picture or a slider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from course_utils.errors import CourseError
from course_utils.memory.history import role_of, whole_tails
from course_utils.memory.trimming import is_number


@dataclass(frozen=True)
class Rules:
    """Which rules hold; all of them by default.

    >>> Rules(start_with_user=False).keep_system
    True
    """

    newest_first: bool = True
    keep_system: bool = True
    whole_messages: bool = True
    start_with_user: bool = True
    keep_pairs: bool = True


@dataclass(frozen=True)
class Step:
    """What became of one message: `kept_tokens` of its `tokens`, why, and the total until then.

    `total` is how many tokens were taken when the message had been looked at, or, for the one that
    did not fit, would have been.
    """

    index: int
    role: str
    tokens: int
    kept_tokens: int
    why: str
    total: int

    @property
    def kept(self) -> bool:
        """Whether any of it is sent."""
        return self.kept_tokens > 0 or (self.tokens == 0 and self.why.startswith("kept"))


def explain(
    messages: Sequence[Any], costs: Sequence[int], budget: int, rules: Rules | None = None
) -> list[Step]:
    """One Step a message, in the conversation's order.

    `costs` are tokens, one a message (`TokenCounter.costs`, or numbers made up for an example);
    the budget is for their sum. With all rules on, the kept messages are those of `trim`. Raises
    CourseError if there is not one cost a message, or something is no number.

    >>> [s.kept for s in explain([{"role": "user", "content": "Hi"}], [5], 4)]
    [False]
    """
    rules = rules or Rules()
    if len(messages) != len(costs):
        raise CourseError(f"{len(messages)} messages need as many costs, not {len(costs)}.")
    for number in (budget, *costs):
        if not is_number(number):
            raise CourseError(f"A budget and costs are numbers of tokens, not {number!r}.")
    roles = [role_of(message) for message in messages]
    steps: dict[int, Step] = {}
    total, body = 0, list(range(len(messages)))
    if rules.keep_system and roles[:1] == ["system"]:
        total = costs[0]
        steps[0] = Step(0, "system", costs[0], costs[0], "kept: the system message, always", total)
        body = body[1:]
    walk = body[::-1] if rules.newest_first else body
    full = False
    for index in walk:
        step = _step(index, roles[index], costs[index], total, budget, full, rules)
        steps[index] = step
        total += step.kept_tokens
        full = full or not step.why.startswith("kept")
    kept = [index for index in body if steps[index].kept]
    for index, why in _dropped_after(messages, roles, kept, rules):
        steps[index] = replace(steps[index], kept_tokens=0, why=why)
    return [steps[index] for index in range(len(messages))]


def _step(
    index: int, role: str, cost: int, total: int, budget: int, full: bool, rules: Rules
) -> Step:
    if full:
        side = "older" if rules.newest_first else "newer"
        return Step(index, role, cost, 0, f"dropped: {side} than one that did not fit", total)
    if total + cost <= budget:
        return Step(index, role, cost, cost, "kept: fits", total + cost)
    room = budget - total
    if rules.whole_messages or room <= 0:
        why = f"dropped: would make {total + cost} of {budget}"
        return Step(index, role, cost, 0, why, total + cost)
    return Step(index, role, cost, room, f"cut: {room} of {cost} tokens fit", budget)


def _dropped_after(
    messages: Sequence[Any], roles: list[str], kept: list[int], rules: Rules
) -> list[tuple[int, str]]:
    """What fits and is dropped all the same, with the reason."""
    dropped = []
    while kept:
        tail = [messages[index] for index in kept]
        torn = rules.keep_pairs and 0 not in set(whole_tails(tail))
        role = roles[kept[0]]
        if not torn and (role == "user" or not rules.start_with_user):
            break
        # A user message goes only because a result further on has lost its call.
        pair = role == "tool" or (role == "user" and torn)
        why = "call and result stay together" if pair else "its question was cut off"
        dropped.append((kept.pop(0), f"dropped: {why}"))
    return dropped
