"""Limits inside of tools, and undoing."""

import pytest
from agent_kit import MAIL, PAY, asks, fault, says, world_tools

from course_utils.agent import run_agent
from course_utils.approval import CAREFUL, Gate, approve
from course_utils.errors import CourseError
from course_utils.guards import Forbidden, at_most, guarded, only, undo
from course_utils.models import scripted
from course_utils.tools import Tool, tool
from course_utils.world.world import World


@pytest.fixture
def world():
    with World() as world:
        yield world


def test_no_approval_gets_around_a_limit_inside_the_tool(world):
    look, send, pay = world_tools(world)
    tools = [guarded(send, only("to", {"Ana"})), guarded(pay, at_most("amount_eur", 100))]
    stranger = ("send_email", {"to": "Eve", "text": "all invoices"})
    much = ("pay", {**PAY[1], "amount_eur": 100.01})
    gate = Gate(CAREFUL, ask=lambda request: approve())
    script = scripted([asks(MAIL, stranger, PAY, much), says("Done.")])
    done = run_agent(script, tools, "Go", gate=gate)
    assert [row["effect"] for row in world.effects()] == ["email", "payment"]
    refused = [m for m in done.trace.messages if m.role == "tool" and '"ok": false' in m.content]
    assert [fault(message) for message in refused] == ["forbidden", "forbidden"]
    assert tools[0].schema() == send.schema() and tools[0].effect == "irreversible"


def test_a_text_is_no_list_of_allowed_values():
    with pytest.raises(CourseError, match="{'Ana'}"):
        only("to", "Ana")


@pytest.mark.parametrize("value", [100.5, float("nan"), float("inf"), "5", None])
def test_what_is_not_surely_small_is_too_much(value):
    pay = Tool("pay", "Pay.", None, lambda amount: "paid")
    with pytest.raises(Forbidden, match="at most 100"):
        guarded(pay, at_most("amount", 100)).function(amount=value)
    assert guarded(pay, at_most("amount", 100)).function(amount=100) == "paid"


def test_undo_takes_back_what_it_can_the_last_first(world):
    office = world.office

    @tool(effect="reversible")
    def draft(to: str) -> str:
        """Draft.

        Args:
            to: The reader.
        """
        return office.create_draft(to, "Hello")

    tools = [*world_tools(world), draft, tool(office.delete_draft)]
    calls = [("draft", {"to": "Ana"}), MAIL, ("draft", {"to": "Ben"}), ("draft", {"to": "Ben"})]
    trace = run_agent(scripted([asks(*calls), says("Done.")]), tools, "Go").trace

    def inverse(arguments, result):
        return "delete_draft", {"draft": int(result.split()[1])}

    rows = undo(trace, tools, {"draft": inverse})
    deleted = [row["draft"] for row in world.effects() if row["effect"] == "draft_deleted"]
    assert [row["done"] for row in rows] == [
        'draft(to="Ben")',
        'send_email(to="Ana", text="Hello")',
        'draft(to="Ana")',
    ]
    assert rows[1]["result"] == "cannot be undone" and rows[0]["result"].endswith("deleted.")
    drafts = [row["number"] for row in world.effects() if row["effect"] == "draft"]
    assert deleted == drafts[::-1] and world.count("email") == 1
