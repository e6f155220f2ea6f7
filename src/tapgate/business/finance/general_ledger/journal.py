"""Journal export for a day or period, assembled from transaction pages."""

import asyncio
from datetime import date
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.business.branding.model import Branding
from tapgate.business.finance.general_ledger import queries
from tapgate.business.finance.general_ledger.journal_formats import BUILDERS
from tapgate.business.finance.general_ledger.journal_pdf import PdfJournalBuilder
from tapgate.core.pagination import encode_cursor
from tapgate.ledger.archive.archived import require_live
from tapgate.runtime.store.database import Database
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.general_ledger import JournalFormat, JournalQuery
from tapgate_client.schemas.periods import parse_period_end, parse_period_start

PAGE_SIZE: Final = 1_000


_MAX_DAYS: Final = 31


class JournalFile(NamedTuple):
    name: str
    content: bytes
    content_type: str
    next_cursor: str | None  # cursor for the next file, if there are more transactions


async def export_journal(
    database: Database,
    query: JournalQuery,
    branding: Branding,
    *,
    zone: ZoneInfo,
    currency: str,
) -> JournalFile:
    """Export transactions page by page, so that other requests are served in between."""
    first, last = _get_period(query)
    start, end = parse_period_start(first, zone), parse_period_end(last, zone)
    assert start is not None
    assert end is not None
    field = "day" if query.day is not None else "from"
    await require_live(database, start, field)
    codes = await queries.list_codes(database)
    builder = (BUILDERS | {JournalFormat.PDF: PdfJournalBuilder})[query.format](
        codes, currency, zone
    )
    if isinstance(builder, PdfJournalBuilder):
        builder.branding, builder.period = branding, f"{first} – {last}"
    parts = [builder.render_opening()]
    remaining, after_id, next_cursor = query.limit, query.after_id, None
    while remaining:
        size = min(remaining, PAGE_SIZE)
        transaction_ids = await queries.list_transaction_ids(
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
    await require_live(database, start, field)  # the month may have been archived between pages
    parts.append(await asyncio.to_thread(builder.render_ending, next_cursor))
    return JournalFile(
        f"journal-{first if first == last else f'{first}-to-{last}'}.{builder.extension}",
        b"".join(parts),
        builder.content_type,
        next_cursor,
    )


def _get_period(query: JournalQuery) -> tuple[str, str]:
    """Return the journal's first and last day."""
    if query.day is not None:
        if query.from_ is not None or query.to is not None:
            raise invalid_field("day", "must not be combined with from and to")
        return query.day, query.day
    if query.from_ is None and query.to is None:
        raise invalid_field("day", "is required, unless from and to are set")
    if query.from_ is None or query.to is None:
        raise invalid_field("from" if query.from_ is None else "to", "is required")
    days = (date.fromisoformat(query.to) - date.fromisoformat(query.from_)).days + 1
    if days < 1:
        raise invalid_field("to", "must not be before from")
    if days > _MAX_DAYS:
        raise invalid_field("to", f"must not be later than {_MAX_DAYS} days from the start")
    return query.from_, query.to
