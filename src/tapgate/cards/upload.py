"""Cards come in by the file: what is new in it becomes cards, what is there already stays."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

import asyncpg
import msgspec

from tapgate.audit.trail import AuditTrail
from tapgate.cards import upload_file
from tapgate.cards.upload_file import Row, RowError, row_error
from tapgate.edge.request_context import RequestContext
from tapgate.errors import unavailable
from tapgate.store.database import Database

_trail = AuditTrail("card")

#: Held by the one upload that writes: two files that name the same cards in another order would
#: wait for each other.
LOCK: Final = 0x63_6172_6473  # "cards"

#: Ten thousand cards and what they are searched by are more work than a statement usually is.
PATIENCE_SECONDS: Final = 30.0
_LOOK_AGAIN_SECONDS: Final = 0.1

_TAKEN: Final = {"MAC Address": "belongs to another card"}


class Uploaded(msgspec.Struct, kw_only=True):
    """`total` is all of the others together."""

    success: bool = True
    message: str
    total: int
    created: int
    skipped: int
    errors: list[RowError]


async def upload(call: RequestContext, content_type: str | None, body: bytes) -> Uploaded:
    """Good rows are kept when others are bad; the same file again changes nothing."""
    services = call.services
    # In a thread: thousands of rows are no reason to let others wait.
    rows, errors = await asyncio.to_thread(
        upload_file.read, content_type, body, services.clock(), services.settings.timezone
    )
    total = len(rows) + len(errors)
    async with _writing(services.database) as tx:
        created = await _add(tx, call, rows)
        others = [row for row in rows if row.serial not in created]
        skipped = await _known(tx, [row.serial for row in others])
        errors += [
            row_error(row.line, row.serial, _TAKEN) for row in others if row.serial not in skipped
        ]
        uploaded = Uploaded(
            message="Cards uploaded",
            total=total,
            created=len(created),
            skipped=len(skipped),
            errors=sorted(errors, key=lambda error: error.row),
        )
        counts = {
            name: (None, count)
            for name, count in (
                ("created", uploaded.created),
                ("skipped", uploaded.skipped),
                ("errors", len(uploaded.errors)),
            )
        }
        await _trail.record(tx, call, None, "uploaded", changes=counts)
    return uploaded


@asynccontextmanager
async def _writing(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """The database transaction of the one upload that writes. The others look again and again,
    since waiting in the database would keep connections that payments need."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        async with database.transaction() as tx:
            if await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", LOCK):
                yield tx
                return
        if monotonic() > deadline:
            raise unavailable("Other files are being uploaded")
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


async def _add(tx: asyncpg.Connection, call: RequestContext, rows: Sequence[Row]) -> set[str]:
    """The serials of those that are cards from now on."""
    now = call.services.clock()
    found = await tx.fetch(
        """INSERT INTO cards (id, serial, uid, status, expires_at, created_at, updated_at)
           SELECT new.id, new.serial, new.uid, 'UNASSIGNED', new.expires_at, $5, $5
           FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[])
             AS new (id, serial, uid, expires_at)
           ON CONFLICT DO NOTHING
           RETURNING serial""",
        [call.services.new_id() for _ in rows],
        [row.serial for row in rows],
        [row.uid for row in rows],
        [row.expires_at for row in rows],
        now,
        timeout=PATIENCE_SECONDS,
    )
    return {row["serial"] for row in found}


async def _known(tx: asyncpg.Connection, serials: Sequence[str]) -> set[str]:
    found = await tx.fetch("SELECT serial FROM cards WHERE serial = ANY ($1::text[])", serials)
    return {row["serial"] for row in found}
