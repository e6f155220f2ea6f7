"""Hash chain over the audit entries, sealed in the background so that writers never wait.

Each entry's hash covers the previous hash and the entry itself, in order of `sequence`. A writer
takes its sequence number long before it commits, so numbers become visible out of order. An entry
that became visible below the sealed head could never be linked. The sealer therefore takes a
high-water mark: first S, the last sequence number assigned, then X, a new xid. It seals up to S
once no transaction older than X is running.

Why this is correct: a writer with a number n <= S took it before S was read. A writer has its xid
before its number (because of the table's column order), and xids only grow, so that
writer's xid is less than X. Once a snapshot's xmin has reached X, every such writer has committed
or never will. In any later snapshot, each n <= S is therefore either visible or never will be. (A
snapshot's xmax cannot serve as X: it is one past the last *completed* xid, and running
transactions may have xids above it.)
"""

import hashlib
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import asyncpg

from tapgate.events.audit import entry
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import build_backlog_sql
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate_client.schemas.audit import Verification

#: The first entry's previous hash.
GENESIS = bytes(32)
#: Interval at which each process checks for entries to seal.
SEAL_INTERVAL_SECONDS = 1.0
#: Small enough that hashing a batch does not noticeably delay the process's requests.
BATCH_SIZE = 500
FETCH_SIZE = 200
#: A checkpoint stays at least this many sealed entries behind the end, so that recent entries are
#: always verified.
CHECKPOINT_LAG = 10_000
CHECKPOINT_INTERVAL = 1_000
#: Unsealed entries, as a backlog.
BACKLOG_SQL = build_backlog_sql(
    "audit",
    "audit_entries WHERE hash IS NULL AND sequence > (SELECT sequence FROM audit_head)",
    created="occurred_at",
    due="occurred_at",
)
_hash_pool = BoundedThreadPool("audit verifications", threads=1, max_pending=8)


class Link(NamedTuple):
    """A sealed entry's sequence number and hash."""

    sequence: int
    hash: bytes


class Checkpoint(NamedTuple):
    """Verified chain prefix: it ends at `link` and contains `entries` sealed entries."""

    link: Link
    entries: int


INITIAL_CHECKPOINT = Checkpoint(Link(0, GENESIS), 0)


class _HighWaterMark(NamedTuple):
    """Entries up to `sequence` are final once all transactions older than `xid` have ended."""

    sequence: int
    xid: int


class Sealer:
    """Background sealer. Every process may run one, but only one seals at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._high_water_mark: _HighWaterMark | None = None

    async def run(self) -> NoReturn:
        """Seal until canceled, tolerating database outages."""
        await run_periodically(self.seal_pending, every=SEAL_INTERVAL_SECONDS, name="audit.sealer")

    async def seal_pending(self) -> int:
        """Seal the entries that are final and return their number."""
        if self._high_water_mark is None:
            self._high_water_mark = await self._take_high_water_mark()
        total = 0
        while self._high_water_mark is not None:
            sealed = await self._seal_batch(self._high_water_mark)
            if sealed is None:
                break
            total += sealed
            if sealed < BATCH_SIZE:
                self._high_water_mark = None
        return total

    async def _take_high_water_mark(self) -> _HighWaterMark | None:
        """Return a new mark, or None if no entry is unsealed.

        The three statements must run separately and in this order.
        """
        has_unsealed = await self._database.fetchval(
            """SELECT EXISTS (
                   SELECT FROM audit_entries
                   WHERE hash IS NULL AND sequence > (SELECT sequence FROM audit_head))"""
        )
        if not has_unsealed:
            return None
        sequence = await self._database.fetchval(
            "SELECT pg_sequence_last_value('audit_entries_sequence_seq')"
        )
        xid = await self._database.fetchval("SELECT pg_current_xact_id()::text::bigint")
        return _HighWaterMark(sequence, xid)

    async def _seal_batch(self, mark: _HighWaterMark) -> int | None:
        """Seal the next entries up to the mark and return their number.

        Return None if they are not final or another sealer is active. The lock on the head ensures
        that only one sealer is active at a time.
        """
        async with self._database.transaction() as tx:
            head = await tx.fetchrow("SELECT sequence, hash FROM audit_head FOR UPDATE SKIP LOCKED")
            if head is None or not await _is_final(tx, mark):
                return None
            # A cached plan from when the table was small would scan the table after it has grown.
            await tx.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            rows = await tx.fetch(
                f"""SELECT {entry.COLUMNS} FROM audit_entries
                    WHERE hash IS NULL AND sequence > $1 AND sequence <= $2
                    ORDER BY sequence LIMIT {BATCH_SIZE}""",
                head["sequence"],
                mark.sequence,
            )
            if rows:
                await _link_entries(tx, head["hash"], rows)
            return len(rows)


async def verify(database: Database) -> Verification:
    """Verify the whole chain."""
    async with database.dedicated_connection() as connection:
        result, _ = await verify_from_checkpoint(connection, INITIAL_CHECKPOINT, INITIAL_CHECKPOINT)
    return result


async def verify_from_checkpoint(
    connection: asyncpg.Connection, start: Checkpoint, known: Checkpoint
) -> tuple[Verification, Checkpoint]:
    """Verify the chain from a checkpoint; also return the next checkpoint.

    The chain must also pass through `known` if it is after `start`. Entries are loaded in batches
    and hashed in a thread. Sealed entries never change, so each batch has a separate, short
    snapshot; one long snapshot would make payments to busy merchants more expensive. Only the
    entries after the head are read in the same snapshot as the head.
    """
    verifier = _ChainVerifier(start, known.link, await _get_head(connection))
    last = start.link.sequence
    while batch := await connection.fetch(
        f"""SELECT {entry.COLUMNS} FROM audit_entries WHERE sequence > $1 AND sequence <= $2
            ORDER BY sequence LIMIT {FETCH_SIZE}""",
        last,
        verifier.head.sequence,
    ):
        await _hash_pool.run(verifier.check, batch)
        last = batch[-1]["sequence"]
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        verifier.head = await _get_head(connection)
        rows = await connection.cursor(
            f"SELECT {entry.COLUMNS} FROM audit_entries WHERE sequence > $1 ORDER BY sequence", last
        )
        while batch := await rows.fetch(FETCH_SIZE):
            await _hash_pool.run(verifier.check, batch)
    return verifier.build_result(), verifier.get_checkpoint()


async def _get_head(connection: asyncpg.Connection) -> Link:
    head = await connection.fetchrow("SELECT sequence, hash FROM audit_head")
    return Link(*head) if head else INITIAL_CHECKPOINT.link


class _ChainVerifier:
    """Verifier that follows the chain from a checkpoint to the head."""

    def __init__(self, start: Checkpoint, known: Link, head: Link) -> None:
        self._last_link = start.link
        self._sealed_count = start.entries
        self._checkpoints = deque([start])
        self._unsealed_count = 0
        self.head = head
        #: The link that the chain must still pass through, if any.
        self._known = known if known.sequence > start.link.sequence else None
        self._first_broken: str | None = None

    def check(self, rows: list[Mapping[str, Any]]) -> None:
        for row in rows:
            is_valid = is_linked(row, self._last_link, self.head) and self._matches_known(row)
            if self._first_broken is None and not is_valid:
                self._first_broken = entry.encode_public_id(row)
            if row["hash"] is None:
                self._unsealed_count += 1
            else:
                self._sealed_count += 1
                self._last_link = Link(row["sequence"], row["hash"])
                if self._sealed_count % CHECKPOINT_INTERVAL == 0:
                    self._add_checkpoint()

    def _add_checkpoint(self) -> None:
        self._checkpoints.append(Checkpoint(self._last_link, self._sealed_count))
        while (
            len(self._checkpoints) > 1
            and self._checkpoints[1].entries <= self._sealed_count - CHECKPOINT_LAG
        ):
            self._checkpoints.popleft()

    def get_checkpoint(self) -> Checkpoint:
        """Return the last checkpoint far enough behind the end (`CHECKPOINT_LAG`), or the start."""
        return self._checkpoints[0]

    def build_result(self) -> Verification:
        first_broken = self._first_broken
        if first_broken is None and (self._last_link != self.head or self._known is not None):
            first_broken = str(self.head.sequence)
        return Verification(
            valid=first_broken is None,
            entries=self._sealed_count + self._unsealed_count,
            unsealed=self._unsealed_count,
            first_broken=first_broken,
        )

    def _matches_known(self, row: Mapping[str, Any]) -> bool:
        if self._known is None or row["sequence"] < self._known.sequence:
            return True
        known, self._known = self._known, None
        return Link(row["sequence"], row["hash"]) == known


def is_linked(row: Mapping[str, Any], previous: Link, head: Link) -> bool:
    """Return whether a sealed entry continues the chain, or an unsealed one is past the head."""
    if row["hash"] is None:
        return bool(row["sequence"] > head.sequence)
    return bool(
        row["sequence"] <= head.sequence
        and row["previous_hash"] == previous.hash
        and row["hash"] == _compute_hash(previous.hash, row)
    )


def _compute_hash(previous_hash: bytes, row: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(previous_hash + entry.encode_canonical(row)).digest()


async def _is_final(tx: asyncpg.Connection, mark: _HighWaterMark) -> bool:
    """Return whether all transactions older than the mark's xid have ended.

    Call this before reading the entries: their snapshot must not be older than this one.
    """
    return bool(
        await tx.fetchval(
            "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= $1::bigint", mark.xid
        )
    )


async def _link_entries(
    tx: asyncpg.Connection, previous_hash: bytes, rows: list[Mapping[str, Any]]
) -> None:
    hashes = [previous_hash]
    for row in rows:
        hashes.append(_compute_hash(hashes[-1], row))
    sequences = [row["sequence"] for row in rows]
    await tx.execute(
        """UPDATE audit_entries AS entry
           SET previous_hash = link.previous_hash, hash = link.hash
           FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])
                AS link (sequence, previous_hash, hash)
           WHERE entry.sequence = link.sequence""",
        sequences,
        hashes[:-1],
        hashes[1:],
    )
    await tx.execute("UPDATE audit_head SET sequence = $1, hash = $2", sequences[-1], hashes[-1])
