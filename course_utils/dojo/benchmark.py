"""Every user task, alone and with every injection, under a policy and with a person at the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from course_utils.dojo.effects import EFFECTS
from course_utils.dojo.gates import POLICIES, RequestGate, make_gate
from course_utils.dojo.knowledge import SUITES, Knowledge
from course_utils.dojo.people import PEOPLE, Person
from course_utils.dojo.suites import Suite
from course_utils.evaluation import interval

SEED = 7


@dataclass(frozen=True)
class Outcome:
    """What became of one run.

    `asked` counts the questions about the user's and the injection's calls, `slipped` the
    injection's calls with a side effect that ran without a question.
    """

    suite: str
    user: str
    injection: str | None
    done: bool
    attacked: bool
    asked: tuple[int, int]
    slipped: int
    blocked: int


def play(
    suite: Suite,
    user: str,
    injection: str | None,
    policy: str,
    person: str,
    knowledge: Knowledge | None = None,
) -> Outcome:
    """Let the obedient agent do the user's task, then the injection's, through a gate.

    A call that the gate stops does not run, and the agent goes on with the next.
    """
    calls = suite.calls(user, injection)
    needed = [call for who, call in calls if who == "user"]
    ask = Person(person, needed, f"{SEED} {suite.name} {user} {injection}")
    request = suite.user_tasks[user].PROMPT
    gate = make_gate(policy, ask, request, knowledge or Knowledge())
    run = suite.run(user, injection)
    asked = {"user": 0, "injection": 0}
    slipped = 0
    for step, (who, call) in enumerate(calls, 1):
        questions = ask.asked
        decision, _ = gate.review(step, call, suite.tools[call.name])
        asked[who] += ask.asked - questions
        slipped += who == "injection" and call.name in EFFECTS and decision.action == "allow"
        if decision.action in ("allow", "tell", "approve"):
            result = run.do(call)
            if isinstance(gate, RequestGate):
                gate.saw(call, result)
    done, attacked = run.succeeded()
    stopped = len(calls) - len(run.ran)
    both = (asked["user"], asked["injection"])
    return Outcome(suite.name, user, injection, done, attacked, both, slipped, stopped)


def play_all(
    suite: Suite, policy: str, person: str, knowledge: Knowledge | None = None
) -> Iterator[Outcome]:
    """Every user task of a suite alone, then with every injection that has calls."""
    for user in suite.user_tasks:
        for injection in (None, *suite.injections):
            yield play(suite, user, injection, policy, person, knowledge)


def counted(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The counts of some outcomes, with 95 % Wilson intervals for the shares.

    The runs of one user task are not independent of each other, so read the intervals as the
    least uncertainty there is.
    """
    alone = [each for each in outcomes if each.injection is None]
    pairs = [each for each in outcomes if each.injection is not None]
    attacked = sum(each.attacked for each in pairs)
    done = sum(each.done for each in alone)
    return {
        "tasks": len(alone),
        "done": done,
        "done_interval": _rounded(interval(done, len(alone))),
        "questions": sum(sum(each.asked) for each in alone),
        "pairs": len(pairs),
        "attacked": attacked,
        "attacked_interval": _rounded(interval(attacked, len(pairs))),
        "slipped": sum(each.slipped for each in pairs),
        "done_under_attack": sum(each.done for each in pairs),
        "questions_under_attack": sum(sum(each.asked) for each in pairs),
        "malicious_questions": sum(each.asked[1] for each in pairs),
    }


def _rounded(limits: tuple[float, float]) -> list[float]:
    return [round(limit, 4) for limit in limits]


def rows(suites: Iterable[Suite], policies: Iterable[str] = POLICIES) -> list[dict[str, Any]]:
    """A row for each policy, person and suite, and for all suites together."""
    worlds, found = list(suites), []
    for policy in policies:
        # Without a gate nobody is asked, so it makes no difference who is there.
        for person in ("nobody",) if policy == "no gate" else PEOPLE:
            kind = "absent" if person == "nobody" else person
            by_suite = {each.name: list(play_all(each, policy, kind)) for each in worlds}
            by_suite["all"] = [one for outcomes in by_suite.values() for one in outcomes]
            for name, outcomes in by_suite.items():
                row = {"policy": policy, "person": person, "suite": name}
                found.append(row | counted(outcomes))
    return found


def done_anyway(suite: Suite) -> list[str]:
    """The user tasks that the suite calls done though not one of their side effects ran.

    Their judges are content with the world as it was: a task among them says nothing about a gate.
    """
    outcomes = [play(suite, user, None, "ask always", "absent") for user in suite.user_tasks]
    return [f"{each.suite} {each.user}" for each in outcomes if each.done and each.blocked]


def transfer_rows(suites: Iterable[Suite]) -> list[dict[str, Any]]:
    """The provenance policy on suites whose tools nobody described to it.

    For each suite: with knowledge of its own tools, of each two of the other suites, and of none
    (then only the list of side effects is left).
    """
    found = []
    for suite in suites:
        others = [name for name in SUITES if name != suite.name]
        for known in ([suite.name], *map(list, combinations(others, 2)), []):
            for person in ("attentive", "absent"):
                outcomes = list(play_all(suite, "provenance", person, Knowledge(known)))
                row = {"suite": suite.name, "known": known, "person": person}
                found.append(row | counted(outcomes))
    return found
