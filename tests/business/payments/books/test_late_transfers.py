"""Transfers that reach the other book, or ask it again, after weeks or months."""

from datetime import timedelta

import pytest

from builders.book_transfers import decide, get_transfer, require_amounts, set_suspended
from builders.books import V1, Book
from harness import parse_error
from tapgate.core.id_generator import first_id_at
from tapgate.runtime.retention import RetentionJob
from tapgate.server.retention import RETENTION
from tapgate_client import ids

Books = tuple[Book, Book]
KEY_DAYS = 30


async def delete_old_keys(book: Book) -> None:
    """Run the retention job as a year from now."""
    services = book.services
    settings = services.settings.replace(idempotency_key_days=KEY_DAYS)
    services.settings = settings
    job = RetentionJob(
        services.database, lambda: services.clock() + timedelta(days=366), settings, RETENTION
    )
    for declaration in RETENTION:
        if declaration.table in ("idempotency_keys", "partner_references"):
            await job.apply(declaration)


async def archive_transactions(book: Book) -> None:
    """Let the keys refer to transactions that are not in the ledger, as after `tapgate archive`."""
    for table in ("idempotency_keys", "partner_references"):
        await book.services.database.execute(f"UPDATE {table} SET transaction_id = 1")


@pytest.mark.parametrize("path", ["", "/cancel"])
async def test_transfer_of_any_age_is_decided(books: Books, path: str) -> None:
    """A review in the sender's book may take longer than the other book keeps other keys."""
    _, south = books
    recipient = await south.harness.create_subscriber()
    await delete_old_keys(south)
    debited_at = south.services.clock() - timedelta(days=KEY_DAYS + 1)
    body = {
        "recipient_id": recipient["id"], "amount": "20.00",
        "request_id": ids.encode(ids.TRANSACTION, first_id_at(debited_at)),
    }  # fmt: skip
    fields = body if path else {**body, "sender_name": "Aminata K."}
    response = await south.harness.post(f"{V1}/books/transfers{path}", json=fields, auth=south.peer)
    if path:
        assert parse_error(response) == (409, "TRANSFER_CANCELLED")
    else:
        assert response.status_code == 200, response.text


@pytest.mark.parametrize("is_archived", [False, True])
@pytest.mark.parametrize("is_return", [False, True])
@pytest.mark.parametrize("is_blocked", [False, True])
async def test_late_repetition_has_the_outcome_of_the_first_request(
    books: Books, is_archived: bool, is_return: bool, is_blocked: bool
) -> None:
    """The response was lost, and the other book deletes old keys and archives old months."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    if is_blocked:
        blocked = await south.harness.post(
            f"{V1}/subscribers/{recipient['id']}/block",
            json={"reason": "Lost phone"},
            auth=await south.harness.create_admin("A"),
        )
        assert blocked.status_code == 200, blocked.text
    north.link.faults = iter(["unanswered"])
    await north.deliver()
    await delete_old_keys(south)
    if is_archived:
        await archive_transactions(south)
    transfer_id = response.json()["transaction_id"]
    if is_return:
        assert (await decide(north, transfer_id, "return")).status_code == 200
    await north.deliver()
    record = await get_transfer(north, transfer_id)
    assert record["status"] == ("returned" if is_blocked else "delivered")
    amounts = ("1000.00", "0.00") if is_blocked else ("797.00", "200.00")
    await require_amounts(books, (sender, recipient), *amounts)


async def test_transfer_that_stops_for_months_is_delivered_or_returned(books: Books) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    transfers = [
        (await north.send(sender, recipient, "200.00")).json()["transaction_id"] for _ in range(2)
    ]
    await set_suspended(south, is_suspended=True)
    await north.deliver()
    await delete_old_keys(south)
    await set_suspended(south, is_suspended=False)
    await decide(north, transfers[0], "retry")
    await decide(north, transfers[1], "return")
    await north.deliver()
    assert await north.list_statuses() == ["delivered", "returned"]
    await require_amounts(books, (sender, recipient), "797.00", "200.00")


async def test_outcome_of_an_archived_request_without_a_transaction_id_is_unknown(
    books: Books,
) -> None:
    """Its partner reference may have been deleted, so it may have been credited."""
    _, south = books
    recipient = await south.harness.create_subscriber()
    body = {"recipient_id": recipient["id"], "sender_name": "Eve", "amount": "5.00"}
    fields = {**body, "request_id": "no-transaction"}
    credited = await south.harness.post(f"{V1}/books/transfers", json=fields, auth=south.peer)
    assert credited.status_code == 200, credited.text
    await delete_old_keys(south)
    await archive_transactions(south)
    repeated = await south.harness.post(f"{V1}/books/transfers", json=fields, auth=south.peer)
    assert parse_error(repeated) == (409, "DUPLICATE_REQUEST")
    assert await south.get_balance(recipient["id"]) == "5.00"
