"""What the tests of the agent share: scripted calls, tools on a world, a strict reader."""

from __future__ import annotations

import json
from typing import Any

from course_utils.messages import Message, Reply, ToolCall
from course_utils.tools import Tool, tool
from course_utils.world.world import World


def asks(*calls: tuple[str, dict[str, Any]], **counts: int) -> Reply:
    """A reply that makes calls, with the ids call_1, call_2, …"""
    made = tuple(
        ToolCall(f"call_{number}", name, arguments)
        for number, (name, arguments) in enumerate(calls, start=1)
    )
    return Reply("(calls)", "scripted", "script", tool_calls=made, **counts)


def says(text: str, **counts: int) -> Reply:
    """A reply that answers."""
    return Reply(text, "scripted", "script", content=text, **counts)


class Follows:
    """A model whose reply depends on the conversation alone, as a real one's does: it gives the
    reply whose number is the count of replies that it can see."""

    name = "follows"

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.asked = 0

    def chat(self, messages: list[Message], tools: Any = None, **settings: Any) -> Reply:
        self.asked += 1
        return self.replies[sum(message.role == "assistant" for message in messages)]


def world_tools(world: World) -> list[Tool]:
    """A read, a write with a key, and a write without one."""

    @tool
    def get_invoice(invoice_id: str) -> dict:
        """Look at an invoice.

        Args:
            invoice_id: The invoice.
        """
        return world.office.get_invoice_status(invoice_id)

    @tool(effect="irreversible")
    def send_email(to: str, text: str, idempotency_key: str | None = None) -> str:
        """Send an e-mail.

        Args:
            to: The reader.
            text: The text.
            idempotency_key: Only the loop knows it.
        """
        return world.outbox.send(to, text, key=idempotency_key)

    @tool(effect="irreversible")
    def pay(invoice_id: str, amount_eur: float) -> str:
        """Pay an invoice.

        Args:
            invoice_id: The invoice.
            amount_eur: The amount.
        """
        return world.office.pay_invoice(invoice_id, amount_eur)

    return [get_invoice, send_email, pay]


LOOK = ("get_invoice", {"invoice_id": "INV-004217"})
MAIL = ("send_email", {"to": "Ana", "text": "Hello"})
PAY = ("pay", {"invoice_id": "INV-004217", "amount_eur": 5})


def check_transcript(messages: list[Message]) -> None:
    """What strict chat templates demand: the system message only first, user and assistant in
    turn, each call answered once, directly after it and in its order, no other tool message."""
    rest = list(messages)
    if rest[0].role == "system":
        rest.pop(0)
    expected = "user"
    while rest:
        message = rest.pop(0)
        assert message.role == expected, f"{message.role} instead of {expected}"
        for call in message.tool_calls:
            assert rest and rest[0].role == "tool", f"{call.id} has no result"
            assert rest.pop(0).tool_call_id == call.id
        if message.role == "assistant" and not message.tool_calls:
            expected = "user"
        else:
            expected = "assistant"


def fault(message: Message) -> str:
    """The name of the error in a tool message."""
    record, _ = json.JSONDecoder().raw_decode(message.content)
    assert record["ok"] is False and record["hint"]
    return record["error"]
