"""A phone number belongs to the customers of one book."""

from typing import Any

import httpx2

from builders.books import V1, Book
from harness import PIN, parse_error
from tapgate.business.payments.books.book_metrics import BookMetrics
from tapgate.business.payments.books.number_checks import NumberCheckWorker

Books = tuple[Book, Book]


async def register(book: Book, phone_number: str) -> httpx2.Response:
    body = {
        "first_name": "Aminata", "last_name": "Kamara", "phone_number": phone_number, "pin": PIN,
    }  # fmt: skip
    return await book.harness.post(
        f"{V1}/subscribers", json=body, auth=book.harness.get_service_auth()
    )


async def check_numbers(book: Book) -> list[str]:
    """Check all numbers, including those that are not due yet, and return what is left."""
    book.services.book_peers.directory = type(book.services.book_peers.directory)()
    await book.services.database.execute("UPDATE number_checks SET next_attempt_at = '2000-01-01Z'")
    await NumberCheckWorker(book.services).check_due()
    rows = await book.services.database.fetch("SELECT status FROM number_checks")
    return [row["status"] for row in rows]


async def list_conflicts(book: Book) -> list[dict[str, Any]]:
    response = await book.harness.get(
        f"{V1}/books/report", auth=await book.harness.create_admin("F")
    )
    conflicts: list[dict[str, Any]] = response.json()["number_conflicts"]
    return conflicts


async def count_conflicts(book: Book) -> list[tuple[dict[str, str], float]]:
    metrics = BookMetrics(book.services.database, book.services.book_peers.codes)
    await metrics.update()
    *_, conflicts = metrics.collect()
    return [(sample.labels, sample.value) for sample in conflicts.samples]


async def test_conflict_with_a_removed_book_is_not_listed(books: Books) -> None:
    """It is no longer compared, so staff could not end it."""
    north, south = books
    known = await south.harness.create_subscriber()
    await set_reachable(north, south, is_reachable=False)
    await register(north, known["phone_number"])
    await set_reachable(north, south, is_reachable=True)
    assert await check_numbers(north) == ["conflict"]
    north.disconnect()
    assert await list_conflicts(north) == []
    assert await count_conflicts(north) == []


async def set_reachable(book: Book, other: Book, *, is_reachable: bool) -> None:
    """Activate or suspend the partner with which a book asks the other one."""
    action = "activate" if is_reachable else "suspend"
    response = await other.harness.post(
        f"{V1}/admin/partners/{other.peer.partner_id}/{action}",
        json={"reason": "incident"},
        auth=await other.harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text
    book.services.book_peers.directory = type(book.services.book_peers.directory)()


async def test_number_of_another_book_is_rejected_with_the_book(books: Books) -> None:
    north, south = books
    known = await south.harness.create_subscriber()
    response = await register(north, known["phone_number"])
    assert parse_error(response) == (409, "DUPLICATE_PHONE")
    assert response.json()["details"] == {"book": "south"}
    own = await north.harness.create_subscriber()
    update = await north.harness.put(
        f"{V1}/subscribers/{own['id']}",
        json={"phone_number": known["phone_number"]},
        auth=await north.harness.create_admin("A"),
    )
    assert parse_error(update) == (409, "DUPLICATE_PHONE")


async def test_new_number_is_checked_once_more_and_then_forgotten(books: Books) -> None:
    north, _ = books
    response = await register(north, north.harness.new_phone_number())
    assert response.status_code == 201, response.text
    assert await check_numbers(north) == []


async def test_registration_does_not_wait_for_a_book_that_does_not_respond(books: Books) -> None:
    north, south = books
    known = await south.harness.create_subscriber()
    await set_reachable(north, south, is_reachable=False)
    response = await register(north, known["phone_number"])
    assert response.status_code == 201, response.text
    assert await check_numbers(north) == ["pending"]
    assert await list_conflicts(north) == []
    await set_reachable(north, south, is_reachable=True)
    assert await check_numbers(north) == ["conflict"]
    (conflict,) = await list_conflicts(north)
    subscriber_id = response.json()["subscriber_id"]
    assert (conflict["subscriber_id"], conflict["book"]) == (subscriber_id, "south")
    assert await check_numbers(north) == ["conflict"]
    assert await count_conflicts(north) == [({"book": "south"}, 1)]
    page = await north.harness.get(
        f"{V1}/books/number-conflicts", auth=await north.harness.create_admin("F")
    )
    assert page.json()["data"] == [conflict]


async def test_conflict_ends_when_the_number_changes(books: Books) -> None:
    north, south = books
    known = await south.harness.create_subscriber()
    await set_reachable(north, south, is_reachable=False)
    response = await register(north, known["phone_number"])
    await set_reachable(north, south, is_reachable=True)
    assert await check_numbers(north) == ["conflict"]
    update = await north.harness.put(
        f"{V1}/subscribers/{response.json()['subscriber_id']}",
        json={"phone_number": north.harness.new_phone_number()},
        auth=await north.harness.create_admin("A"),
    )
    assert update.status_code == 200, update.text
    assert await list_conflicts(north) == []
    assert await check_numbers(north) == []
