"""Checks of notebook 05, effects and approval."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.exercises import call, describe, exercise, partly, right, short, wrong
from course_utils.exercises.calls import AnswerFailed, filled
from course_utils.exercises.feedback import Feedback

# -- 05.1: effect classes

EFFECTS = ("read", "reversible", "irreversible")
CLASSES = {
    "translate": ("read", True),
    "block_day": ("reversible", False),
    "send_email": ("irreversible", True),
    "clear_log": ("irreversible", False),
    "check_link": ("read", True),
}
# What to say about a wrong effect, and about a wrong flag.
WRONG_EFFECT = {
    "translate": "it changes nothing here or there: it only looks something up",
    "block_day": "an entry in the team's own calendar can be taken out again",
    "send_email": "an e-mail that was read cannot be unread",
    "clear_log": "what is deleted for good does not come back",
    "check_link": "it changes nothing; that it tells somebody something is the other value",
}
WRONG_FLAG = {
    "translate": "the text leaves the house, and with it whatever stands in it",
    "block_day": "nobody outside the team gets to see the calendar",
    "send_email": "an e-mail carries its text out to anybody",
    "clear_log": "deleting carries nothing out",
    "check_link": "the address itself can carry data to the server that is asked",
}


@exercise(
    "05.1",
    title="Classify five tools",
    hints=[
        "Two questions for each tool. What changes, and can it be taken back? Does data leave?",
        "A tool that only reads may still send something: its arguments.",
        "Two of the five are reads. Three of the five carry data out.",
    ],
)
def classify_tools(answer: Any) -> Feedback:
    if not isinstance(answer, Mapping):
        return wrong(f"Give a dict from tool to a pair, not {describe(answer)}.")
    missing = [name for name in CLASSES if answer.get(name, ...) is ...]
    if missing:
        return wrong(f"{missing[0]} is missing.")
    mistakes = []
    for name, (effect, open_world) in CLASSES.items():
        pair = answer[name]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return wrong(f'{name}: give a pair such as ("read", False), not {describe(pair)}.')
        if pair[0] not in EFFECTS:
            return wrong(f"{name}: {short(pair[0])} is no effect class.")
        if not isinstance(pair[1], bool):
            return wrong(f"{name}: the second value is True or False, not {describe(pair[1])}.")
        if pair[0] != effect:
            mistakes.append(f"{name} is not {pair[0]}: {WRONG_EFFECT[name]}.")
        elif pair[1] != open_world:
            mistakes.append(f"{name} is not ({pair[0]!r}, {pair[1]}): {WRONG_FLAG[name]}.")
    if not mistakes:
        return right("Two questions, asked apart: what changes, and what leaves.")
    return (partly if len(mistakes) < 3 else wrong)(mistakes[0])


# -- 05.2: a clerk's rules


@dataclass
class Call:
    """What a clerk is asked about."""

    name: str
    arguments: dict[str, Any]
    id: str = field(default="call_1")


def _pay(amount: float, invoice: str = "INV-004217") -> Call:
    return Call("pay_invoice", {"invoice_id": invoice, "amount_eur": amount})


# The call, what is open, the action, the amount after a modify, and what a wrong verdict forgets.
Case = tuple[Call, float, str | None, float | None, str]
CASES: list[Case] = [
    (_pay(89.0), 89.0, "approve", None, "exactly what is open may be paid"),
    (_pay(50.0), 89.0, "approve", None, "less than what is open may be paid"),
    (_pay(45, "INV-004218"), 45.0, "approve", None, "exactly what is open may be paid"),
    (_pay(890.0), 89.0, "modify", 89.0, "more than what is open is cut down to it"),
    (_pay(89.01), 89.0, "modify", 89.0, "more than what is open is cut down to it"),
    (_pay(100.0, "INV-004218"), 45.0, "modify", 45.0, "more than what is open is cut down to it"),
    (_pay(10.0), 0.0, "reject", None, "nothing is open, so nothing may be paid"),
    (Call("delete_order", {"order_id": "ORD-1001"}), 0.0, None, None, "a person decides that"),
    (Call("delete_order", {"order_id": "ORD-1001"}), 89.0, None, None, "a person decides that"),
    (
        Call("refund", {"payment": 1, "amount_eur": 5.0}),
        89.0,
        None,
        None,
        "it has an amount but is no payment, so a person decides",
    ),
]


@exercise(
    "05.2",
    title="A clerk's rules",
    hints=[
        "What is not the clerk's business comes first: any call but pay_invoice gives None.",
        "Nothing open: reject. More than open: modify. Otherwise: approve.",
        'modify({**call.arguments, "amount_eur": open_eur}) keeps the invoice and changes the '
        "amount.",
    ],
)
def clerk_rules(answer: Any) -> Feedback:
    for case in CASES:
        feedback = _judge_decision(answer, *case)
        if feedback is not None:
            return feedback
    return right("What the rules settle is settled; the rest waits for a person.")


def _judge_decision(
    clerk: Any, made: Call, open_eur: float, action: str | None, amount: float | None, why: str
) -> Feedback | None:
    asked = copy.deepcopy(made)
    given = call(clerk, asked, open_eur)
    if given is ...:
        raise AnswerFailed(Feedback("open", "Replace ... by your code and run the cells again."))
    what = f"{made.name}({_arguments(made)}) with {open_eur:g} open"
    if asked.arguments != made.arguments:
        return wrong("Your clerk changes the call itself. Leave it as it is and return a modify.")
    if isinstance(given, str):
        return wrong(f"Return a decision such as approve(), not the text {given!r}.")
    if given is not None and not hasattr(given, "action"):
        return wrong(f"Return approve, modify, reject or None, not {describe(given)}.")
    found = getattr(given, "action", None)
    if found != action:
        return wrong(f"{what}: your clerk says {found}, but {why}.")
    if action == "modify":
        return _judge_modify(given, made, amount, what)
    if action == "reject" and not str(given.why).strip():
        return partly("A rejection needs a reason: the model and the audit trail read it.")
    return None


def _judge_modify(given: Any, made: Call, amount: float, what: str) -> Feedback | None:
    new = given.arguments
    if set(new) != set(made.arguments):
        return wrong(f"{what}: a modify needs all arguments, your clerk gives {short(new)}.")
    if new["invoice_id"] != made.arguments["invoice_id"]:
        return wrong(f"{what}: your clerk pays another invoice, {new['invoice_id']!r}.")
    if new["amount_eur"] != amount:
        return wrong(f"{what}: the amount should become {amount:g}, not {new['amount_eur']!r}.")
    return None


def _arguments(made: Call) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in made.arguments.items())


# -- 05.3: read an audit trail

# What stands in the table of exercise 05.3; a test compares it with the run.
READ = {"person": 4, "changes": 3, "paid_eur": 89, "without_a_yes": "open_ticket"}
MISREAD = {
    "person": "count the rows whose `who` is a name and not policy",
    "changes": "count the rows that change the world and ran: a read changes nothing, and where "
    "`ran with` is empty nothing happened",
    "paid_eur": "what was paid stands in `ran with`",
    "without_a_yes": "it changed the world, and its `who` is policy",
}


@exercise(
    "05.3",
    title="Read an audit trail",
    hints=[
        "The column arguments is what the model wanted; ran with is what was let through.",
        "An empty ran with: nothing ran.",
        "The rule tell lets a call run without asking.",
    ],
)
def read_audit(answer: Any) -> Feedback:
    answer = filled(answer, READ)
    mistakes = [key for key in READ if _plain(answer[key]) != READ[key]]
    if not mistakes:
        return right("What was wanted, what was decided, what happened: three columns.")
    verdict = partly if len(mistakes) < 3 else wrong
    if _plain(answer["paid_eur"]) in (890, 935):
        return verdict("paid_eur: the model wanted to pay 890; a person changed that.")
    if _plain(answer["paid_eur"]) == 134:
        return verdict("paid_eur: the payment of 45 was rejected, so it was not made.")
    if _plain(answer["without_a_yes"]) == "get_invoice_status":
        return verdict("without_a_yes: get_invoice_status is a read, it changes nothing.")
    first = mistakes[0]
    return verdict(f"{first} is not {short(answer[first])}: {MISREAD[first]}.")


def _plain(value: Any) -> Any:
    return value.strip().removesuffix("()").casefold() if isinstance(value, str) else value


# -- 05.4: a cap on the sum

# Each trial: the cap, the amounts in order, and whether each may be paid.
TRIALS = [
    (100, [60, 60], [True, False], "the second payment of 60 makes 120"),
    (100, [100], [True], "exactly the cap is allowed"),
    (100, [60, 60, 40], [True, False, True], "what was refused was not paid: 60 + 40 fit"),
    (100, [101, 100], [False, True], "what was refused was not paid: 100 fits"),
    (50, [20, 20, 20], [True, True, False], "20 + 20 + 20 is more than 50"),
    (50, [51], [False], "a single payment above the cap is refused"),
]


@exercise(
    "05.4",
    title="A cap on the sum",
    hints=[
        "The check must remember what it let through: a variable of the outer function.",
        "Inside of check write nonlocal spent, or keep the amounts in a list.",
        "Add the amount only if you return None: what is refused was not paid.",
    ],
)
def cap_on_sum(answer: Any) -> Feedback:
    for cap, amounts, allowed, why in TRIALS:
        check = _made(answer, cap)
        found = [_allows(check, amount) for amount in amounts]
        if found != allowed:
            paid = ", ".join(map(str, amounts))
            verdict = ", ".join("allowed" if each else "refused" for each in found)
            return wrong(f"Cap {cap}, payments of {paid}: yours are {verdict}, but {why}.")
    return _two_caps(answer) or right("It remembers, and counts only what it let through.")


def _made(answer: Any, cap: float) -> Callable[..., Any]:
    check = call(answer, cap)
    if check is ...:
        raise AnswerFailed(Feedback("open", "Replace ... by your code and run the cells again."))
    if not callable(check):
        raise AnswerFailed(
            wrong(f"total_at_most({cap}) should return a function, not {describe(check)}.")
        )
    return check


def _allows(check: Callable[..., Any], amount: float) -> bool:
    given = call(check, {"invoice_id": "INV-004217", "amount_eur": amount})
    if given is ...:
        raise AnswerFailed(Feedback("open", "Replace ... by your code and run the cells again."))
    if isinstance(given, bool):
        raise AnswerFailed(wrong(f"A check returns a complaint or None, not {given}."))
    if given is not None and (not isinstance(given, str) or not given.strip()):
        raise AnswerFailed(wrong(f"A complaint is a sentence, not {describe(given)}."))
    return given is None


def _two_caps(answer: Any) -> Feedback | None:
    first, second = _made(answer, 100), _made(answer, 100)
    _allows(first, 80)
    if not _allows(second, 80):
        return wrong("Two caps share one memory: keep what was spent inside of total_at_most.")
    return None
