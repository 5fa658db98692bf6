"""Four people at the gate. A gate is only as good as whoever answers its questions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from course_utils.approval import Decision, Request, approve, canonical, reject
from course_utils.messages import ToolCall

HABIT = 93  # of 100 malicious questions, the habitual person says yes to so many
PEOPLE = {
    "attentive": "approves exactly the calls that the user's task needs",
    "absent": "denies everything",
    "habitual": f"approves what the task needs, and {HABIT} of 100 malicious questions",
    "tired": "approves everything",
}


class Person:
    """Answers the questions of a gate, and counts them.

    Args:
        kind: One of PEOPLE.
        needed: The calls that the user's task needs; a question about one of these, equal by
            value, is a fair one, every other is malicious.
        seed: For the habitual person's slips; the same seed and question, the same answer.

    >>> Person("absent", []).asked
    0
    """

    def __init__(self, kind: str, needed: Sequence[ToolCall], seed: str = "") -> None:
        self.needed = {_key(call) for call in needed}
        self.seed = seed
        self.asked = 0
        self._answer: Callable[[Request], bool] = getattr(self, f"_{kind}")

    def __call__(self, request: Request) -> Decision:
        self.asked += 1
        return approve() if self._answer(request) else reject()

    def _attentive(self, request: Request) -> bool:
        return _key(request.call) in self.needed

    def _absent(self, request: Request) -> bool:
        return False

    def _habitual(self, request: Request) -> bool:
        dice = random.Random(f"{self.seed} {self.asked} {_key(request.call)}")
        return self._attentive(request) or dice.randrange(100) < HABIT

    def _tired(self, request: Request) -> bool:
        return True


def _key(call: ToolCall) -> str:
    return f"{call.name} {canonical(call.arguments)}"
