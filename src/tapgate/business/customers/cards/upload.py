"""Bulk card upload: creates the new cards in a file and skips existing ones."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from time import monotonic
from typing import Final
from zoneinfo import ZoneInfo

from tapgate.auth.actors import Actor
from tapgate.business.customers.cards import upload_parser
from tapgate.business.customers.cards.keysets import lock_active
from tapgate.business.customers.cards.upload_parser import CardRow, build_row_error
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.store.connection_settings import format_timeout
from tapgate.runtime.store.transaction import OpenTransaction, Transaction
from tapgate_client.errors import unavailable
from tapgate_client.schemas.cards import UploadCardsResponse

_trail = AuditTrail("card")

#: Advisory lock held by the single active upload. Without it, two uploads with the same cards in
#: different orders could deadlock.
LOCK_KEY: Final = 0x63_6172_6473  # "cards" in ASCII

#: Insert statement timeout, and maximum wait for the lock. The usual statement timeout is too short
#: to insert and index 10,000 cards.
UPLOAD_TIMEOUT_SECONDS: Final = 30.0
_LOCK_RETRY_SECONDS: Final = 0.1

_DUPLICATE_UID: Final = {"MAC Address": "is already used by another card"}
_UNKNOWN_KEYSET: Final = {"Keyset": "must be the ID or the name of an active keyset"}
#: Cards from a file have the first version of their keys.
_KEY_VERSION: Final = 1


async def upload(
    open_transaction: OpenTransaction,
    actor: Actor,
    content_type: str | None,
    body: bytes,
    *,
    now: datetime,
    zone: ZoneInfo,
) -> UploadCardsResponse:
    """Upload cards from a file. Valid rows are stored even if other rows fail.

    Uploading the same file again creates no duplicates.
    """
    # Parse in a thread, so that thousands of rows do not block the event loop.
    rows, errors = await asyncio.to_thread(
        upload_parser.parse_upload, content_type, body, now, zone
    )
    total = len(rows) + len(errors)
    async with _acquire_upload_lock(open_transaction) as tx:
        keysets = await lock_active(tx) if any(row.keyset for row in rows) else {}
        valid_rows = [row for row in rows if row.keyset is None or row.keyset in keysets]
        errors += [
            build_row_error(row.line, row.serial, _UNKNOWN_KEYSET)
            for row in rows
            if row.keyset is not None and row.keyset not in keysets
        ]
        created = await _insert_cards(tx, valid_rows, keysets)
        remaining_rows = [row for row in valid_rows if row.serial not in created]
        skipped = await _find_existing_serials(tx, [row.serial for row in remaining_rows])
        errors += [
            build_row_error(row.line, row.serial, _DUPLICATE_UID)
            for row in remaining_rows
            if row.serial not in skipped
        ]
        response = UploadCardsResponse(
            message="Cards uploaded",
            total=total,
            created=len(created),
            skipped=len(skipped),
            errors=sorted(errors, key=lambda error: error.row),
        )
        counts = {
            name: (None, count)
            for name, count in (
                ("created", response.created),
                ("skipped", response.skipped),
                ("errors", len(response.errors)),
            )
        }
        await _trail.record(tx, actor, None, "uploaded", changes=counts)
    return response


@asynccontextmanager
async def _acquire_upload_lock(open_transaction: OpenTransaction) -> AsyncIterator[Transaction]:
    """Yield the single active upload's database transaction.

    Other uploads poll for the lock, and fail with 503 after a timeout. Waiting inside the database
    would occupy connections that payments need.
    """
    deadline = monotonic() + UPLOAD_TIMEOUT_SECONDS
    while True:
        async with open_transaction() as tx:
            if await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", LOCK_KEY):
                timeout = format_timeout(UPLOAD_TIMEOUT_SECONDS)
                await tx.execute(f"SET LOCAL statement_timeout = '{timeout}'")
                yield tx
                return
        if monotonic() > deadline:
            raise unavailable("Other card files are being uploaded. Try again shortly.")
        await asyncio.sleep(_LOCK_RETRY_SECONDS)


async def _insert_cards(
    tx: Transaction, rows: Sequence[CardRow], keysets: Mapping[str, int]
) -> set[str]:
    """Insert the cards whose serial and UID are new, and return their serials."""
    inserted = await tx.fetch(
        """INSERT INTO cards (id, serial, uid, status, expires_at, authenticity, keyset_id,
                              key_version, master_keyset_id, created_at, updated_at)
           SELECT new.id, new.serial, new.uid, 'UNASSIGNED', new.expires_at,
                  CASE WHEN new.keyset_id IS NULL THEN 'none' ELSE 'sun' END, new.keyset_id,
                  CASE WHEN new.keyset_id IS NOT NULL THEN $7::smallint END, new.keyset_id, $6, $6
           FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[])
             AS new (id, serial, uid, expires_at, keyset_id)
           ON CONFLICT DO NOTHING
           RETURNING serial""",
        [tx.new_id() for _ in rows],
        [row.serial for row in rows],
        [row.uid for row in rows],
        [row.expires_at for row in rows],
        [None if row.keyset is None else keysets[row.keyset] for row in rows],
        tx.now(),
        _KEY_VERSION,
        timeout=UPLOAD_TIMEOUT_SECONDS,
    )
    return {row["serial"] for row in inserted}


async def _find_existing_serials(tx: Transaction, serials: Sequence[str]) -> set[str]:
    rows = await tx.fetch("SELECT serial FROM cards WHERE serial = ANY ($1::text[])", serials)
    return {row["serial"] for row in rows}
