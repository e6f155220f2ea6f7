"""Customers who moved to another book: their old wallet here is closed, the number is the same."""

from typing import Any

import pytest

from builders.books import V1, Book
from harness import PIN, parse_error
from tapgate.http.api.book_peers import DirectoryCache

Books = tuple[Book, Book]


async def close(book: Book, customer: dict[str, Any]) -> None:
    response = await book.harness.post(
        f"{V1}/subscribers/{customer['id']}/close",
        json={"reason": "Moves to the south"},
        auth=await book.harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text


async def move_customer(books: Books) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Close a customer of north, who then registers in south with the same number and card."""
    north, south = books
    old = await north.harness.create_subscriber()
    serial = await north.harness.create_card(old["id"])
    await close(north, old)
    new = await south.harness.create_subscriber(phone_number=old["phone_number"])
    await south.harness.create_card(new["id"], serial=serial)
    # The registration has stored for 10 seconds that no other book has the number.
    north.services.book_peers.directory = DirectoryCache()
    return old, new, serial


@pytest.mark.parametrize("field", ["recipient_phone_number", "recipient_card_serial"])
async def test_transfer_reaches_a_customer_who_moved(books: Books, field: str) -> None:
    north, south = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    old, new, serial = await move_customer(books)
    value = serial if field == "recipient_card_serial" else old["phone_number"]
    response = await north.harness.post(
        f"{V1}/wallet/transfer-p2p",
        json={"sender_id": sender["id"], field: value, "amount": "200.00", "pin": PIN},
        auth=north.harness.get_service_auth(),
    )
    assert response.status_code == 200, response.text
    assert response.json()["recipient"]["book"] == "south"
    await north.deliver()
    assert await south.get_balance(new["id"]) == "200.00"


async def test_transfer_to_a_closed_customer_whom_no_book_has_is_declined(books: Books) -> None:
    north, _ = books
    sender = await north.harness.create_subscriber(balance="1000.00")
    old = await north.harness.create_subscriber()
    await close(north, old)
    response = await north.send(sender, old, "200.00")
    assert parse_error(response) == (403, "SUBSCRIBER_BLOCKED")


@pytest.mark.parametrize("is_unassigned", [False, True])
async def test_terminal_names_the_book_of_a_card_that_moved(
    books: Books, is_unassigned: bool
) -> None:
    north, _ = books
    _, _, serial = await move_customer(books)
    if is_unassigned:  # the card was never used here, and is in the stock of both books
        await north.services.database.execute(
            "UPDATE cards SET status = 'UNASSIGNED', subscriber_id = NULL, account_id = NULL,"
            " pin_holder_id = NULL WHERE serial = $1",
            serial,
        )
    shop = await north.harness.create_processor()
    for path, body in (
        ("/pos/payment", {"card_serial": serial, "amount": "5.00", "request_id": "one"}),
        ("/pos/lookup-card", {"card_identifier": serial}),
    ):
        response = await north.harness.post(f"{V1}{path}", json=body, auth=shop)
        assert parse_error(response) == (404, "CARD_IN_OTHER_BOOK"), path
        assert response.json()["details"] == {"book": "south"}


async def test_terminal_declines_a_blocked_card_of_this_book(books: Books) -> None:
    north, south = books
    customer = await north.harness.create_subscriber()
    serial = await north.harness.create_card(customer["id"], status="BLOCKED")
    south_customer = await south.harness.create_subscriber()
    await south.harness.create_card(south_customer["id"], serial=serial)
    shop = await north.harness.create_processor()
    response = await north.harness.post(
        f"{V1}/pos/payment",
        json={"card_serial": serial, "amount": "5.00", "request_id": "one"},
        auth=shop,
    )
    assert parse_error(response) == (403, "CARD_NOT_ACTIVE")
