"""Durable work queues in PostgreSQL tables, with leases, retries and limits per destination.

A queue is a table with the columns `id`, `status`, `attempts` and `next_attempt_at`. A job is a
row, written in the same database transaction as the change that causes it.

- Due jobs are leased by moving their `next_attempt_at` to the end of the lease and counting the
  attempt. It is one short statement; no database transaction is open during the work. If the
  process is killed, the job is due again when the lease expires.
- The attempt count identifies the lease. A result is recorded only while its lease is the latest,
  so a late result cannot change a job that another process has leased since. A queue can accept an
  earlier lease's late success, because the work is done.
- Leases and results are set-based: one statement for many jobs and destinations.
"""

import random
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias

import asyncpg

from tapgate.runtime.store.database import Database

#: Longer than the attempt timeout. If a process has recorded no result by then, any process
#: may lease the job.
LEASE_DURATION: Final = timedelta(seconds=30)
#: A backlog is counted up to this number.
MAX_COUNTED_JOBS: Final = 10_000
_MAX_BACKOFF_SECONDS: Final = 60.0
#: Session settings for workers. A statement may be planned while a queue is empty and executed
#: while it is long, so plans must use the indexes.
SESSION_SETTINGS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

_random = random.SystemRandom()

Source: TypeAlias = Database | asyncpg.Connection


class Job(Protocol):
    """Leased job: its ID, and the attempt count that identifies the lease."""

    @property
    def id(self) -> int: ...

    @property
    def attempts(self) -> int: ...


class WorkQueue:
    """Queue in one table. `columns` are returned with a lease; `destination` limits concurrency.

    `order` is the order of a destination's jobs in `lease_in_order`. `owner` is a column with
    the process that may lease a job before it is due, because only this process can do the work
    completely.
    """

    def __init__(
        self,
        table: str,
        columns: str,
        *,
        destination: str = "",
        pending: str = "pending",
        due: str = "next_attempt_at",
        lease: timedelta = LEASE_DURATION,
        counts_attempts: bool = True,
        order: str = "id",
        owner: str = "",
    ) -> None:
        self.table = table
        self.pending = pending
        self._is_pending = f"status = '{pending}'" if pending else "true"
        self._columns = columns
        self._destination = destination
        self._due = due
        self._lease = lease
        self._count_attempt = "attempts = attempts + 1, " if counts_attempts else ""
        self._order = order
        self._owner = owner

    def build_backlog_sql(self, queue: str, *, condition: str = "true") -> str:
        """Return a query for the queue's backlog; see `build_backlog_sql`."""
        return build_backlog_sql(
            queue, f"{self.table} WHERE {self._is_pending} AND {condition}", due=self._due
        )

    async def lease(
        self,
        source: Source,
        *,
        now: datetime,
        limit: int,
        condition: str = "true",
        values: Sequence[object] = (),
    ) -> list[asyncpg.Record]:
        """Lease up to `limit` due jobs, those due longest first.

        `condition` selects jobs. `values` are its placeholders `$4` and so on.
        """
        select = f"""
            SELECT id AS due_id FROM {self.table}
            WHERE {self._is_pending} AND {self._due} <= $1 AND {condition}
            ORDER BY {self._due} LIMIT $3 FOR UPDATE SKIP LOCKED"""
        return await self._lease_jobs(source, select, now, limit, *values)

    async def lease_fairly(
        self,
        source: Source,
        *,
        destinations: str,
        now: datetime,
        limit: int,
        capacity: int,
        capacities: Mapping[int, int],
        join: str = "",
    ) -> list[asyncpg.Record]:
        """Lease due jobs for many destinations, up to `limit` and each destination's capacity.

        `destinations` is a query for destination IDs. The destination whose job is due longest
        comes first. `capacities` replaces `capacity` for individual destinations. `join` joins the
        leased jobs with other tables; `columns` may then name their columns.
        """
        is_due = f"""{self._destination} = waiting.id AND {self._is_pending}
                     AND {self._due} <= $1 ORDER BY {self._due}"""
        select = f"""
            SELECT job.id AS due_id FROM (
                SELECT waiting.id, waiting.capacity FROM (
                    SELECT id, coalesce(known.capacity, $4::integer) AS capacity
                    FROM ({destinations}) AS destination
                    LEFT JOIN unnest($5::bigint[], $6::integer[]) AS known (id, capacity) USING (id)
                ) AS waiting, LATERAL (
                    SELECT {self._due} AS due_at FROM {self.table} WHERE {is_due} LIMIT 1) AS oldest
                WHERE waiting.capacity > 0 ORDER BY oldest.due_at
            ) AS waiting, LATERAL (
                SELECT id FROM {self.table} WHERE {is_due}
                LIMIT waiting.capacity FOR UPDATE SKIP LOCKED) AS job
            LIMIT $3"""
        known = list(capacities), list(capacities.values())
        return await self._lease_jobs(source, select, now, limit, capacity, *known, join=join)

    async def lease_in_order(
        self,
        source: Source,
        *,
        now: datetime,
        limit: int,
        destination: str | None = None,
        owner: int | None = None,
    ) -> list[asyncpg.Record]:
        """Lease the oldest job for each of up to `limit` destinations, or for one, if it is due.

        A destination's later jobs wait until its oldest job ends. Jobs of `owner` are always due.
        """
        # Two texts, because a generic plan for both cases would read the whole queue. The status is
        # checked again on the locked row: another process may have ended the job after `oldest` was
        # read.
        values = [value for value in (destination, owner) if value is not None]
        is_selected = "true" if destination is None else f"{self._destination} = $4"
        select = f"""
            SELECT id AS due_id FROM {self.table} AS job JOIN (
                SELECT DISTINCT ON ({self._destination}) id AS oldest_id FROM {self.table}
                WHERE {self._is_pending} AND {is_selected}
                ORDER BY {self._destination}, {self._order}) AS oldest ON id = oldest_id
            WHERE {self._is_pending} AND {self._build_is_due(owner, 3 + len(values))}
            ORDER BY {self._due}, id LIMIT $3 FOR UPDATE OF job SKIP LOCKED"""
        return await self._lease_jobs(source, select, now, limit, *values)

    async def list_due_destinations(
        self,
        source: Source,
        *,
        now: datetime,
        limit: int,
        excluded: Collection[str] = (),
        owner: int | None = None,
    ) -> list[str]:
        """Return up to `limit` destinations with a due job, without leasing it."""
        rows = await source.fetch(
            f"""SELECT DISTINCT {self._destination} AS destination FROM {self.table}
                WHERE {self._is_pending} AND {self._build_is_due(owner, 4)}
                  AND {self._destination} <> ALL($3)
                LIMIT $2""",
            now,
            limit,
            list(excluded),
            *([] if owner is None else [owner]),
        )
        return [row["destination"] for row in rows]

    def _build_is_due(self, owner: int | None, parameter: int) -> str:
        is_due = f"{self._due} <= $1"
        return is_due if owner is None else f"({is_due} OR {self._owner} = ${parameter})"

    async def _lease_jobs(
        self,
        source: Source,
        select: str,
        now: datetime,
        limit: int,
        *values: object,
        join: str = "",
    ) -> list[asyncpg.Record]:
        # The owner's lease does not end earlier than the job's reservation.
        leased_until = f"greatest({self._due}, $2)" if self._owner else "$2"
        # MATERIALIZED, because a plan that evaluates the CTE twice would lease more than `limit`.
        return await source.fetch(
            f"""WITH due AS MATERIALIZED ({select}),
                leased AS (
                    UPDATE {self.table} SET {self._count_attempt}{self._due} = {leased_until}
                    WHERE id = ANY (ARRAY(SELECT due_id FROM due)) RETURNING *)
                SELECT {self._columns} FROM leased AS job {join} ORDER BY job.id""",
            now,
            now + self._lease,
            limit,
            *values,
        )


class ResultUpdate:
    """Statement that records one kind of result for many jobs.

    `assignments` is the SET clause, which reads a job's values as `result.name`. `values` are the
    names and SQL types of these values. With `accepts_late`, an earlier lease's result is
    recorded too, unless the job has ended.
    """

    def __init__(
        self,
        queue: WorkQueue,
        assignments: str,
        values: Mapping[str, str],
        *,
        accepts_late: bool = False,
    ) -> None:
        lease = {} if accepts_late else {"attempts": "integer"}
        columns = {"id": "bigint", **lease, **values}
        # The IDs are sorted, so that `width_bucket` finds a job's values by binary search. A join
        # could compare every job with every result.
        expressions = {
            name: f"(${number}::{type_}[])[width_bucket(job.id, $1::bigint[])]"
            for number, (name, type_) in enumerate(columns.items(), 1)
        }

        def insert_values(sql: str) -> str:
            return re.sub(r"\bresult\.(\w+)", lambda match: expressions[match[1]], sql)

        has_lease = insert_values("job.attempts = result.attempts") if lease else "true"
        # The concatenation hides the status from the planner, which might otherwise read all
        # pending jobs if the queue is empty when the statement is planned.
        self._sql = f"""
            UPDATE {queue.table} AS job SET {insert_values(assignments)}
            WHERE job.id = ANY ($1::bigint[]) AND {has_lease}
              AND job.status || '' = '{queue.pending}'"""
        self._has_lease = bool(lease)
        self._names = tuple(values)

    async def record(
        self, source: Source, results: Sequence[tuple[Job, Mapping[str, Any]]]
    ) -> None:
        """Record different jobs' results."""
        if not results:
            return
        ordered = sorted(results, key=lambda result: result[0].id)
        await source.execute(
            self._sql,
            [job.id for job, _ in ordered],
            *([[job.attempts for job, _ in ordered]] if self._has_lease else []),
            *([values[name] for _, values in ordered] for name in self._names),
        )


def build_dequeue_sql(table: str, key: str) -> str:
    """Return CTEs that remove up to `$1` jobs and provide them as `taken`, in key order.

    For jobs whose entire work is in the same database transaction: they need neither lease nor
    attempts, and are processed exactly once.
    """
    # The rows of a queue are never updated, so `ctid` finds a locked row without an index.
    return f"""
    WITH taken AS (
        DELETE FROM {table} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {table} ORDER BY {key} LIMIT $1 FOR UPDATE SKIP LOCKED))
        RETURNING *
    )"""


def build_backlog_sql(
    queue: str, selection: str, *, created: str = "created_at", due: str = "now()"
) -> str:
    """Return a query for the job count, the oldest job's age, and the longest time overdue.

    `selection` is a table with a WHERE clause. The query reads at most `MAX_COUNTED_JOBS` rows.
    """
    return f"""
        SELECT '{queue}' AS queue, count(*)::int AS jobs,
               coalesce(greatest(extract(epoch FROM now() - min(created_at)), 0), 0)::float8
                 AS oldest,
               coalesce(greatest(extract(epoch FROM now() - min(due_at)), 0), 0)::float8 AS overdue
        FROM (SELECT {created} AS created_at, {due} AS due_at
              FROM {selection} LIMIT {MAX_COUNTED_JOBS}) AS job"""


def compute_backoff(attempts: int, *, max_seconds: float = _MAX_BACKOFF_SECONDS) -> timedelta:
    """Return an exponential backoff of 1, 2, 4, ... 60 seconds, with ±25% jitter."""
    seconds = min(max_seconds, 2.0 ** min(attempts - 1, 10))
    return add_jitter(seconds, fraction=0.25)


def add_jitter(seconds: float, *, fraction: float) -> timedelta:
    """Return a randomized delay, so that simultaneous failures are not retried simultaneously."""
    return timedelta(seconds=seconds * _random.uniform(1 - fraction, 1 + fraction))
