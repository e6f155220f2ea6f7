"""Transfers to customers of another book: what both customers see, and that money moves once."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from builders.books import V1, Book
from builders.ledger import require_balanced_books
from harness import PIN, WRONG_PIN, parse_error
from tapgate.business.payments.books.outgoing import BACKLOG_SQL

Books = tuple[Book, Book]


async def create_people(
    books: Books, balance: str = "1000.00"
) -> tuple[dict[str, Any], dict[str, Any]]:
    north, south = books
    sender = await north.harness.create_subscriber(balance=balance)
    recipient = await south.harness.create_subscriber(first_name="Fatu", last_name="Sesay")
    north.link.requests.clear()  # registrations look up the number
    return sender, recipient


async def require_valid_books(books: Books, *, owed: int = 0) -> None:
    """Require valid ledgers, and clearing accounts that mirror each other."""
    north, south = books
    assert await north.get_clearing_balance() == owed
    assert await south.get_clearing_balance() == -owed
    for book in books:
        await require_balanced_books(book.services.database)


async def test_transfer_reaches_a_customer_of_another_book(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    response = await north.send(sender, recipient, "200.00", memo="School fees", request_id="r1")
    assert response.status_code == 200, response.text
    receipt = response.json()
    assert receipt["recipient"] == {"name": "Fatu S.", "book": "south"}
    assert (receipt["fee_amount"], receipt["status"]) == ("3.00 SLE", "completed")
    assert receipt["sender_new_balance"] == "797.00 SLE"
    assert await south.get_balance(recipient["id"]) == "0.00"

    await north.deliver()

    assert await north.list_statuses() == ["delivered"]
    assert await north.get_balance(sender["id"]) == "797.00"
    assert await south.get_balance(recipient["id"]) == "200.00"
    await require_valid_books(books, owed=200_00)
    replay = await north.send(sender, recipient, "200.00", memo="School fees", request_id="r1")
    assert replay.json()["transaction_id"] == receipt["transaction_id"]
    await north.deliver()
    await require_valid_books(books, owed=200_00)


async def test_both_customers_see_each_other_and_the_book(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    await north.send(sender, recipient, "200.00", memo="School fees")
    await north.deliver()
    (sent,) = await list_transactions(north, sender)
    assert (sent["type"], sent["direction"], sent["book"]) == ("transfer_p2p", "debit", "south")
    assert sent["to"]["name"] == "Fatu S. (south)"
    (received,) = await list_transactions(south, recipient)
    assert (received["direction"], received["book"]) == ("credit", "north")
    assert received["from"]["name"] == "Aminata K. (north)"
    assert (received["amount"], received["memo"]) == ("200.00", "School fees")


async def list_transactions(book: Book, person: dict[str, Any]) -> list[dict[str, Any]]:
    response = await book.harness.get(
        f"{V1}/transactions",
        params={"user_id": person["id"], "type": "transfer_p2p"},
        auth=book.harness.get_service_auth(),
    )
    rows: list[dict[str, Any]] = response.json()["data"]
    return rows


async def test_transfer_needs_pin_and_balance(books: Books) -> None:
    north, _ = books
    sender, recipient = await create_people(books, "100.00")
    wrong = await north.send(sender, recipient, "50.00", pin=WRONG_PIN)
    assert parse_error(wrong) == (400, "INVALID_PIN")
    poor = await north.send(sender, recipient, "100.00")
    assert parse_error(poor) == (402, "INSUFFICIENT_FUNDS")
    large = await north.send(sender, recipient, "60000.00")
    assert parse_error(large) == (403, "TRANSACTION_LIMIT_EXCEEDED")
    assert await north.list_statuses() == []


@pytest.mark.parametrize("refusal", ["blocked", "full"])
async def test_refused_transfer_returns_in_full(books: Books, refusal: str) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    if refusal == "full":
        await south.services.database.execute("UPDATE account_rules SET max_balance = 100")
        south.services.ledger.invalidate_rules()
    response = await north.send(sender, recipient, "200.00")
    assert response.status_code == 200, response.text
    if refusal != "full":
        await south.services.database.execute(
            "UPDATE accounts SET status = 'blocked' WHERE id = $1",
            await find_account(south, recipient),
        )
    await north.deliver()
    assert await north.list_statuses() == ["returned"]
    assert await north.get_balance(sender["id"]) == "1000.00"
    assert await south.get_balance(recipient["id"]) == "0.00"
    (record,) = await list_transactions(north, sender)
    assert (record["status"], record["reversed_amount"]) == ("reversed", "200.00")
    used = await north.services.database.fetchrow(
        "SELECT day_used, month_used FROM accounts WHERE id = $1", await find_account(north, sender)
    )
    assert tuple(used) == (0, 0)
    notices = await north.services.database.fetch("SELECT kind FROM notices")
    assert [row["kind"] for row in notices] == ["payment_rejected"]
    await north.deliver()
    await require_valid_books(books)


async def find_account(book: Book, person: dict[str, Any]) -> int:
    account: int = await book.services.database.fetchval(
        "SELECT account_id FROM subscribers WHERE phone_number = $1", person["phone_number"]
    )
    return account


@pytest.mark.parametrize(
    "faults", [("lost",), ("unanswered",), ("unanswered", "lost", "unanswered")]
)
@pytest.mark.parametrize("is_blocked", [False, True])
async def test_lost_messages_move_no_money_twice(
    books: Books, faults: tuple[str, ...], is_blocked: bool
) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    await north.send(sender, recipient, "200.00")
    if is_blocked:
        await south.services.database.execute(
            "UPDATE accounts SET status = 'blocked' WHERE id = $1",
            await find_account(south, recipient),
        )
    north.link.faults = iter(faults)
    for _ in faults:
        await north.deliver()
        assert await north.list_statuses() == ["pending"]
    await north.deliver()
    await north.deliver()
    assert await north.list_statuses() == ["returned" if is_blocked else "delivered"]
    assert await south.get_balance(recipient["id"]) == ("0.00" if is_blocked else "200.00")
    await require_valid_books(books, owed=0 if is_blocked else 200_00)


async def test_two_workers_deliver_a_transfer_once(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    for number in range(4):
        await north.send(sender, recipient, f"{number + 1}.00")
    await asyncio.gather(*(north.deliver() for _ in range(3)))
    await north.deliver()
    assert await north.list_statuses() == ["delivered"] * 4
    assert await south.get_balance(recipient["id"]) == "10.00"
    await require_valid_books(books, owed=10_00)


async def test_transfer_under_review_waits_on_both_sides(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    for book, subject in ((north, "payer"), (south, "payee")):
        response = await book.harness.post(
            f"{V1}/compliance/rules",
            json={
                "name": "Review", "type": "AMOUNT_THRESHOLD", "subject": subject,
                "transaction_types": ["transfer_p2p"], "threshold": "150.00", "action": "review",
            },
            auth=await book.harness.create_admin("C"),
        )  # fmt: skip
        assert response.status_code == 201, response.text
    response = await north.send(sender, recipient, "200.00")
    assert response.json()["status"] == "under_review"
    await north.deliver()
    assert north.link.requests == [f"{V1}/books/lookup"]
    await decide_review(north, "release")
    await north.deliver()
    assert await north.list_statuses() == ["pending"]
    assert await south.get_balance(recipient["id"]) == "0.00"
    await decide_review(south, "reject")
    await north.deliver()
    assert await north.list_statuses() == ["returned"]
    assert await north.get_balance(sender["id"]) == "1000.00"
    await require_valid_books(books)


async def decide_review(book: Book, decision: str) -> None:
    auth = await book.harness.create_admin("C")
    alerts = await book.harness.get(f"{V1}/compliance/alerts?status=open", auth=auth)
    for alert in alerts.json()["data"]:
        body = {
            "status": "resolved", "resolution_notes": "checked", "transaction_decision": decision,
        }  # fmt: skip
        response = await book.harness.post(
            f"{V1}/compliance/alerts/{alert['id']}/resolve", json=body, auth=auth
        )
        assert response.status_code == 200, response.text


async def test_transfer_that_a_review_rejects_is_canceled(books: Books) -> None:
    north, _ = books
    sender, recipient = await create_people(books)
    await north.services.database.execute(
        "UPDATE compliance_rules SET threshold = 10000 WHERE name = 'Large amount'"
    )
    north.services.ledger.invalidate_rules()
    await north.send(sender, recipient, "200.00")
    await decide_review(north, "reject")
    await north.deliver()
    assert await north.list_statuses() == ["canceled"]
    await require_valid_books(books)


async def test_money_to_return_that_was_spent_is_returned_after_a_settlement(books: Books) -> None:
    """The clearing account may not go below its overdraft, not even for a return."""
    north, south = books
    sender, recipient = await create_people(books)
    await north.send(sender, recipient, "200.00")
    await south.services.database.execute(
        "UPDATE accounts SET status = 'blocked' WHERE id = $1", await find_account(south, recipient)
    )
    await north.services.database.execute(
        "UPDATE accounts SET overdraft = 0, held = 200_00 WHERE kind = 'clearing'"
    )
    await north.deliver()
    assert await north.list_statuses() == ["pending"]
    await north.services.database.execute("UPDATE accounts SET held = 0 WHERE kind = 'clearing'")
    await north.deliver()
    assert await north.list_statuses() == ["returned"]
    assert await north.get_balance(sender["id"]) == "1000.00"
    await require_valid_books(books)


async def test_number_that_no_book_has_is_not_found(books: Books) -> None:
    north, _ = books
    sender, _ = await create_people(books)
    nobody = {"phone_number": north.harness.new_phone_number()}
    response = await north.send(sender, nobody, "20.00")
    assert parse_error(response) == (404, "SUBSCRIBER_NOT_FOUND")


async def test_directory_that_does_not_respond_is_not_an_unknown_number(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    suspended = await south.harness.post(
        f"{V1}/admin/partners/{south.peer.partner_id}/suspend",
        json={"reason": "incident"},
        auth=await south.harness.create_admin("A"),
    )
    assert suspended.status_code == 200, suspended.text
    response = await north.send(sender, recipient, "20.00")
    assert parse_error(response) == (503, "SERVICE_UNAVAILABLE")


async def test_card_of_another_book_can_receive(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    serial = await south.harness.create_card(recipient["id"])
    response = await north.harness.post(
        f"{V1}/wallet/transfer-p2p",
        json={
            "sender_id": sender["id"], "recipient_card_serial": serial, "amount": "20.00",
            "pin": PIN,
        },
        auth=north.harness.get_service_auth(),
    )  # fmt: skip
    assert response.status_code == 200, response.text
    await north.deliver()
    assert await south.get_balance(recipient["id"]) == "20.00"


async def test_number_that_moves_before_delivery_does_not_redirect_the_money(books: Books) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    other = await south.harness.create_subscriber(first_name="Isatu")
    await north.send(sender, recipient, "20.00")
    await south.services.database.execute(
        "UPDATE subscribers SET phone_number = '+23277000001' WHERE phone_number = $1",
        recipient["phone_number"],
    )
    await south.services.database.execute(
        "UPDATE subscribers SET phone_number = $1 WHERE phone_number = $2",
        recipient["phone_number"],
        other["phone_number"],
    )
    await north.deliver()
    assert await south.get_balance(recipient["id"]) == "20.00"
    assert await south.get_balance(other["id"]) == "0.00"


async def test_only_a_partner_of_the_settings_can_credit_and_look_up(books: Books) -> None:
    _, south = books
    _, recipient = await create_people(books)
    stranger = await south.harness.create_partner()
    body = {"recipient_id": recipient["id"], "sender_name": "Eve", "amount": "5.00"}
    for path, fields in (
        ("transfers", {**body, "request_id": "x"}),
        ("lookup", {"phone_number": recipient["phone_number"]}),
    ):
        response = await south.harness.post(f"{V1}/books/{path}", json=fields, auth=stranger)
        assert parse_error(response) == (403, "FORBIDDEN")
    missing = await south.harness.post(f"{V1}/books/transfers", json=body, auth=south.peer)
    assert parse_error(missing) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("Fatu S.", "Fatu S. (north)"),
        ("Claim at https://evil.example/win\nFatu", "Claim at Fatu (north)"),
        ("https://evil.example/win", "Customer (north)"),
        (f"{'A' * 60} K.", f"{'A' * 52}"),
    ],
)
async def test_transfer_is_delivered_whatever_name_the_sender_has(
    books: Books, stored: str, shown: str
) -> None:
    """Names that earlier versions accepted are cleaned: the other book rejects them."""
    north, south = books
    sender, recipient = await create_people(books)
    await north.services.database.execute(
        "UPDATE accounts SET public_name = $2 WHERE id = $1",
        await find_account(north, sender),
        stored,
    )
    await north.send(sender, recipient, "20.00")
    await north.deliver()
    assert await north.list_statuses() == ["delivered"]
    (received,) = await list_transactions(south, recipient)
    assert received["from"]["name"].startswith(shown)


async def test_link_in_the_name_of_a_sender_is_rejected(books: Books) -> None:
    _, south = books
    _, recipient = await create_people(books)
    body = {"recipient_id": recipient["id"], "sender_name": "evil.example", "amount": "5.00"}
    response = await south.harness.post(
        f"{V1}/books/transfers", json={**body, "request_id": "x"}, auth=south.peer
    )
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["sender_name"]


async def test_lookup_names_the_book_for_services_and_only_own_customers_for_peers(
    books: Books,
) -> None:
    north, _ = books
    sender, recipient = await create_people(books)
    phone = {"phone_number": recipient["phone_number"]}
    found = await north.harness.post(
        f"{V1}/books/lookup", json=phone, auth=north.harness.get_service_auth()
    )
    customer = found.json()
    assert (customer["book"], customer["name"]) == ("south", "Fatu S.")
    assert (customer["subscriber_id"], customer["can_receive"]) == (recipient["id"], True)
    as_peer = await north.harness.post(f"{V1}/books/lookup", json=phone, auth=north.peer)
    assert parse_error(as_peer) == (404, "SUBSCRIBER_NOT_FOUND")
    own = await north.harness.post(
        f"{V1}/books/lookup",
        json={"phone_number": sender["phone_number"]},
        auth=north.harness.get_service_auth(),
    )
    assert own.json()["book"] == "north"
    await north.harness.post(
        f"{V1}/books/lookup", json=phone, auth=north.harness.get_service_auth()
    )
    assert len(north.link.requests) == 1


async def test_terminal_names_the_book_of_a_foreign_card(books: Books) -> None:
    north, south = books
    _, recipient = await create_people(books)
    serial = await south.harness.create_card(recipient["id"])
    shop = await north.harness.create_processor()
    for path, body in (
        ("/pos/payment", {"card_serial": serial, "amount": "5.00", "request_id": "one"}),
        ("/payment", {"card_serial": serial, "amount": "5.00", "request_id": "two"}),
        ("/pos/lookup-card", {"card_identifier": serial}),
    ):
        response = await north.harness.post(f"{V1}{path}", json=body, auth=shop)
        assert parse_error(response) == (404, "CARD_IN_OTHER_BOOK"), path
        assert response.json()["details"] == {"book": "south"}
    unknown = {"card_serial": "NOBODY-1", "amount": "5.00", "request_id": "three"}
    response = await north.harness.post(f"{V1}/pos/payment", json=unknown, auth=shop)
    assert parse_error(response) == (404, "CARD_NOT_FOUND")


async def test_report_adds_up_the_books_and_reconciles_their_clearing_accounts(
    books: Books,
) -> None:
    north, south = books
    sender, recipient = await create_people(books)
    await north.send(sender, recipient, "200.00")

    report = await get_report(north)
    (row,) = report["books"]
    assert (row["owed"], row["owed_by_book"]) == ("200.00", "0.00")
    assert (row["in_transit"], row["difference"]) == ("200.00", "0.00")
    await north.deliver()
    report = await get_report(north)
    (row,) = report["books"]
    assert (row["owed"], row["owed_by_book"]) == ("200.00", "-200.00")
    assert (row["in_transit"], row["difference"]) == ("0.00", "0.00")
    balances = {item["kind"]: Decimal(item["balance"]) for item in report["accounts"]}
    assert report["is_complete"]
    assert (balances["wallet"], balances["clearing"]) == (997, 0)
    assert sum(balances.values()) == 0
    assert (await get_report(south))["accounts"] == report["accounts"]


async def get_report(book: Book) -> dict[str, Any]:
    response = await book.harness.get(
        f"{V1}/books/report", auth=await book.harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    report: dict[str, Any] = response.json()
    return report


async def test_report_names_a_book_that_does_not_respond(books: Books) -> None:
    north, south = books
    await south.harness.post(
        f"{V1}/admin/partners/{south.peer.partner_id}/suspend",
        json={"reason": "incident"},
        auth=await south.harness.create_admin("A"),
    )
    report = await get_report(north)
    assert not report["is_complete"]
    assert report["books"] == [
        {
            "book": "south", "owed": "0.00", "owed_by_book": None, "in_transit": None,
            "difference": None,
        }
    ]  # fmt: skip


async def test_transfers_that_are_not_final_are_counted(books: Books) -> None:
    north, _ = books
    sender, recipient = await create_people(books)
    await north.send(sender, recipient, "20.00")
    row = await north.services.queue_database.fetchrow(BACKLOG_SQL)
    assert (row["queue"], row["jobs"]) == ("book_transfers", 1)
    await north.deliver()
    row = await north.services.queue_database.fetchrow(BACKLOG_SQL)
    assert row["jobs"] == 0
