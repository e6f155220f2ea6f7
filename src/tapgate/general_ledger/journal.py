"""Export of one day's journal, assembled from pages of transactions."""

import asyncio
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.general_ledger import queries
from tapgate.general_ledger.journal_formats import BUILDERS
from tapgate.ledger.archived import require_live
from tapgate.schemas.general_ledger import JournalQuery
from tapgate.schemas.pagination import encode_cursor
from tapgate.schemas.periods import parse_period_end, parse_period_start
from tapgate.store.database import Database

_PAGE_SIZE: Final = 1_000


class JournalFile(NamedTuple):
    name: str
    content: bytes
    content_type: str
    next_cursor: str | None  # cursor of the next file, if there are more transactions


async def export_journal(
    database: Database, query: JournalQuery, *, zone: ZoneInfo, currency: str
) -> JournalFile:
    """Export transactions page by page, so that other requests are served in between."""
    start, end = parse_period_start(query.day, zone), parse_period_end(query.day, zone)
    assert start is not None
    assert end is not None
    await require_live(database, start, "day")
    codes = await queries.list_codes(database)
    builder = BUILDERS[query.format](codes, query.day, currency)
    parts = [builder.render_opening()]
    remaining, after_id, next_cursor = query.limit, query.after_id, None
    while remaining:
        size = min(remaining, _PAGE_SIZE)
        transaction_ids = await queries.list_day_transaction_ids(
            database, start, end, after_id, size + 1
        )
        has_more = len(transaction_ids) > size
        if transaction_ids:
            transaction_ids = transaction_ids[:size]
            entries = await queries.list_entries(database, transaction_ids)
            parts.append(
                await asyncio.to_thread(builder.render_entries, entries, is_first=len(parts) == 1)
            )
            after_id = transaction_ids[-1]
        remaining -= size
        next_cursor = encode_cursor(after_id) if has_more else None
        if not has_more:
            break
    await require_live(database, start, "day")  # the month may have been archived between pages
    parts.append(builder.render_ending(next_cursor))
    return JournalFile(
        f"journal-{query.day}.{builder.extension}",
        b"".join(parts),
        builder.content_type,
        next_cursor,
    )
