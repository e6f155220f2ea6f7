"""Closes days in order: the hash tree, the totals, the signature and the event."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from time import monotonic
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.finance.day_close import ledger_keys, model, queries
from tapgate.business.finance.day_close.hash_tree import CHUNK_SIZE, compute_root
from tapgate.business.finance.day_close.model import StoredDay, get_day_end, get_midnight
from tapgate.business.finance.day_close.queries import Chunk
from tapgate.business.finance.general_ledger.queries import list_transaction_ids
from tapgate.core.id_generator import IdGenerator, get_time
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.archive.archived import get_end_id
from tapgate.ledger.engine.open_days import close_until
from tapgate.runtime.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock, get_platform_day
from tapgate_client.errors import invalid_field, unavailable

#: Advisory lock held by the one process that closes days.
_close_job: Final = ExclusiveJob(0x7467_6463)  # "tgdc"
_WAIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.1
#: Whole chunks, so that only the last chunk of a day is incomplete.
PAGE_SIZE: Final = 4 * CHUNK_SIZE
_MAX_ID_LAG: Final = timedelta(hours=1)
_trail = AuditTrail("ledger_day")


class DayCloser:
    """Closes days on a connection of its own, one process at a time."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        settings: Settings,
        clock: Clock,
        new_id: IdGenerator,
    ) -> None:
        self._database = database
        self._vault = vault
        self._zone: ZoneInfo = settings.timezone
        self._currency: str = settings.currency
        self._clock = clock
        self._new_id = new_id

    async def close(self, day: date, actor: Actor) -> StoredDay:
        """Close a day and every earlier open day that has entries; return the day."""
        if get_day_end(day, self._zone) > self._clock():
            raise invalid_field("date", "must be a day that is over")
        closed = await queries.find_day(self._database, day)
        if closed is not None:
            return closed
        async with self._acquire_connection() as connection:
            await self._close_open_days(connection, day, actor)
            closed = await queries.find_day(connection, day)
        assert closed is not None
        return closed

    @contextlib.asynccontextmanager
    async def _acquire_connection(self) -> AsyncIterator[Any]:
        """Wait until no other caller closes a day."""
        deadline = monotonic() + _WAIT_SECONDS
        async with contextlib.AsyncExitStack() as stack:
            while True:
                try:
                    connection = await stack.enter_async_context(
                        _close_job.acquire_connection(self._database)
                    )
                except AlreadyRunningError:
                    if monotonic() > deadline:
                        raise unavailable("Another request is closing the day.") from None
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    break
            yield connection

    async def _close_open_days(self, connection: Any, last: date, actor: Actor) -> None:
        await close_until(connection, get_day_end(last, self._zone))
        start = await self._find_open_time(connection)
        while start is not None and start < get_day_end(last, self._zone):
            day, end = self._get_next_day(start, await queries.find_latest_day(connection))
            is_empty = not await list_transaction_ids(connection, start, end, -1, 1)
            if not is_empty or day == last:
                await self._close_day(connection, day, start, end, actor)
            start = end
        if await queries.find_day(connection, last) is None:
            # A past day without entries, before the first entry or the last closed day.
            start = get_midnight(last, self._zone)
            await self._close_day(connection, last, start, start, actor)

    async def _find_open_time(self, connection: Any) -> datetime | None:
        """Return the time from which entries belong to no closed day, or None without entries."""
        archive_end = await get_end_id(connection)
        first = await queries.find_first_time(connection, archive_end)
        if first is None:
            return None
        start = get_midnight(get_platform_day(first - _MAX_ID_LAG, self._zone), self._zone)
        previous = await queries.find_latest_day(connection)
        times = [start] if previous is None else [start, previous.ends_at]
        if archive_end:
            times.append(self._get_first_midnight(get_time(archive_end)))
        return max(times)

    def _get_first_midnight(self, moment: datetime) -> datetime:
        day = get_platform_day(moment, self._zone)
        midnight = get_midnight(day, self._zone)
        return midnight if midnight >= moment else get_day_end(day, self._zone)

    def _get_next_day(self, start: datetime, previous: StoredDay | None) -> tuple[date, datetime]:
        """Return the day that starts at a time, and its end.

        If the time zone changed, a part of the previous day may be open. It belongs to the next.
        """
        day = get_platform_day(start, self._zone)
        if previous is not None and day <= previous.day:
            day = previous.day + timedelta(days=1)
        return day, get_day_end(day, self._zone)

    async def _close_day(
        self, connection: Any, day: date, start: datetime, end: datetime, actor: Actor
    ) -> None:
        async with connection.transaction():
            tx = Transaction(connection, self._clock, self._new_id)
            tree = _DayTree(tx, day)
            if start < end:
                await tree.add_entries(start, end)
            previous = await queries.find_latest_day(tx, before=day)
            previous_root = None if previous is None else previous.merkle_root
            key_id, private_key = await ledger_keys.load_current_key(tx, self._vault, actor)
            row = StoredDay(
                day=day,
                starts_at=start,
                ends_at=end,
                transactions=tree.transactions,
                entries=tree.entries,
                totals=model.encode_totals(tree.sums, self._currency),
                merkle_root=compute_root(tree.nodes) or previous_root,
                previous_root=previous_root,
                key_id=key_id,
                closed_at=tx.now(),
            )
            signature = private_key.sign(model.encode_for_signature(row))
            row = msgspec.structs.replace(row, signature=signature)
            await queries.add_day(tx, row)
            record = model.to_record(row)
            await _trail.record(
                tx,
                actor,
                record.date,
                "closed",
                changes={
                    "transactions": (None, record.transactions),
                    "merkle_root": (None, record.merkle_root),
                },
            )
            await publish(tx, "day.closed", record)


class _DayTree:
    """Reads a day page by page, and stores chunks as they become complete."""

    def __init__(self, tx: Transaction, day: date) -> None:
        self._tx = tx
        self._day = day
        self._pending: list[tuple[int, bytes]] = []
        self.transactions = 0
        self.entries = 0
        #: Account kind to its debits and credits.
        self.sums: dict[str, list[int]] = {}
        self.nodes: list[bytes] = []

    async def add_entries(self, start: datetime, end: datetime) -> None:
        after_id = -1
        while transaction_ids := await list_transaction_ids(
            self._tx, start, end, after_id, PAGE_SIZE
        ):
            rows = await queries.list_entries(self._tx, transaction_ids)
            # Other requests of this process are served in between.
            self._pending += await asyncio.to_thread(self._add_page, rows)
            while len(self._pending) >= CHUNK_SIZE:
                await self._store_chunk()
            after_id = transaction_ids[-1]
        if self._pending:
            await self._store_chunk()

    def _add_page(self, rows: list[Any]) -> list[tuple[int, bytes]]:
        for row in rows:
            self.sums.setdefault(row["debit_kind"], [0, 0])[0] += row["amount"]
            self.sums.setdefault(row["credit_kind"], [0, 0])[1] += row["amount"]
        leaves = model.hash_leaves(rows)
        self.entries += len(rows)
        self.transactions += len(leaves)
        return leaves

    async def _store_chunk(self) -> None:
        chunk, self._pending = self._pending[:CHUNK_SIZE], self._pending[CHUNK_SIZE:]
        transaction_ids, leaves = zip(*chunk, strict=True)
        node = compute_root(leaves)
        assert node is not None
        await queries.add_chunk(
            self._tx,
            self._day,
            Chunk(len(self.nodes), transaction_ids, b"".join(leaves), node),
        )
        self.nodes.append(node)
