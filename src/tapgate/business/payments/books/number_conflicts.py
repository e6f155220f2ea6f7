"""Customers of this book whose phone number another book has too, for staff."""

from typing import Any, Final

from tapgate.http.api.book_peers import BookPeers
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.books import BookNumberConflict
from tapgate_client.schemas.pagination import PageQuery

_SELECT: Final = "SELECT id, book, created_at FROM number_checks"
#: Conflicts in the consolidated report.
_MAX_REPORTED: Final = 100


async def list_page(database: Database, peers: BookPeers, query: PageQuery) -> list[Any]:
    """Return a page of conflicts with books in the settings: the others are not compared."""
    conditions = PageConditions(query)
    conditions.where_word("status", "conflict")
    conditions.where("book = ANY ({})", peers.codes)
    return await conditions.fetch(database, _SELECT)


async def list_first(database: Database, peers: BookPeers) -> list[BookNumberConflict]:
    rows = await list_page(database, peers, PageQuery(limit=_MAX_REPORTED))
    return [to_record(row) for row in rows[:_MAX_REPORTED]]


def to_record(row: Any) -> BookNumberConflict:
    return BookNumberConflict(
        subscriber_id=ids.encode(ids.SUBSCRIBER, row["id"]),
        book=row["book"],
        since=format_rfc3339(row["created_at"]),
    )
