"""The console page of transfers to other books: numbers that two books have."""

from builders.books import configure_peer
from drivers.console import ConsoleClient
from harness import Harness
from tapgate_client import ids

PAGE = "/console/book-transfers"


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
