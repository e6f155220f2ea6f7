"""Audit entries for rejected requests, bounded regardless of the number of rejections.

The log is append-only, so a caller that is rejected a hundred times per second must not add an
entry each time. Per hour, each source (the authenticated actor, or else the address) gets
individual entries for its first rejections, written before the response is sent.

Further rejections are counted by kind in memory, and the counts are flushed to the database every
second. After the end of the hour, they become one entry per kind with `occurrences`. The number of
kinds is also bounded: beyond the limit, counts omit the resource and, if necessary, the source for
anonymous callers.

The total limits apply only to anonymous callers, which can come from any number of addresses. The
number of authenticated callers is limited by their credentials, so only the limits per source apply
to them, and their entries and counts always name the actor.

A killed process loses the counts since its last flush, but never an individual entry.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NoReturn

import asyncpg
import msgspec

from tapgate.auth.actors import ANONYMOUS, Actor
from tapgate.events.audit import trail
from tapgate.http.api.services import RejectedRequest
from tapgate.runtime.background import run_periodically
from tapgate.runtime.client_addresses import get_address_key
from tapgate.runtime.store.transaction import OpenTransaction
from tapgate_client.clock import Clock, format_rfc3339
from tapgate_client.errors import ApiError

WINDOW = timedelta(hours=1)
MAX_ENTRIES_PER_SOURCE = 200
MAX_ANONYMOUS_ENTRIES = 2_000
MAX_KINDS_PER_SOURCE = 20
MAX_ANONYMOUS_KINDS = 500

FLUSH_INTERVAL_SECONDS = 1.0
#: A window's last counts may arrive this late.
_CLOSE_GRACE = timedelta(minutes=1)
MAX_PENDING = 2_000
_BATCH_SIZE = 100
_LOCK_KEY = 0x7467_7265  # "tgre"
_ALL_SOURCES = "all"
_AGGREGATED_REASON = "Aggregated count: the limit of separate entries was reached"


class _RejectionKind(msgspec.Struct, frozen=True):
    """Common properties for rejections that are counted together."""

    rejection: RejectedRequest = msgspec.field(name="refusal")  # name in stored counts
    source: str
    actor: dict[str, str]
    ip: str | None

    @property
    def is_anonymous(self) -> bool:
        return self.actor == ANONYMOUS

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).digest()

    @property
    def without_resource(self) -> "_RejectionKind":
        rejection = msgspec.structs.replace(
            self.rejection, resource_id=None, reason=_AGGREGATED_REASON
        )
        return msgspec.structs.replace(self, rejection=rejection)

    @property
    def without_source(self) -> "_RejectionKind":
        return _RejectionKind(self.without_resource.rejection, _ALL_SOURCES, ANONYMOUS, None)


class _RejectionCount(msgspec.Struct):
    kind: _RejectionKind
    window: datetime
    occurrences: int
    first_at: datetime
    last_at: datetime


_PendingCounts = dict[tuple[datetime, bytes], _RejectionCount]


class RejectionLog:
    """One process's rejection log. The limits hold across all processes."""

    def __init__(self, open_transaction: OpenTransaction, clock: Clock) -> None:
        self._open_transaction = open_transaction
        self._clock = clock
        self._window: datetime | None = None
        #: Exhausted entry budgets in the current window: sources, or `all` for the common budget of
        #: all anonymous sources.
        self.exhausted_budgets: set[str] = set()
        self._pending: _PendingCounts = {}
        self._flush_lock = asyncio.Lock()

    async def record(self, actor: Actor, rejection: RejectedRequest) -> None:
        now = self._clock()
        window = now.replace(minute=0, second=0, microsecond=0)
        if window != self._window:
            self._window, self.exhausted_budgets = window, set()
        kind = _get_kind(actor, rejection)
        if self.exhausted_budgets.isdisjoint(name for name, _ in _list_budgets(kind)):
            exhausted = await self._write_entry(window, kind, actor)
            if exhausted is None:
                return
            if window == self._window:
                self.exhausted_budgets.add(exhausted)
        self._count_rejection(kind, window, now)

    async def run(self) -> NoReturn:
        """Store counts and close windows until canceled."""
        await run_periodically(
            self.flush_and_close, every=FLUSH_INTERVAL_SECONDS, name="audit.rejections"
        )

    async def flush_and_close(self) -> None:
        await self.flush()
        while await self._close_windows(self._clock() - WINDOW - _CLOSE_GRACE):
            pass

    async def flush(self) -> None:
        """Store the counts since the last flush."""
        async with self._flush_lock:
            pending, self._pending = self._pending, {}
            try:
                while pending:
                    await self._store_counts(pending, list(pending)[:_BATCH_SIZE])
            finally:
                for count in pending.values():
                    self._merge_count(count)

    async def stop(self) -> None:
        """Store the last counts, unless the database is unavailable."""
        with contextlib.suppress(ApiError, asyncpg.PostgresError, OSError):
            await self.flush()

    async def _write_entry(
        self, window: datetime, kind: _RejectionKind, actor: Actor
    ) -> str | None:
        """Write an entry and return None, or return the exhausted budget's name."""
        async with self._open_transaction() as tx:
            for name, limit in _list_budgets(kind):
                if not await _reserve_budget(tx, window, f"entries {name}", limit):
                    return name
            await trail.record(tx, actor, **msgspec.structs.asdict(kind.rejection))
        return None

    def _count_rejection(self, kind: _RejectionKind, window: datetime, now: datetime) -> None:
        if len(self._pending) >= MAX_PENDING and (window, kind.digest) not in self._pending:
            kind = kind.without_source if kind.is_anonymous else kind.without_resource
        self._merge_count(_RejectionCount(kind, window, 1, now, now))

    def _merge_count(self, count: _RejectionCount) -> None:
        key = (count.window, count.kind.digest)
        existing = self._pending.get(key)
        if existing is None:
            self._pending[key] = count
            return
        existing.occurrences += count.occurrences
        existing.first_at = min(existing.first_at, count.first_at)
        existing.last_at = max(existing.last_at, count.last_at)

    async def _store_counts(
        self, pending: _PendingCounts, keys: list[tuple[datetime, bytes]]
    ) -> None:
        async with self._open_transaction() as tx:
            # Serialize processes. They lock the same rows in different orders and could deadlock.
            await tx.execute("SELECT pg_advisory_xact_lock($1)", _LOCK_KEY)
            for key in keys:
                await _store_count(tx, pending[key])
        for key in keys:
            del pending[key]

    async def _close_windows(self, before: datetime) -> bool:
        """Convert closed windows' counts to entries; return whether there may be more."""
        async with self._open_transaction() as tx:
            rows = await tx.fetch(
                f"""DELETE FROM audit_repeats WHERE (window_start, kind) IN (
                        SELECT window_start, kind FROM audit_repeats WHERE window_start < $1
                        ORDER BY window_start, kind LIMIT {_BATCH_SIZE} FOR UPDATE SKIP LOCKED)
                    RETURNING facts, occurrences, first_at, last_at""",
                before,
            )
            for row in rows:
                kind = msgspec.convert(row["facts"], _RejectionKind)
                await trail.record(
                    tx,
                    Actor(record=kind.actor, ip=kind.ip),
                    **msgspec.structs.asdict(kind.rejection),
                    changes={
                        "occurrences": (None, row["occurrences"]),
                        "first_at": (None, format_rfc3339(row["first_at"])),
                        "last_at": (None, format_rfc3339(row["last_at"])),
                    },
                )
            await tx.execute("DELETE FROM audit_budgets WHERE window_start < $1", before)
        return len(rows) == _BATCH_SIZE


def _list_budgets(kind: _RejectionKind) -> list[tuple[str, int]]:
    """Return the budgets that an entry is charged to, with their limits."""
    budgets = [(kind.source, MAX_ENTRIES_PER_SOURCE)]
    return [*budgets, (_ALL_SOURCES, MAX_ANONYMOUS_ENTRIES)] if kind.is_anonymous else budgets


async def _store_count(tx: asyncpg.Connection, count: _RejectionCount) -> None:
    for kind in _iter_fallback_kinds(count.kind):
        if await _increment_stored(tx, kind, count):
            return
        if await _reserve_kind(tx, count.window, kind):
            await tx.execute(
                """INSERT INTO audit_repeats AS existing VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (window_start, kind) DO UPDATE
                   SET occurrences = existing.occurrences + excluded.occurrences,
                       first_at = least(existing.first_at, excluded.first_at),
                       last_at = greatest(existing.last_at, excluded.last_at)""",
                count.window,
                kind.digest,
                msgspec.to_builtins(kind),
                count.occurrences,
                count.first_at,
                count.last_at,
            )
            return


def _iter_fallback_kinds(kind: _RejectionKind) -> Iterator[_RejectionKind]:
    """Yield the kind, then the broader kinds to use once the limit on kinds is reached."""
    yield kind
    yield kind.without_resource
    if kind.is_anonymous:
        yield kind.without_source


async def _increment_stored(
    tx: asyncpg.Connection, kind: _RejectionKind, count: _RejectionCount
) -> bool:
    return bool(
        await tx.fetchval(
            """UPDATE audit_repeats
               SET occurrences = occurrences + $3, first_at = least(first_at, $4),
                   last_at = greatest(last_at, $5)
               WHERE window_start = $1 AND kind = $2 RETURNING true""",
            count.window,
            kind.digest,
            count.occurrences,
            count.first_at,
            count.last_at,
        )
    )


async def _reserve_kind(tx: asyncpg.Connection, window: datetime, kind: _RejectionKind) -> bool:
    if kind.source == _ALL_SOURCES:
        return True
    if kind.rejection.reason != _AGGREGATED_REASON and not await _reserve_budget(
        tx, window, f"kinds {kind.source}", MAX_KINDS_PER_SOURCE
    ):
        return False
    return not kind.is_anonymous or await _reserve_budget(
        tx, window, f"kinds {_ALL_SOURCES}", MAX_ANONYMOUS_KINDS
    )


async def _reserve_budget(
    tx: asyncpg.Connection, window: datetime, source: str, limit: int
) -> bool:
    """Use one unit from a budget; return False if none is left. Exact across all processes."""
    return bool(
        await tx.fetchval(
            """INSERT INTO audit_budgets AS existing (window_start, source, used) VALUES ($1, $2, 1)
               ON CONFLICT (window_start, source) DO UPDATE SET used = existing.used + 1
               WHERE existing.used < $3 RETURNING true""",
            window,
            source,
            limit,
        )
    )


def _get_kind(actor: Actor, rejection: RejectedRequest) -> _RejectionKind:
    """Return a rejection's kind: by address if the caller is anonymous, else by actor."""
    if actor.record == ANONYMOUS:
        address = get_address_key(actor.ip or "")
        return _RejectionKind(rejection, f"ip:{address}", ANONYMOUS, address)
    return _RejectionKind(rejection, actor.id, actor.record, None)
