"""Invoices, payments, refunds, tickets, drafts and orders of a small shop.

Customers, orders and invoices are facts from `data/world/office.json` and never change. What
changes is derived from the rows of side effects: an invoice is paid because payments exist. So
forgetting the rows is all that a reset has to do. Amounts are kept in whole cents: 0.1 + 0.2 is
not 0.3 in floating point.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from course_utils.world.effects import Effects
from course_utils.world.problems import BadValue, NotFound, WorldError

DATA = Path(__file__).parents[2] / "data" / "world" / "office.json"
INVOICE_ID = re.compile(r"INV-[0-9]{6}")


class Office:
    """The shop's back office. Its methods are ready to be tools.

    >>> office = Office()
    >>> office.get_invoice_status("INV-004217")["status"]
    'open'
    """

    def __init__(self, path: str | Path | None = None, *, effects: Effects | None = None) -> None:
        self._effects = effects or Effects(path)
        facts = json.loads(DATA.read_text(encoding="utf-8"))
        self._names = {entry["customer_id"]: entry["name"] for entry in facts["customers"]}
        self._invoices = {entry["invoice_id"]: entry for entry in facts["invoices"]}
        self._orders = {entry["order_id"]: entry for entry in facts["orders"]}

    # -- reading ---------------------------------------------------------------------------------

    def get_invoice_status(self, invoice_id: str) -> dict[str, Any]:
        """Return customer, amount, amount paid, due date and status of an invoice.

        Args:
            invoice_id: The invoice number: INV- and six digits, such as INV-004217.
        """
        invoice = self._invoice(invoice_id)
        paid = self._paid_cents(invoice_id)
        owed = invoice["amount_cents"]
        status = "open" if paid < owed else "paid" if paid == owed else "overpaid"
        return {
            "invoice_id": invoice_id,
            "customer": self._names[invoice["customer_id"]],
            "amount_eur": owed / 100,
            "paid_eur": paid / 100,
            "due": invoice["due"],
            "status": status,
        }

    def get_order(self, order_id: str) -> dict[str, Any]:
        """Return customer, item and status of an order.

        Args:
            order_id: The order number: ORD- and four digits, such as ORD-1001.
        """
        order = self._order(order_id)
        return {
            "order_id": order_id,
            "customer": self._names[order["customer_id"]],
            "item": order["item"],
            "status": order["status"],
        }

    # -- side effects ----------------------------------------------------------------------------

    def pay_invoice(self, invoice_id: str, amount_eur: float, key: str | None = None) -> str:
        """Pay an amount on an invoice.

        Args:
            invoice_id: The invoice number: INV- and six digits.
            amount_eur: The amount in euros, at most two decimals.
            key: Idempotency key: repeated with the same key, the payment happens once.
        """
        self._invoice(invoice_id)
        # Like a bank, it does not ask whether the invoice was paid before: that is what keys do.
        data = {"invoice_id": invoice_id, "cents": _cents(amount_eur)}
        row = self._effects.record("payment", data, key=key)
        return f"Payment {row['number']}: {row['cents'] / 100:.2f} EUR on {invoice_id}."

    def refund(self, payment: int, amount_eur: float, key: str | None = None) -> str:
        """Give back a payment or a part of it.

        Args:
            payment: The number of the payment.
            amount_eur: The amount in euros, at most what is left of the payment.
            key: Idempotency key: repeated with the same key, the refund happens once.
        """
        paid = self._row("payment", payment)
        refunds = [row for row in self._effects.rows("refund") if row["payment"] == payment]
        left = paid["cents"] - sum(row["cents"] for row in refunds)
        repeated = key is not None and any(row["key"] == key for row in refunds)
        cents = _cents(amount_eur)
        if cents > left and not repeated:
            raise WorldError(
                f"Only {left / 100:.2f} EUR of payment {payment} are left to refund.",
                code="refund_too_large",
            )
        data = {"payment": payment, "invoice_id": paid["invoice_id"], "cents": cents}
        row = self._effects.record("refund", data, key=key)
        return f"Refund {row['number']}: {row['cents'] / 100:.2f} EUR of payment {payment}."

    def create_draft(self, to: str, text: str) -> str:
        """Write an e-mail draft that is not sent.

        Args:
            to: The name or the address of the person.
            text: The text of the draft.
        """
        number = self._effects.record("draft", {"to": to, "text": text})["number"]
        return f"Draft {number} written."

    def delete_draft(self, draft: int) -> str:
        """Undo a draft.

        Args:
            draft: The number of the draft.
        """
        self._once("draft_deleted", "draft", self._row("draft", draft)["number"])
        return f"Draft {draft} deleted."

    def open_ticket(self, subject: str, text: str, key: str | None = None) -> str:
        """Open a support ticket.

        Args:
            subject: What it is about, in a few words.
            text: The full description.
            key: Idempotency key: repeated with the same key, one ticket is opened.
        """
        row = self._effects.record("ticket", {"subject": subject, "text": text}, key=key)
        return f"Ticket {row['number']} opened."

    def close_ticket(self, ticket: int) -> str:
        """Close a support ticket.

        Args:
            ticket: The number of the ticket.
        """
        self._once("ticket_closed", "ticket", self._row("ticket", ticket)["number"])
        return f"Ticket {ticket} closed."

    def delete_order(self, order_id: str) -> str:
        """Delete an order for good. This cannot be undone.

        Args:
            order_id: The order number: ORD- and four digits.
        """
        self._order(order_id)
        self._once("order_deleted", "order_id", order_id)
        return f"Order {order_id} deleted."

    # -- looking up ------------------------------------------------------------------------------

    def _invoice(self, invoice_id: str) -> dict[str, Any]:
        if not isinstance(invoice_id, str) or not INVOICE_ID.fullmatch(invoice_id):
            raise BadValue(
                f"{invoice_id!r} is not an invoice number.",
                code="bad_invoice_id",
                hint="It is INV- and six digits, such as INV-004217.",
            )
        if invoice_id not in self._invoices:
            raise NotFound(
                f"There is no invoice {invoice_id}.",
                code="invoice_not_found",
                hint="Check the number with the customer.",
            )
        return self._invoices[invoice_id]

    def _order(self, order_id: str) -> dict[str, Any]:
        deleted = {row["order_id"] for row in self._effects.rows("order_deleted")}
        known = isinstance(order_id, str) and order_id in self._orders
        if not known or order_id in deleted:
            raise NotFound(
                f"There is no order {order_id!r}.",
                code="order_not_found",
                hint="It is ORD- and four digits, such as ORD-1001.",
            )
        return self._orders[order_id]

    def _row(self, effect: str, number: int) -> dict[str, Any]:
        for row in self._effects.rows(effect):
            if row["number"] == number:
                return row
        raise NotFound(f"There is no {effect} {number!r}.", code=f"{effect}_not_found")

    def _once(self, effect: str, name: str, value: int | str) -> None:
        # What is undone stays undone: the thing itself serves as the idempotency key.
        self._effects.record(effect, {name: value}, key=str(value))

    def _paid_cents(self, invoice_id: str) -> int:
        def total(effect: str) -> int:
            rows = self._effects.rows(effect)
            return sum(row["cents"] for row in rows if row["invoice_id"] == invoice_id)

        return total("payment") - total("refund")


def _cents(amount_eur: float) -> int:
    try:
        # Through text, because Decimal(0.1) would keep the binary rounding error.
        cents = Decimal(str(amount_eur)) * 100
        whole = cents == cents.to_integral_value()
    except InvalidOperation:
        cents, whole = Decimal(0), False
    if isinstance(amount_eur, bool) or not whole or not 0 < cents <= 10**9:
        raise BadValue(
            f"{amount_eur!r} is not an amount in euros.",
            code="bad_amount",
            hint="It must be above 0 and have at most two decimals.",
        )
    return int(cents)
