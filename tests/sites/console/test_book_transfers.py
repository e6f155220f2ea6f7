"""The console page of transfers to other books: decisions, and numbers that two books have."""

from builders.books import configure_peer, send_elsewhere
from drivers.console import ConsoleClient
from harness import Harness
from tapgate.http.api.book_peers import BookPeers
from tapgate_client import ids

PAGE = "/console/book-transfers"


async def stop_transfer(harness: Harness) -> str:
    """Send money to another book, which has not credited it for a day."""
    partner = await configure_peer(harness)
    sender = await harness.create_subscriber(balance="100.00")
    transfer_id = await send_elsewhere(
        harness.services, partner.partner_id or "", sender["id"], "20.00"
    )
    await harness.database.execute(
        "UPDATE book_transfers SET status = 'stopped', error = 'BOOK_NOT_CONFIGURED'"
    )
    return transfer_id


def remove_books(harness: Harness) -> None:
    settings = harness.services.settings.replace(book="north")
    harness.services.book_peers = BookPeers(settings)


async def test_only_a_transfer_to_a_removed_book_is_returned_without_confirmation(
    ada: ConsoleClient, harness: Harness
) -> None:
    transfer_id = await stop_transfer(harness)
    assert "Return without confirmation" not in await ada.get_page_text(PAGE)
    remove_books(harness)
    assert f'href="{PAGE}"' in await ada.get_page_text("/console")
    page = await ada.get_page_text(f"/console/transactions/{transfer_id}")
    assert "has not accepted it for a day. Waits for a decision by finance" in page
    assert "Retry now" in page and "Return without confirmation" in page
    text = await ada.get_page_text(PAGE)
    assert "Return without confirmation" in text and "Book not configured" in text
    fields = {"reason": "The book was closed", "without_confirmation": "true"}
    response = await ada.submit_action("book_transfer.return_unconfirmed", fields, id=transfer_id)
    assert response.status_code in (200, 303), response.text
    refusal = await harness.database.fetchval("SELECT refusal_code FROM book_transfers")
    assert refusal == "TRANSFER_CANCELLED"


async def test_number_conflicts_are_listed_with_what_to_do(
    ada: ConsoleClient, harness: Harness
) -> None:
    await configure_peer(harness)
    customer = await harness.create_subscriber()
    assert "Number conflicts" not in await ada.get_page_text(PAGE)
    for book, name in (("west", "a book that is not configured"), ("south", "a peer")):
        await harness.database.execute(
            """INSERT INTO number_checks (id, status, book, next_attempt_at, created_at)
               VALUES ($1, 'conflict', $2, now(), now())
               ON CONFLICT (id) DO UPDATE SET status = 'conflict', book = excluded.book""",
            ids.decode(ids.SUBSCRIBER, customer["id"]),
            book,
        )
        text = await ada.get_page_text(PAGE)
        assert ("Number conflicts" in text) == (book == "south"), name
    assert f'href="/console/subscribers/{customer["id"]}"' in text
    assert "Ask both customers whose number it is." in text
    assert "Number conflicts" not in (await ada.get_partial(PAGE)).text


async def test_page_without_other_books_leads_to_the_guide(ada: ConsoleClient) -> None:
    text = await ada.get_page_text(PAGE)
    assert "/guide/books" in text and "Transfers by status" not in text
