"""The checks of notebook 05: right answers pass, wrong ones are told their own mistake."""

import re

import nbformat
import pytest

from course_utils.approval import approve, modify, reject
from course_utils.cli import places
from course_utils.exercises import check, hint, known
from course_utils.exercises.checks_05 import CLASSES, READ
from course_utils.exercises.testing import assert_classifies


def test_every_exercise_has_three_hints():
    assert known("05") == ["05.1", "05.2", "05.3", "05.4"]
    for each in known("05"):
        assert len({hint(each).message for _ in range(3)}) == 3


def test_ellipsis_is_not_attempted():
    assert {check(each, ...).ok for each in known("05")} == {None}


@pytest.mark.parametrize("exercise_id", ["05.2", "05.4"])
def test_a_stub_is_not_attempted(exercise_id):
    assert check(exercise_id, lambda *args: ...).ok is None


def test_a_check_that_is_a_stub_is_not_attempted():
    assert check("05.4", lambda cap: lambda arguments: ...).ok is None


def test_classify_tools():
    assert_classifies(
        "05.1",
        right=[CLASSES, dict(reversed(CLASSES.items())), {k: list(v) for k, v in CLASSES.items()}],
        wrong=[
            ({**CLASSES, "translate": ("read", False)}, "text leaves the house"),
            ({**CLASSES, "check_link": ("read", False)}, "address itself can carry"),
            ({**CLASSES, "check_link": ("irreversible", True)}, "changes nothing"),
            ({**CLASSES, "block_day": ("irreversible", False)}, "taken out again"),
            ({**CLASSES, "send_email": ("reversible", True)}, "cannot be unread"),
            ({**CLASSES, "send_email": ("irreversible", False)}, "carries its text out"),
            ({**CLASSES, "clear_log": ("reversible", False)}, "does not come back"),
            ({**CLASSES, "clear_log": ("irreversible", True)}, "carries nothing out"),
            ({**CLASSES, "clear_log": "irreversible"}, "give a pair"),
            ({**CLASSES, "clear_log": ("write", False)}, "no effect class"),
            ({**CLASSES, "clear_log": ("irreversible", "no")}, "True or False"),
            ({"translate": ("read", True)}, "block_day is missing"),
            (["read"], "dict from tool"),
        ],
    )


def clerk(call, open_eur, *, other=None, nothing=reject, cut=None, less=approve, strict=False):
    if call.name != "pay_invoice":
        return other() if other else None
    amount = call.arguments["amount_eur"]
    if open_eur == 0 and nothing:
        return nothing("Nothing is open.")
    if amount > open_eur:
        new = {**call.arguments, "amount_eur": open_eur} if cut is None else cut(call, open_eur)
        return modify(new, "Only what is open.") if isinstance(new, dict) else new
    return less() if amount < open_eur or not strict else reject("No.")


def with_fault(**changes):
    return lambda call, open_eur: clerk(call, open_eur, **changes)


def written_otherwise(call, open_eur):
    if call.name == "pay_invoice":
        wanted = call.arguments["amount_eur"]
        pays = min(wanted, open_eur)
        if not pays:
            return reject("It is paid.", who="clerk")
        if pays == wanted:
            return approve(who="clerk")
        return modify({"invoice_id": call.arguments["invoice_id"], "amount_eur": pays})


def changes_the_call(call, open_eur):
    if call.name == "pay_invoice":
        call.arguments["amount_eur"] = open_eur
    return approve()


def no_reason(call, open_eur):
    decision = clerk(call, open_eur)
    return reject() if decision is not None and decision.action == "reject" else decision


def test_clerk():
    assert_classifies(
        "05.2",
        right=[clerk, written_otherwise, with_fault(less=lambda: approve("Fits.", "Ana"))],
        wrong=[
            (with_fault(other=approve), "a person decides that"),
            (with_fault(other=lambda: reject("No.")), "a person decides that"),
            (with_fault(strict=True), "exactly what is open may be paid"),
            (with_fault(nothing=None), "nothing may be paid"),
            (with_fault(cut=lambda c, e: reject("Too much.")), "is cut down to it"),
            (with_fault(cut=lambda c, e: approve()), "is cut down to it"),
            (with_fault(cut=lambda c, e: {"amount_eur": e}), "needs all arguments"),
            (
                with_fault(cut=lambda c, e: {"invoice_id": "INV-004217", "amount_eur": e}),
                "another invoice",
            ),
            (with_fault(cut=lambda c, e: {**c.arguments, "amount_eur": e + 1}), "should become"),
            (with_fault(less=lambda: "approve"), "not the text"),
            (with_fault(less=lambda: True), "not the bool True"),
            (changes_the_call, "changes the call itself"),
            (no_reason, "needs a reason"),
            (lambda call: None, "TypeError"),
            (approve(), "should be a function"),
        ],
    )


def test_clerk_knows_no_refund_for_a_payment():
    def by_amount(call, open_eur):
        if "amount_eur" not in call.arguments:
            return None
        return clerk(type(call)("pay_invoice", call.arguments), open_eur)

    assert "no payment" in check("05.2", by_amount).message


def test_read_audit():
    assert_classifies(
        "05.3",
        right=[READ, {**READ, "paid_eur": 89.0}, {**READ, "without_a_yes": " open_ticket() "}],
        wrong=[
            ({**READ, "paid_eur": 890}, "a person changed that"),
            ({**READ, "paid_eur": 134}, "was not made"),
            ({**READ, "paid_eur": 45}, "ran with"),
            ({**READ, "person": 3}, "not policy"),
            ({**READ, "changes": 4}, "ran with"),
            ({**READ, "changes": 6}, "a read changes nothing"),
            ({**READ, "without_a_yes": "get_invoice_status"}, "is a read"),
            ({**READ, "without_a_yes": "delete_order"}, "its `who` is policy"),
            ({**READ, "changes": ...}, "'changes' is missing"),
            ([4, 3, 89, "open_ticket"], "dict with the keys"),
        ],
    )


def audit_table():
    """The rows of exercise 05.3 as the notebook shows them."""
    path = places.NOTEBOOKS / "05_effects_and_approval.ipynb"
    cells = [c for c in nbformat.read(path, as_version=4).cells if "long_run" in c.source]
    text = cells[0].outputs[-1].data["text/plain"]
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("----"))
    spans = [match.span() for match in re.finditer("-+", lines[at])]
    names = [lines[at - 1][start:end].strip() for start, end in spans]
    rows = []
    for line in lines[at + 1 :]:
        cells = [line[start:end].strip() for start, end in spans]
        if cells[0]:
            rows.append(cells)
        else:  # a long cell goes on
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    return [dict(zip(names, cells, strict=True)) for cells in rows]


def test_the_answer_is_what_the_table_says():
    rows = audit_table()
    changes = [row for row in rows if row["ran with"] and not row["effect"].startswith("read")]
    amounts = [re.search(r'"amount_eur": (\d+)', row["ran with"]) for row in changes]
    assert READ == {
        "person": sum(row["who"] != "policy" for row in rows),
        "changes": len(changes),
        "paid_eur": sum(int(each[1]) for each in amounts if each),
        "without_a_yes": " ".join(row["tool"] for row in changes if row["who"] == "policy"),
    }


def total_at_most(cap):
    spent = 0

    def check(arguments):
        nonlocal spent
        if spent + arguments["amount_eur"] > cap:
            return f"Only {cap - spent} are left."
        spent += arguments["amount_eur"]

    return check


def with_list(cap):
    paid = []

    def check(arguments):
        if sum(paid) + arguments["amount_eur"] <= cap:
            return paid.append(arguments["amount_eur"])
        return "Too much in all."

    return check


class TotalAtMost:
    def __init__(self, cap):
        self.left = cap

    def __call__(self, arguments):
        if arguments["amount_eur"] > self.left:
            return "Too much."
        self.left -= arguments["amount_eur"]
        return None


def no_memory(cap):
    return lambda arguments: "Too much." if arguments["amount_eur"] > cap else None


def counts_refused(cap):
    spent = 0

    def check(arguments):
        nonlocal spent
        spent += arguments["amount_eur"]
        return "Too much." if spent > cap else None

    return check


def below_only(cap):
    spent = 0

    def check(arguments):
        nonlocal spent
        if spent + arguments["amount_eur"] >= cap:
            return "Too much."
        spent += arguments["amount_eur"]

    return check


SHARED = []


def shared_memory(cap):
    if cap == 50:
        SHARED.clear()

    def check(arguments):
        key = (cap, arguments["amount_eur"])
        if arguments["amount_eur"] == 80 and key in SHARED:
            return "Too much."
        SHARED.append(key)
        return inner(arguments)

    inner = total_at_most(cap)
    return check


def forgets_the_first(cap):
    spent = 0

    def check(arguments):
        nonlocal spent
        if spent and spent + arguments["amount_eur"] > cap:
            return "Too much."
        spent += arguments["amount_eur"]

    return check


def test_cap_on_sum():
    assert_classifies(
        "05.4",
        right=[total_at_most, with_list, TotalAtMost],
        wrong=[
            (no_memory, "makes 120"),
            (counts_refused, "what was refused was not paid"),
            (below_only, "exactly the cap"),
            (shared_memory, "share one memory"),
            (forgets_the_first, "refused"),
            (lambda cap: lambda arguments: arguments["amount_eur"] <= cap, "complaint or None"),
            (lambda cap: lambda arguments: 1, "is a sentence"),
            (lambda cap: cap, "should return a function"),
            (lambda cap: lambda amount: amount > cap, "TypeError"),
            (100, "should be a function"),
        ],
    )
