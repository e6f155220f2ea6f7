"""Transfers that the other book refuses, and what staff decide about them."""

from typing import Any

import httpx2
import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.book_transfers import (
    decide,
    get_transfer,
    refuse_for_a_day,
    require_amounts,
    set_suspended,
)
from builders.books import V1, Book, allow_debt
from harness import parse_error
from tapgate.business.payments.books import transfers
from tapgate.business.payments.books.book_metrics import BookMetrics
from tapgate.business.payments.books.delivery import ErrorKind, classify
from tapgate_client.exceptions import ApiConnectionError, ApiError, TapgateError
from tapgate_client.schemas.common import ErrorBody

Books = tuple[Book, Book]


def build_error(status: int, code: str, *, replayed: bool = False) -> ApiError:
    error = ApiError(ErrorBody(error="", code=code), status, "")
    error.replayed = replayed
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (build_error(403, "SUBSCRIBER_BLOCKED", replayed=True), ErrorKind.FINAL),
        (build_error(404, "SUBSCRIBER_NOT_FOUND"), ErrorKind.FINAL),
        (build_error(409, "TRANSFER_CANCELLED"), ErrorKind.FINAL),
        (build_error(403, "SUBSCRIBER_BLOCKED"), ErrorKind.REFUSED),
        (build_error(401, "UNAUTHORIZED"), ErrorKind.REFUSED),
        (build_error(403, "FORBIDDEN"), ErrorKind.REFUSED),
        (build_error(403, "PARTNER_SUSPENDED"), ErrorKind.REFUSED),
        (build_error(404, "NOT_FOUND"), ErrorKind.REFUSED),
        (build_error(409, "DUPLICATE_REQUEST"), ErrorKind.REFUSED),
        (build_error(409, "DUPLICATE_REFERENCE"), ErrorKind.REFUSED),
        (build_error(422, "VALIDATION_FAILED"), ErrorKind.REFUSED),
        (build_error(429, "RATE_LIMITED"), ErrorKind.UNAVAILABLE),
        (build_error(500, "INTERNAL_ERROR"), ErrorKind.UNAVAILABLE),
        (build_error(503, "SERVICE_UNAVAILABLE"), ErrorKind.UNAVAILABLE),
        (ApiConnectionError("no route"), ErrorKind.UNAVAILABLE),
    ],
)
def test_only_a_stored_decline_or_an_unknown_recipient_is_final(
    error: TapgateError, kind: ErrorKind
) -> None:
    assert classify(error) is kind


async def send_refused(books: Books) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Send a transfer while the other book has suspended this book's partner."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber(first_name="Fatu", last_name="Sesay")
    response = await north.send(sender, recipient, "200.00")
    assert response.status_code == 200, response.text
    await set_suspended(south, is_suspended=True)
    await north.deliver()
    transfer_id: str = response.json()["transaction_id"]
    return sender, recipient, transfer_id


async def close_subscriber(book: Book, subscriber: dict[str, Any]) -> httpx2.Response:
    return await book.harness.post(
        f"{V1}/subscribers/{subscriber['id']}/close",
        json={"reason": "Moves abroad"},
        auth=await book.harness.create_admin("A"),
    )


async def test_refusal_that_is_not_final_is_repeated_with_growing_pauses(books: Books) -> None:
    north, south = books
    sender, recipient, transfer_id = await send_refused(books)
    pauses = []
    for _ in range(12):
        await north.deliver()
        row = await north.services.database.fetchrow(
            "SELECT next_attempt_at - now() AS pause FROM book_transfers"
        )
        pauses.append(row["pause"].total_seconds())
    assert pauses[0] < 10
    assert 600 < pauses[-1] < 1200
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["error"]) == ("pending", "PARTNER_SUSPENDED")
    assert record["refused_since"] is not None
    await set_suspended(south, is_suspended=False)
    await north.deliver()
    assert (await get_transfer(north, transfer_id))["status"] == "delivered"
    await require_amounts(books, (sender, recipient), "797.00", "200.00")


async def test_transfer_that_is_refused_for_a_day_stops_and_can_be_retried(books: Books) -> None:
    north, south = books
    sender, recipient, transfer_id = await send_refused(books)
    await refuse_for_a_day(north)
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["next_attempt_at"]) == ("stopped", None)
    requests = len(north.link.requests)
    await north.deliver()
    assert len(north.link.requests) == requests, "a stopped transfer is not repeated"
    await set_suspended(south, is_suspended=False)
    response = await decide(north, transfer_id, "retry")
    assert (response.status_code, response.json()["status"]) == (200, "pending")
    assert response.json()["refused_since"] is None
    await north.worker.deliver_due()
    assert (await get_transfer(north, transfer_id))["status"] == "delivered"
    await require_amounts(books, (sender, recipient), "797.00", "200.00")
    assert parse_error(await decide(north, transfer_id, "retry")) == (409, "ALREADY_RESOLVED")
    assert parse_error(await decide(north, transfer_id, "return")) == (409, "ALREADY_RESOLVED")


async def test_return_waits_until_the_other_book_has_refused_for_good(books: Books) -> None:
    north, south = books
    sender, recipient, transfer_id = await send_refused(books)
    assert (await get_transfer(north, transfer_id))["can_return"]
    response = await decide(north, transfer_id, "return")
    assert response.status_code == 200, response.text
    assert not response.json()["can_return"]
    await north.deliver()
    assert await north.get_balance(sender["id"]) == "797.00", "the other book has not confirmed it"
    await set_suspended(south, is_suspended=False)
    await north.deliver()
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["refusal_code"]) == ("returned", "TRANSFER_CANCELLED")
    await require_amounts(books, (sender, recipient), "1000.00", "0.00")
    audit = await north.services.database.fetch(
        "SELECT event, reason FROM audit_entries WHERE resource_id = $1 AND event LIKE '%return%'",
        transfer_id,
    )
    expected = ("transaction.return_requested", "The other book has closed")
    assert [tuple(row) for row in audit] == [expected]


async def test_late_request_for_a_canceled_transfer_credits_nothing(books: Books) -> None:
    north, south = books
    sender, recipient, transfer_id = await send_refused(books)
    await set_suspended(south, is_suspended=False)
    await decide(north, transfer_id, "return")
    await north.deliver()
    late = await south.harness.post(
        f"{V1}/books/transfers",
        json={
            "recipient_id": recipient["id"], "sender_name": "Aminata K.", "amount": "200.00",
            "currency": "SLE", "request_id": transfer_id,
        },
        auth=south.peer,
    )  # fmt: skip
    assert parse_error(late) == (409, "TRANSFER_CANCELLED")
    assert late.headers["Idempotent-Replayed"] == "true"
    await require_amounts(books, (sender, recipient), "1000.00", "0.00")


@pytest.mark.parametrize("is_lost", [False, True])
async def test_return_of_a_credited_transfer_moves_no_money(books: Books, is_lost: bool) -> None:
    """The credit's response was lost, and staff decide before the next attempt."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    north.link.faults = iter(["unanswered"])
    await north.deliver()
    transfer_id = response.json()["transaction_id"]
    assert (await decide(north, transfer_id, "return")).status_code == 200
    north.link.faults = iter(["unanswered"] if is_lost else [])
    for _ in range(2):
        await north.deliver()
    assert (await get_transfer(north, transfer_id))["status"] == "delivered"
    await require_amounts(books, (sender, recipient), "797.00", "200.00")


async def test_sender_who_becomes_restricted_between_two_attempts_is_delivered_once(
    books: Books,
) -> None:
    """The name that the other book gets changes, and the first response was lost."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    await north.send(sender, recipient, "200.00")
    north.link.faults = iter(["unanswered"])
    await north.deliver()
    await north.services.database.execute(
        "UPDATE subscribers SET restricted = true WHERE phone_number = $1", sender["phone_number"]
    )
    await north.deliver()
    assert await north.list_statuses() == ["delivered"]
    assert await south.get_balance(recipient["id"]) == "200.00"


async def test_new_partner_for_the_same_book_credits_nothing_twice(books: Books) -> None:
    """The first response was lost, and then the other book replaced the partner."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    north.link.faults = iter(["unanswered"])
    await north.deliver()
    south.peer = await south.harness.create_partner("North, with a new partner")
    await allow_debt(south.services.database, south.peer)
    north.connect(south)
    south.connect(north)
    await north.deliver()
    assert (await get_transfer(north, response.json()["transaction_id"]))["status"] == "delivered"
    assert await south.get_balance(recipient["id"]) == "200.00"


async def test_sender_cannot_be_closed_while_a_transfer_may_come_back(books: Books) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="203.00")
    recipient = await south.harness.create_subscriber()
    assert (await north.send(sender, recipient, "200.00")).status_code == 200
    assert await north.get_balance(sender["id"]) == "0.00"
    assert (await close_subscriber(south, recipient)).status_code == 200
    assert parse_error(await close_subscriber(north, sender)) == (409, "NOT_CLOSABLE")
    await north.deliver()
    assert await north.list_statuses() == ["returned"]
    await require_amounts(books, (sender, recipient), "203.00", "0.00")


async def test_sender_can_be_closed_after_the_delivery(books: Books) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="203.00")
    await north.send(sender, await south.harness.create_subscriber(), "200.00")
    await north.deliver()
    assert (await close_subscriber(north, sender)).status_code == 200


async def test_transfer_under_review_cannot_be_returned(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even without approval, if the review ends while the request is checked."""
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    await north.services.database.execute(
        "UPDATE compliance_rules SET threshold = 10000 WHERE name = 'Large amount'"
    )
    north.services.ledger.invalidate_rules()
    response = await north.send(sender, recipient, "200.00")
    transfer_id = response.json()["transaction_id"]
    assert not (await get_transfer(north, transfer_id))["can_return"]
    assert parse_error(await decide(north, transfer_id, "return")) == (409, "NOT_REVERSIBLE")
    await set_rules(north.harness, build_rule("reversals", above="100"))
    request_return = transfers.request_return

    async def request_after_release(*arguments: Any, **fields: Any) -> Any:
        await north.services.database.execute("UPDATE transactions SET status = 'completed'")
        return await request_return(*arguments, **fields)

    monkeypatch.setattr(transfers, "request_return", request_after_release)
    assert parse_error(await decide(north, transfer_id, "return")) == (409, "NOT_REVERSIBLE")


async def test_list_shows_transfers_by_status(books: Books) -> None:
    north, _ = books
    _, _, transfer_id = await send_refused(books)
    await refuse_for_a_day(north)
    auth = await north.harness.create_admin("F")
    found = {}
    for status in ("stopped", "pending"):
        response = await north.harness.get(f"{V1}/books/transfers?status={status}", auth=auth)
        found[status] = [(row["id"], row["book"], row["amount"]) for row in response.json()["data"]]
    assert found == {"stopped": [(transfer_id, "south", "200.00")], "pending": []}


async def test_metrics_name_the_book_and_the_age(books: Books) -> None:
    north, _ = books
    await send_refused(books)
    await north.services.database.execute(
        "UPDATE transactions SET completed_at = now() - interval '1 hour'"
        " WHERE id = (SELECT id FROM book_transfers)"
    )
    for stopped in (0, 1):
        metrics = BookMetrics(north.services.database, ["south"])
        await metrics.update()
        counts, ages, _ = (metric.samples for metric in metrics.collect())
        assert [(item.labels, item.value) for item in counts] == [({"book": "south"}, stopped)]
        assert 3600 <= ages[0].value < 3700
        await refuse_for_a_day(north)


async def test_return_can_require_approval(books: Books) -> None:
    north, south = books
    sender, recipient, transfer_id = await send_refused(books)
    await set_rules(north.harness, build_rule("reversals", above="100"))
    approval = require_held(await decide(north, transfer_id, "return"))
    assert not (await get_transfer(north, transfer_id))["return_requested_at"]
    await approve(north.harness, approval)
    await set_suspended(south, is_suspended=False)
    await north.deliver()
    await require_amounts(books, (sender, recipient), "1000.00", "0.00")
