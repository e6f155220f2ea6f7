"""A family with child cards: upload, linking, limits, a lost card, and a blocked parent."""

from decimal import Decimal

from drivers.actors import (
    Admin,
    App,
    Customer,
    Record,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import Deployment, sum_history
from harness import PIN, WRONG_PIN

CARD_FILE = """Serial No.,MAC Address,Expiry Date
FAM-0001,04:A1:00:00:00:00:01,2035-12-31
FAM-0002,04:A1:00:00:00:00:02,2035-12-31
FAM-0003,04-a1-00-00-00-00-03,2035-12-31
FAM-0004,04:A1:00:00:00:00:04,
FAM-0005,04:A1:00:00:00:00:05,
FAM-0006,04:A1:00:00:00:00:06,
FAM-0007,not a number,
FAM-0008,04:A1:00:00:00:00:01,
"""
IBRAHIMS_PIN, FATUS_PIN = "6158", "8317"


async def link_child_card(app: App, mother: Customer, serial: str, name: str, pin: str) -> Record:
    response = await app.post(
        "cards/child",
        parent_subscriber_id=mother.id,
        card_serial=serial,
        parent_pin=mother.pin,
        child_pin=pin,
        daily_limit="100.00",
        child_name=name,
        child_relationship="child",
    )
    assert response.status_code == 201, response.text
    card: Record = response.json()["card"]
    return card


async def test_family_with_child_cards(deployment: Deployment, ada: Admin) -> None:
    support = await ada.create_admin("Sorie", "S")
    app = await ada.create_app()
    terminal = (await ada.create_merchant("School Canteen")).server

    # Valid rows create cards and invalid rows are reported; a second upload changes nothing.
    uploaded = require_success(await ada.upload_csv(CARD_FILE))
    assert (uploaded["total"], uploaded["created"], uploaded["skipped"]) == (8, 6, 0)
    rejected_rows = [(item["row"], item["serial"]) for item in uploaded["errors"]]
    assert rejected_rows == [(8, "FAM-0007"), (9, "FAM-0008")]
    again = require_success(await ada.upload_csv(CARD_FILE))
    assert (again["created"], again["skipped"], len(again["errors"])) == (0, 6, 2)

    # The parent gets a card and a balance.
    mother = await app.register_customer("Aminata Kamara")
    response = await app.post(
        "cards/link", subscriber_id=mother.id, card_serial="FAM-0001", pin=WRONG_PIN
    )
    assert require_error(response) == (400, "INVALID_PIN")
    assert (await app.link_card("FAM-0001", mother))["type"] == "PARENT"
    stranger = await app.register_customer("Mohamed Sesay")
    response = await app.post(
        "cards/link", subscriber_id=stranger.id, card_serial="FAM-0001", pin=PIN
    )
    assert require_error(response) == (409, "CARD_ALREADY_LINKED")
    bank = await ada.create_partner()
    await ada.fund_partner(bank, "1000.00")
    require_success(await bank.top_up("1000.00", mother, "wages"))

    # Four children get cards with their own PINs; a fifth exceeds the maximum.
    card = await link_child_card(app, mother, "FAM-0002", "Ibrahim Kamara", IBRAHIMS_PIN)
    assert (card["type"], card["parent_subscriber_id"]) == ("CHILD", mother.id)
    assert (card["daily_limit"], card["spent_today"]) == ("100.00", "0.00")
    await link_child_card(app, mother, "FAM-0003", "Fatu Kamara", FATUS_PIN)
    await link_child_card(app, mother, "FAM-0004", "Sia Kamara", "4093")
    await link_child_card(app, mother, "FAM-0005", "Alpha Kamara", "5826")
    fifth = {
        "parent_subscriber_id": mother.id,
        "card_serial": "FAM-0006",
        "parent_pin": mother.pin,
        "child_pin": "7261",
        "daily_limit": "10",
        "child_name": "Cousin Kamara",
    }
    assert require_error(await app.post("cards/child", **fifth)) == (400, "MAX_CHILD_CARDS")
    record = await mother.get_record()
    assert (record["cards_count"], record["max_child_cards"]) == (5, 4)

    # Children pay from the parent's wallet with their own PINs, up to their daily limit.
    found = require_success(
        await terminal.post("pos/lookup-card", card_identifier="04:A1:00:00:00:00:02")
    )
    assert (found["card_serial"], found["holder_name"]) == ("FAM-0002", "Ibrahim K.")
    assert require_error(await terminal.pay("10", "FAM-0002", PIN)) == (400, "INVALID_PIN")
    lunch = require_success(await terminal.pay("60.00", "FAM-0002", IBRAHIMS_PIN))
    assert lunch["remaining_balance"] == "940.00 SLE"
    response = await terminal.pay("40.01", "FAM-0002", IBRAHIMS_PIN)
    assert require_error(response) == (403, "CARD_LIMIT_EXCEEDED")
    assert require_error_details(response) == {
        "limit": "100.00",
        "used": "60.00",
        "attempted": "40.01",
    }
    require_success(await terminal.pay("40.00", "FAM-0002"))
    require_success(await terminal.pay("100.00", "FAM-0003", FATUS_PIN))  # limits are per card
    assert require_success(await app.get("cards/FAM-0002"))["spent_today"] == "100.00"
    # A refund restores the daily limit.
    require_success(await terminal.refund(lunch["transaction_id"], "25.00"))
    require_success(await terminal.pay("25.00", "FAM-0002", IBRAHIMS_PIN))
    assert require_error(await terminal.pay("0.01", "FAM-0002")) == (403, "CARD_LIMIT_EXCEEDED")

    # The parent raises a child's limit and changes its PIN; a forgotten PIN is reset with a code
    # sent to the parent.
    changed = require_success(
        await app.put("cards/FAM-0002", daily_limit="110", child_relationship="son")
    )
    assert (changed["daily_limit"], changed["child_relationship"]) == ("110.00", "son")
    pins = {"old_pin": IBRAHIMS_PIN, "new_pin": "2794"}
    require_success(await support.post("cards/FAM-0002/change-pin", **pins))
    require_success(await terminal.pay("5.00", "FAM-0002", "2794"))
    messenger = deployment.create_messenger_app()
    require_success(await messenger.post("cards/FAM-0002/reset-pin"))
    code = await deployment.get_pending_code(mother.phone)
    body = {"otp": code, "new_pin": IBRAHIMS_PIN}
    response = await messenger.post("cards/FAM-0004/reset-pin/confirm", **body)
    assert require_error(response) == (400, "INVALID_OTP")
    require_success(await messenger.post("cards/FAM-0002/reset-pin/confirm", **body))
    require_success(await terminal.pay("5.00", "FAM-0002", IBRAHIMS_PIN))

    # Blocking the parent's card affects neither the child cards nor the wallet.
    require_success(await app.post("cards/FAM-0001/block", reason="customer_request"))
    assert require_error(await terminal.pay("10", "FAM-0001", PIN)) == (403, "CARD_NOT_ACTIVE")
    book_purchase = require_success(await terminal.pay("30.00", "FAM-0004", "4093"))
    require_success(await app.post("cards/FAM-0001/unblock"))
    require_success(await terminal.pay("10.00", "FAM-0001", PIN))

    # A lost card is blocked permanently.
    lost = require_success(await support.post("cards/FAM-0003/block", reason="lost"))["card"]
    assert (lost["status"], lost["status_reason"]) == ("LOST", "lost")
    assert require_error(await terminal.pay("1", "FAM-0003", FATUS_PIN)) == (403, "CARD_NOT_ACTIVE")
    checked = require_success(await terminal.verify_card("FAM-0003", FATUS_PIN))
    assert checked["is_active"] is False
    assert "balance" not in checked
    assert require_error(await support.post("cards/FAM-0003/unblock")) == (400, "PERMANENT_BLOCK")

    # VIP subscribers may have more child cards.
    require_success(await support.put(f"subscribers/{mother.id}", category="vip"))
    require_success(await app.post("cards/child", **fifth))
    cards = await app.list_all("cards", subscriber_id=mother.id)
    assert [(card["serial"], card["status"]) for card in sorted(cards, key=_get_serial)] == [
        ("FAM-0001", "ACTIVE"),
        ("FAM-0002", "ACTIVE"),
        ("FAM-0003", "LOST"),
        ("FAM-0004", "ACTIVE"),
        ("FAM-0005", "ACTIVE"),
        ("FAM-0006", "ACTIVE"),
    ]

    # While the parent subscriber is blocked, payments with all cards are declined.
    require_success(await support.post(f"subscribers/{mother.id}/block", reason="asked by her"))
    for serial, pin in (("FAM-0001", PIN), ("FAM-0002", IBRAHIMS_PIN), ("FAM-0006", "7261")):
        assert require_error(await terminal.pay("1", serial, pin)) == (403, "SUBSCRIBER_BLOCKED")

    # Refunds are still credited.
    require_success(await terminal.refund(book_purchase["transaction_id"]))

    # One wallet paid for everything: 60 + 40 + 100 + 25 + 10 + 30 + 10, with 25 and 30 refunded.
    assert await mother.get_balance() == "780.00"
    assert sum_history(await app.list_transactions(mother.id)) == Decimal("780.00")
    card_history = await app.list_transactions(mother.id, card_serial="FAM-0002")
    found = {line["from"]["card_serial"] for line in card_history if line["type"] == "pos_payment"}
    assert found == {"FAM-0002"}


def _get_serial(card: Record) -> str:
    return str(card["serial"])
