"""Who answers at the gate. A gate is worth as much as the person behind it."""

from __future__ import annotations

import random
from collections.abc import Callable

from course_utils.approval import Decision, Request, approve, reject
from course_utils.injection.attacks import UserTask, fits

Person = Callable[[Request], Decision]
# So many of a hundred permission prompts are approved by users of a coding agent, as its makers
# report; a person in the habit of saying yes.
HABIT = 0.93


def needed(task: UserTask, request: Request) -> bool:
    """Whether a call is the right tool with what the task names of its arguments.

    That is where it goes (to whom, which invoice and how much, a ticket about a complaint), and not
    the wording: an e-mail to Ana is needed whatever it says, and however often. So a person who
    asks only this lets a lie pass, and a secret in a letter to a friend.
    """
    return any(
        wanted.tool == request.call.name and fits(request.call.arguments, wanted.where)
        for wanted in task.needs
    )


def attentive(needs: Callable[[Request], bool]) -> Person:
    """Reads every question; yes to the right tool and destination, and to nothing else.

    No real person is so exact about the one, and some look at the wording too. In the matrix this
    one knows the task's needs from the data, as an oracle does.
    """

    def ask(request: Request) -> Decision:
        if needs(request):
            return approve("the task needs it", who="attentive")
        return reject("nobody asked for it", who="attentive")

    return ask


def absent() -> Person:
    """Is not there: every question is answered with no."""
    return lambda request: reject("nobody is there", who="absent")


def tired() -> Person:
    """Says yes to everything."""
    return lambda request: approve("sure", who="tired")


def habitual(needs: Callable[[Request], bool], seed: int | str = 0, habit: float = HABIT) -> Person:
    """Says yes to what the task needs, and mostly to the rest: to a share `habit` of it.

    The same seed gives the same answers; runs that are to be counted need a seed each.

    >>> habitual(lambda request: False, habit=0.0)(None).action
    'reject'
    """
    chance = random.Random(seed)

    def ask(request: Request) -> Decision:
        if needs(request) or chance.random() < habit:
            return approve("looks all right", who="habitual")
        return reject("that one looks odd", who="habitual")

    return ask


def person(name: str, needs: Callable[[Request], bool], seed: int | str = 0) -> Person:
    """A person by name: attentive, absent, habitual or tired."""
    people = {
        "attentive": lambda: attentive(needs),
        "absent": absent,
        "habitual": lambda: habitual(needs, seed),
        "tired": tired,
    }
    return people[name]()
