"""Transfers between two books in tests: refusals, staff decisions and the amounts on both sides."""

from datetime import timedelta
from typing import Any

import httpx2

from builders.books import V1, Book
from builders.ledger import require_balanced_books
from tapgate.business.payments.books.outgoing import MAX_REFUSED


async def set_suspended(book: Book, *, is_suspended: bool) -> None:
    action = "suspend" if is_suspended else "activate"
    response = await book.harness.post(
        f"{V1}/admin/partners/{book.peer.partner_id}/{action}",
        json={"reason": "incident"},
        auth=await book.harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text


async def refuse_for_a_day(book: Book) -> None:
    await book.services.database.execute(
        "UPDATE book_transfers SET refused_since = $1 WHERE status = 'pending'",
        book.services.clock() - MAX_REFUSED - timedelta(seconds=1),
    )
    await book.deliver()


async def get_transfer(book: Book, transfer_id: str) -> dict[str, Any]:
    response = await book.harness.get(
        f"{V1}/books/transfers/{transfer_id}", auth=await book.harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def decide(book: Book, transfer_id: str, decision: str, **fields: bool) -> httpx2.Response:
    body = {"reason": "The other book has closed", **fields} if decision == "return" else None
    return await book.harness.post(
        f"{V1}/books/transfers/{transfer_id}/{decision}",
        json=body,
        auth=await book.harness.create_admin("F"),
    )


async def require_amounts(
    books: tuple[Book, Book],
    people: tuple[dict[str, Any], dict[str, Any]],
    sent: str,
    received: str,
) -> None:
    north, south = books
    sender, recipient = people
    assert await north.get_balance(sender["id"]) == sent
    assert await south.get_balance(recipient["id"]) == received
    for book in books:
        await require_balanced_books(book.services.database)
    assert await north.get_clearing_balance() == -await south.get_clearing_balance()
