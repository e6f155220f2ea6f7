"""Another book that answers nonsense: nothing is lost, nothing fails, and staff see it."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from builders.book_transfers import get_transfer, refuse_for_a_day, require_amounts
from builders.books import V1, Book, send_elsewhere
from harness import parse_error
from tapgate.core.settings.books import BookPeer

Books = tuple[Book, Book]
RECEIPT = {
    "success": True, "message": "ok", "transaction_id": "txn_0800000000000",
    "status": "completed", "amount": "200.00 SLE",
}  # fmt: skip


class NonsenseTransport(httpx2.AsyncBaseTransport):
    """Connection to a server that gives the same response to every request."""

    def __init__(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.status, self.content, self.headers = status, content, headers

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(
            self.status, content=self.content, headers=self.headers, request=request
        )


def answer(book: Book, status: int, body: Any, **headers: str) -> None:
    """Let the other book answer nonsense."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    book.link.transport = NonsenseTransport(status, content, headers)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (200, b"<html>It works!</html>", "UNEXPECTED_RESPONSE"),
        (200, b"", "UNEXPECTED_RESPONSE"),
        (200, b"\xff\x00", "UNEXPECTED_RESPONSE"),
        (200, [], "UNEXPECTED_RESPONSE"),
        (200, {**RECEIPT, "status": "failed"}, "UNEXPECTED_RESPONSE"),
        (200, {**RECEIPT, "status": "perhaps"}, "UNEXPECTED_RESPONSE"),
        (200, {**RECEIPT, "amount": "2.00 SLE"}, "UNEXPECTED_RESPONSE"),
        (200, {**RECEIPT, "transaction_id": "\x00"}, "UNEXPECTED_RESPONSE"),
        (302, b"", "UNEXPECTED_RESPONSE"),
        (404, b"not here", "UNEXPECTED_RESPONSE"),
        (409, {"error": "?", "code": "\x00<b>"}, "UNEXPECTED_RESPONSE"),
        (409, {"error": "?", "code": "A_NEW_CODE"}, "A_NEW_CODE"),
    ],
)
async def test_transfer_stops_after_a_day_of_nonsense_and_is_then_delivered(
    books: Books, status: int, body: Any, error: str
) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    transfer_id = response.json()["transaction_id"]
    answer(north, status, body)
    await north.deliver()
    record = await get_transfer(north, transfer_id)
    assert (record["status"], record["error"]) == ("pending", error)
    await refuse_for_a_day(north)
    assert (await get_transfer(north, transfer_id))["status"] == "stopped"
    north.connect(south)
    await north.services.database.execute("UPDATE book_transfers SET status = 'pending'")
    await north.deliver()
    assert (await get_transfer(north, transfer_id))["status"] == "delivered"
    await require_amounts(books, (sender, recipient), "797.00", "200.00")


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_errors_of_a_proxy_are_repeated_as_no_response(books: Books, status: int) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    response = await north.send(sender, await south.harness.create_subscriber(), "200.00")
    answer(north, status, b"<html>Bad gateway</html>")
    await north.deliver()
    record = await get_transfer(north, response.json()["transaction_id"])
    assert (record["error"], record["refused_since"]) == ("NO_RESPONSE", None)


async def test_final_refusal_with_an_invalid_code_returns_the_money(books: Books) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    response = await north.send(sender, recipient, "200.00")
    answer(north, 409, {"error": "?", "code": "\x00"}, **{"Idempotent-Replayed": "true"})
    await north.deliver()
    record = await get_transfer(north, response.json()["transaction_id"])
    assert (record["status"], record["refusal_code"]) == ("returned", "UNEXPECTED_RESPONSE")
    await require_amounts(books, (sender, recipient), "1000.00", "0.00")


@pytest.mark.parametrize(
    ("code", "memo"),
    [("CALL_23299000000", "UNEXPECTED_RESPONSE"), ("SUBSCRIBER_BLOCKED", "SUBSCRIBER_BLOCKED")],
)
async def test_customer_sees_only_known_refusal_codes(books: Books, code: str, memo: str) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    await north.send(sender, recipient, "200.00")
    answer(north, 409, {"error": "?", "code": code}, **{"Idempotent-Replayed": "true"})
    await north.deliver()
    query = "SELECT context ->> 'memo' FROM transactions WHERE type = 'reversal'"
    assert await north.services.database.fetchval(query) == memo


CUSTOMER = {
    "book": "south", "subscriber_id": "sub_0800000000000", "name": "Fatu S.", "can_receive": True,
    "version": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"<html>It works!</html>",
        {**CUSTOMER, "subscriber_id": "\x00"},
        {**CUSTOMER, "subscriber_id": "txn_0800000000000"},
        {**CUSTOMER, "version": "one"},
    ],
)
async def test_directory_that_answers_nonsense_does_not_respond(books: Books, body: Any) -> None:
    north, _ = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    answer(north, 200, body)
    recipient = {"phone_number": north.harness.new_phone_number()}
    response = await north.send(sender, recipient, "20.00")
    assert parse_error(response) == (503, "SERVICE_UNAVAILABLE")
    assert await north.list_statuses() == []


async def test_name_from_another_book_is_cleaned(books: Books) -> None:
    north, _ = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    answer(north, 200, {**CUSTOMER, "name": "Win at https://evil.example\x00 Fatu"})
    recipient = {"phone_number": north.harness.new_phone_number()}
    response = await north.send(sender, recipient, "20.00")
    assert response.status_code == 200, response.text
    assert response.json()["recipient"] == {"name": "Win at Fatu", "book": "south"}


POSITION = {
    "book": "south", "as_of": "2026-11-01T00:00:00Z", "currency": "SLE", "owed": "0.00",
    "in_transit": "0.00", "accounts": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"<html>It works!</html>",
        {**POSITION, "owed": "much"},
        {**POSITION, "in_transit": "1.234"},
        {**POSITION, "accounts": [{"kind": "wallet", "balance": ""}]},
    ],
)
async def test_report_names_a_book_that_answers_nonsense(books: Books, body: Any) -> None:
    north, _ = books
    answer(north, 200, body)
    response = await north.harness.get(
        f"{V1}/books/report", auth=await north.harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    report = response.json()
    assert (report["is_complete"], report["missing_books"]) == (False, ["south"])


async def test_report_adds_currencies_separately(books: Books) -> None:
    """And it reads sums that are larger than an amount may be."""
    north, _ = books
    await north.harness.create_subscriber(balance="10.00")
    accounts = [{"kind": "wallet", "balance": "5000000000000"}, {"kind": "new", "balance": "-1"}]
    body = {**POSITION, "currency": "GNF", "owed": "0", "in_transit": "0", "accounts": accounts}
    answer(north, 200, body)
    response = await north.harness.get(
        f"{V1}/books/report", auth=await north.harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    report = response.json()
    totals = {(row["currency"], row["kind"]): row["balance"] for row in report["accounts"]}
    assert totals["SLE", "wallet"] == "10.00"
    assert (totals["GNF", "wallet"], totals["GNF", "new"]) == ("5000000000000", "-1")
    (row,) = report["books"]
    assert (row["owed_by_book"], row["in_transit"], row["difference"]) == ("0", None, None)
    assert (report["missing_books"], report["is_complete"]) == ([], True)


class HangingTransport(httpx2.AsyncBaseTransport):
    """Connection to two books, of which `west` accepts requests and never responds."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self.transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "west":
            await asyncio.Event().wait()
        return await self.transport.handle_async_request(request)


async def test_book_that_hangs_does_not_delay_other_books(books: Books) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    recipient = await south.harness.create_subscriber()
    partner = await north.harness.create_partner()
    assert partner.partner_id is not None
    await north.harness.disable_compliance_rules()
    for _ in range(20):
        await send_elsewhere(north.services, partner.partner_id, sender["id"], "1.00", book="west")
    assert (await north.send(sender, recipient, "200.00")).status_code == 200
    settings = north.services.settings
    west = BookPeer(
        url="http://west", partner=partner.partner_id, own_partner=partner.partner_id,
        key=partner.key_id,
    )  # fmt: skip
    north.configure(
        book_peers={**settings.book_peers, "west": west},
        book_secrets={**settings.book_secrets, "west": "secret"},
    )
    north.link.transport = HangingTransport(north.link.transport)
    worker = asyncio.create_task(north.worker.run())
    try:
        async with asyncio.timeout(5):
            while await south.get_balance(recipient["id"]) != "200.00":
                await asyncio.sleep(0.05)
    finally:
        worker.cancel()
        await asyncio.wait([worker])
