"""Transaction CSV export, assembled from list pages."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from tapgate.http.api import csv_files
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.transactions import (
    ExportFilters,
    PartyRecord,
    TransactionFilters,
    TransactionRecord,
)

PAGE_SIZE: Final = 1_000

COLUMNS: Final = (
    "id", "created_at", "completed_at", "type", "status", "amount", "fee_amount",
    "refunded_amount", "currency", "from_type", "from_id", "from_name", "to_type", "to_id",
    "to_name", "card_serial", "processor_id", "terminal_id", "merchant_name", "transaction_ref",
    "approval_code", "original_transaction_id", "request_id", "failure_code", "channel", "memo",
    "fee_payer", "fee_refunded", "reversed_amount", "reference", "book", "masked",
)  # fmt: skip
_get_leading_cells = attrgetter(*COLUMNS[: COLUMNS.index("from_type")])
_get_trailing_cells = attrgetter(*COLUMNS[COLUMNS.index("card_serial") : -1])


class Export(NamedTuple):
    content: bytes
    next_cursor: str | None  # cursor for the next file, if there are more transactions
    masked: bool  # whether any row is masked


PageReader = Callable[[TransactionFilters], Awaitable[Page[TransactionRecord]]]


async def export_csv(read_page: PageReader, filters: ExportFilters) -> Export:
    """Export transactions page by page, so that other requests are served in between."""
    parts = [csv_files.render_file(COLUMNS)]
    remaining, cursor, masked = filters.limit, filters.cursor, False
    while remaining:
        limit = min(remaining, PAGE_SIZE)
        page = await read_page(msgspec.structs.replace(filters, limit=limit, cursor=cursor))
        parts.append(await asyncio.to_thread(_encode_rows, page.data))
        remaining, cursor = remaining - len(page.data), page.next_cursor
        masked = masked or page.masked is True
        if cursor is None:
            break
    return Export(b"".join(parts), cursor, masked)


def _encode_rows(records: Iterable[TransactionRecord]) -> bytes:
    return csv_files.render_rows(
        [cell or "" for cell in _build_cells(record)] for record in records
    )


def _build_cells(record: TransactionRecord) -> tuple[str | None, ...]:
    return (
        *_get_leading_cells(record),
        *_build_party_cells(record.from_),
        *_build_party_cells(record.to),
        *_get_trailing_cells(record),
        "true" if record.masked else None,
    )


def _build_party_cells(party: PartyRecord | None) -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if party is None else (party.type, party.id, party.name or None)
