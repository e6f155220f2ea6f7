"""Retention of the messenger's tables. Rows are removed in bounded batches, so no request waits."""

from datetime import timedelta
from typing import Final, NamedTuple, NoReturn

from tapgate.clock import Clock
from tapgate.service.background import run_periodically
from tapgate.store.database import Database

BATCH: Final = 1_000
_EVERY_SECONDS: Final = 600.0


class Kept(NamedTuple):
    table: str
    key: str
    since: str  # what its age is counted from
    time: timedelta
    only: str = "true"


KEPT: Final = (
    # Also what waits: a sender gives up much earlier, so nobody was there to send it.
    Kept("outbox", "id", "created_at", timedelta(days=7)),
    # Longer than the outbox: a report can be later than the message is old.
    Kept("statuses", "channel_message_id", "updated_at", timedelta(days=8)),
    # The provider redelivers for days; a duplicate must be recognized for longer than that.
    Kept("received", "id", "received_at", timedelta(days=30), only="status <> 'waiting'"),
    # Acknowledged and not acted on: the bulk of a flood.
    Kept("received", "id", "received_at", timedelta(days=2), only="status = 'throttled'"),
    # Whoever still has it open is told in their own language that it has expired.
    Kept("forms", "token_hash", "expires_at", timedelta(days=1)),
    Kept("codes", "address", "expires_at", timedelta(0)),
    Kept("rates", "address", "since", timedelta(hours=1)),
    # Long after it expired: what was heard last still tells what comes too late.
    Kept(
        "conversations",
        "address",
        "expires_at",
        timedelta(days=30),
        only="(lease IS NULL OR leased_until < $1)",
    ),
    # The process died during the first turn.
    Kept("conversations", "address", "leased_until", timedelta(days=1), only="expires_at IS NULL"),
    # A language only, and no message for a month: it is recognized again.
    Kept(
        "people",
        "address",
        "updated_at",
        timedelta(days=400),
        only="""trusted AND phone IS NULL AND NOT EXISTS (
            SELECT FROM messenger.recipients r WHERE r.address = people.address)
            AND NOT EXISTS (
            SELECT FROM messenger.conversations c WHERE c.address = people.address)""",
    ),
)


class Retention:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(self.remove_old, every=_EVERY_SECONDS, name="messenger.retention")

    async def remove_old(self) -> None:
        for kept in KEPT:
            while await self._remove(kept) == BATCH:
                pass

    async def _remove(self, kept: Kept) -> int:
        table = f"messenger.{kept.table}"
        rows = await self._database.fetch(
            f"""DELETE FROM {table} WHERE {kept.key} = ANY (ARRAY(
                    SELECT {kept.key} FROM {table} WHERE {kept.since} < $1 AND {kept.only}
                    ORDER BY {kept.since} LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
                RETURNING true""",
            self._clock() - kept.time,
        )
        return len(rows)
