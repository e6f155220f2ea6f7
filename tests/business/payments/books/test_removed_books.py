"""Transfers to and from a book that was removed from the settings, or whose key was rotated."""

from typing import Any

import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.book_transfers import decide, get_transfer, refuse_for_a_day, require_amounts
from builders.books import V1, Book
from harness import HmacAuth, parse_error
from tapgate.business.payments.books.book_metrics import BookMetrics

Books = tuple[Book, Book]


async def send_to_removed_book(
    books: Books, *, is_credited: bool = False
) -> tuple[tuple[dict[str, Any], dict[str, Any]], str]:
    """Send a transfer, and remove the other book before the delivery or before its response."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    assert response.status_code == 200, response.text
    if is_credited:
        north.link.faults = iter(["unanswered"])
        await north.deliver()
    north.disconnect()
    await north.deliver()
    transfer_id: str = response.json()["transaction_id"]
    return (sender, recipient), transfer_id


async def test_transfer_to_a_removed_book_stops_after_a_day_and_is_counted(books: Books) -> None:
    north, _ = books
    _, transfer_id = await send_to_removed_book(books)
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["error"]) == ("pending", "BOOK_NOT_CONFIGURED")
    assert record["refused_since"] is not None
    assert not record["can_return_unconfirmed"]
    await refuse_for_a_day(north)
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["error"]) == ("stopped", "BOOK_NOT_CONFIGURED")
    assert record["can_return_unconfirmed"]
    metrics = BookMetrics(north.services.database, ["south"])
    await metrics.update()
    stopped = next(iter(metrics.collect())).samples
    assert [(sample.labels, sample.value) for sample in stopped] == [({"book": "south"}, 1)]


@pytest.mark.parametrize("is_credited", [False, True])
@pytest.mark.parametrize("decision", ["retry", "return"])
async def test_transfer_is_decided_once_when_the_book_is_back(
    books: Books, decision: str, is_credited: bool
) -> None:
    north, south = books
    people, transfer_id = await send_to_removed_book(books, is_credited=is_credited)
    await refuse_for_a_day(north)
    north.connect(south)
    assert (await decide(north, transfer_id, decision)).status_code == 200
    await north.deliver()
    is_returned = decision == "return" and not is_credited
    record = await get_transfer(north, transfer_id)
    assert record["status"] == ("returned" if is_returned else "delivered")
    amounts = ("1000.00", "0.00") if is_returned else ("797.00", "200.00")
    await require_amounts(books, people, *amounts)


@pytest.mark.parametrize("was_requested", [False, True])
async def test_transfer_to_a_removed_book_is_returned_without_confirmation(
    books: Books, was_requested: bool
) -> None:
    north, south = books
    people, transfer_id = await send_to_removed_book(books)
    if was_requested:  # the removed book cannot confirm it
        assert (await decide(north, transfer_id, "return")).status_code == 200
        await north.deliver()
    await refuse_for_a_day(north)
    response = await decide(north, transfer_id, "return", without_confirmation=True)
    assert response.status_code == 200, response.text
    assert not response.json()["can_return_unconfirmed"]
    await north.deliver()
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["refusal_code"]) == ("returned", "TRANSFER_CANCELLED")
    north.connect(south)
    await north.deliver()
    await require_amounts(books, people, "1000.00", "0.00")
    event = await north.services.database.fetchval(
        "SELECT event FROM audit_entries WHERE resource_id = $1 AND event LIKE '%unconfirmed'",
        transfer_id,
    )
    assert event == "transaction.returned_unconfirmed"


@pytest.mark.parametrize("is_removed", [False, True])
async def test_book_that_can_confirm_a_return_must_do_so(books: Books, is_removed: bool) -> None:
    """A pending transfer to a removed book may be on its way from a node with other settings."""
    north, south = books
    _, transfer_id = await send_to_removed_book(books)
    if not is_removed:
        await refuse_for_a_day(north)
        north.connect(south)
    response = await decide(north, transfer_id, "return", without_confirmation=True)
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["without_confirmation"]


async def test_approver_sees_that_the_other_book_does_not_confirm(books: Books) -> None:
    north, _ = books
    people, transfer_id = await send_to_removed_book(books)
    await refuse_for_a_day(north)
    await set_rules(north.harness, build_rule("reversals", above="100"))
    approval = require_held(await decide(north, transfer_id, "return", without_confirmation=True))
    assert approval["summary"] == "Return 200.00 SLE without confirmation by the book south"
    await approve(north.harness, approval)
    await north.deliver()
    await require_amounts(books, people, "1000.00", "0.00")


async def test_review_of_a_credit_from_a_removed_book_can_end(books: Books) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    await south.services.database.execute(
        "UPDATE compliance_rules SET threshold = 10000, subject = 'payee'"
        " WHERE name = 'Large amount'"
    )
    south.services.ledger.invalidate_rules()
    response = await north.send(sender, recipient, "200.00")
    transfer_id = response.json()["transaction_id"]
    await north.deliver()
    assert (await get_transfer(north, transfer_id))["error"] == "UNDER_REVIEW_ELSEWHERE"
    south.disconnect()
    await north.deliver()
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["error"]) == ("pending", "FORBIDDEN")
    auth = await south.harness.create_admin("C")
    (alert,) = (await south.harness.get(f"{V1}/compliance/alerts", auth=auth)).json()["data"]
    body = {
        "status": "resolved", "resolution_notes": "ok", "transaction_decision": "release",
    }  # fmt: skip
    released = await south.harness.post(
        f"{V1}/compliance/alerts/{alert['id']}/resolve", json=body, auth=auth
    )
    assert released.status_code == 200, released.text
    south.connect(north)
    await north.deliver()
    assert (await get_transfer(north, transfer_id))["status"] == "delivered"
    await require_amounts(books, (sender, recipient), "797.00", "200.00")


async def rotate_key(book: Book) -> None:
    """Replace the signing key of a book's partner by a new one."""
    auth = await book.harness.create_admin("A")
    path = f"{V1}/admin/partners/{book.peer.partner_id}/keys"
    created = await book.harness.post(path, auth=auth)
    assert created.status_code == 201, created.text
    deleted = await book.harness.delete(f"{path}/{book.peer.key_id}", auth=auth)
    assert deleted.status_code == 204, deleted.text
    key = created.json()
    book.peer = HmacAuth(key["api_key_id"], key["hmac_secret"], partner_id=book.peer.partner_id)


@pytest.mark.parametrize("fault", ["lost", "unanswered"])
async def test_key_rotation_between_two_attempts_credits_a_transfer_once(
    books: Books, fault: str
) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    north.link.faults = iter([fault])
    await north.deliver()
    await rotate_key(south)
    await north.deliver()
    transfer_id = response.json()["transaction_id"]
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["error"]) == ("pending", "UNAUTHORIZED")
    north.connect(south)
    await north.deliver()
    assert (await get_transfer(north, transfer_id))["status"] == "delivered"
    await require_amounts(books, (sender, recipient), "797.00", "200.00")
