"""Outbox and office: every side effect is one row, and a key makes it happen once."""

import threading

import pytest

from course_utils.errors import CourseError
from course_utils.world import Outbox, World
from course_utils.world.effects import Effects
from course_utils.world.office import Office
from course_utils.world.problems import BadValue, NotFound, WorldError


def test_the_same_email_without_a_key_goes_out_twice():
    outbox = Outbox()
    outbox.send("Ana", "Take a jacket.")
    outbox.send_email("Ana", "Take a jacket.")
    assert outbox.count() == 2


def test_the_same_email_with_a_key_goes_out_once():
    outbox = Outbox()
    first = outbox.send("Ana", "Take a jacket.", key="k")
    assert outbox.send("Ana", "Take a jacket.", key="k") == first
    assert outbox.sent() == [{"to": "Ana", "text": "Take a jacket.", "key": "k"}]


def test_a_key_cannot_be_used_for_another_email():
    outbox = Outbox()
    outbox.send("Ana", "Take a jacket.", key="k")
    with pytest.raises(WorldError, match="'k'") as caught:
        outbox.send("Bob", "Take a jacket.", key="k")
    assert caught.value.code == "key_reused"
    assert outbox.count() == 1


@pytest.mark.parametrize(("to", "text"), [("", "Hi"), ("Ana", " "), (None, "Hi"), ("Ana", 5)])
def test_an_email_needs_an_address_and_a_text(to, text):
    outbox = Outbox()
    with pytest.raises(BadValue):
        outbox.send(to, text)
    assert outbox.count() == 0


def test_a_file_keeps_the_emails(tmp_path):
    Outbox(tmp_path / "world.db").send("Ana", "Hi", key="k")
    again = Outbox(tmp_path / "world.db")
    again.send("Ana", "Hi", key="k")
    assert again.count() == 1


def test_a_file_that_cannot_be_opened_is_one_clear_error(tmp_path):
    with pytest.raises(CourseError, match="folder that exists"):
        Outbox(tmp_path / "missing" / "world.db")
    (tmp_path / "text.db").write_text("this is not a database, " * 100)
    with pytest.raises(CourseError, match="text.db"):
        Outbox(tmp_path / "text.db")


def test_threads_with_one_key_write_one_row():
    effects = Effects()
    threads = [
        threading.Thread(target=effects.record, args=("email", {"to": "Ana"}, "k"))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert effects.count() == 1


def test_an_invoice_is_paid_when_payments_cover_it():
    office = Office()
    assert office.get_invoice_status("INV-004217") == {
        "invoice_id": "INV-004217",
        "customer": "Ana Pereira",
        "amount_eur": 89.0,
        "paid_eur": 0.0,
        "due": "2026-08-24",
        "status": "open",
    }
    office.pay_invoice("INV-004217", 89)
    assert office.get_invoice_status("INV-004217")["status"] == "paid"
    office.pay_invoice("INV-004217", 89)
    assert office.get_invoice_status("INV-004217")["status"] == "overpaid"


def test_a_payment_with_a_key_happens_once():
    office = Office()
    for _ in range(3):
        office.pay_invoice("INV-004217", 89, key="pay-1")
    assert office.get_invoice_status("INV-004217")["paid_eur"] == 89.0


@pytest.mark.parametrize("invoice", ["INV-42", "inv-004217", "INV-0042178", "INV-004217\n", 4217])
def test_the_invoice_number_is_strict(invoice):
    with pytest.raises(BadValue, match="six digits"):
        Office().get_invoice_status(invoice)


def test_an_unknown_invoice_is_not_found():
    with pytest.raises(NotFound) as caught:
        Office().get_invoice_status("INV-999999")
    assert caught.value.code == "invoice_not_found"
    assert caught.value.hint


@pytest.mark.parametrize("amount", [0, -1, 1.005, "ten", float("nan"), float("inf"), True, None])
def test_amounts_are_positive_whole_cents(amount):
    office = Office()
    with pytest.raises(BadValue, match="amount in euros"):
        office.pay_invoice("INV-004217", amount)
    assert office.get_invoice_status("INV-004217")["paid_eur"] == 0


def test_cents_are_exact():
    office = Office()
    for _ in range(3):
        office.pay_invoice("INV-004217", 0.1)
    assert office.get_invoice_status("INV-004217")["paid_eur"] == 0.3


def test_a_refund_cannot_exceed_its_payment():
    office = Office()
    office.pay_invoice("INV-004217", 89)
    office.refund(1, 80, key="r")
    office.refund(1, 80, key="r")
    with pytest.raises(WorldError, match="9.00 EUR"):
        office.refund(1, 10)
    assert office.get_invoice_status("INV-004217")["paid_eur"] == 9.0


def test_what_is_undone_or_deleted_is_a_row_too():
    world = World()
    world.office.create_draft("Ana", "Hi")
    world.office.open_ticket("Kettle", "It does not whistle.")
    world.office.delete_draft(1)
    world.office.delete_draft(1)
    world.office.close_ticket(2)
    world.office.delete_order("ORD-1003")
    kinds = [row["effect"] for row in world.effects()]
    assert kinds == ["draft", "draft_deleted", "order_deleted", "ticket", "ticket_closed"]


def test_a_deleted_order_is_gone_until_the_reset():
    world = World()
    world.office.delete_order("ORD-1003")
    for read in (world.office.get_order, world.office.delete_order):
        with pytest.raises(NotFound):
            read("ORD-1003")
    world.reset()
    assert world.office.get_order("ORD-1003")["status"] == "packed"


@pytest.mark.parametrize("order", ["ORD-9999", "", None, ["ORD-1001"]])
def test_an_unknown_order_is_not_found(order):
    with pytest.raises(NotFound, match="ORD-1001"):
        Office().get_order(order)


def test_reset_brings_the_world_back_to_the_known_state():
    def play(world):
        world.outbox.send("Ana", "Hi", key="k")
        world.office.pay_invoice("INV-004218", 45)
        return world.effects()

    with World() as world:
        first = play(world)
        world.clock.today = world.clock.today.replace(year=2030)
        world.weather.fail_always()
        assert world.count() == 2 and world.count("email") == 1
        world.reset()
        assert world.effects() == []
        assert world.clock.get_current_date() == "2026-08-10"
        assert world.weather.get_weather("Moscow")["temp_c"] == 2
        assert play(world) == first
