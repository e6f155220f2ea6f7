"""Replay counts per transaction.

Counts are kept in memory and flushed about once a second in one statement: a replay itself writes
nothing. A killed process loses the counts since its last flush. If the connection is lost during
the commit, counts may be added twice. The counts only inform operators: no money depends on them.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple, NoReturn

from tapgate.ledger.commands import Outcome
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

_FLUSH_INTERVAL_SECONDS: Final = 1.0


class ReplayCount(NamedTuple):
    total: int
    last_at: datetime


class ReplayCounter:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[int, ReplayCount] = {}

    def count(self, outcomes: Iterable[Outcome]) -> None:
        """Count the outcomes that are replays."""
        for outcome in outcomes:
            if outcome.replayed and outcome.result is not None:
                self._add(outcome.result.transaction_id, ReplayCount(1, self._clock()))

    async def run(self, database: Database) -> NoReturn:
        await run_periodically(
            lambda: self.flush(database), every=_FLUSH_INTERVAL_SECONDS, name="replays"
        )

    async def flush(self, database: Database) -> None:
        counts, self._counts = self._counts, {}
        if not counts:
            return
        try:
            await database.execute(
                # Sorted, so that several processes' concurrent flushes cannot deadlock.
                """INSERT INTO replays AS existing (transaction_id, count, last_at)
                   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[])
                     AS new (transaction_id, count, last_at) ORDER BY transaction_id
                   ON CONFLICT (transaction_id) DO UPDATE
                   SET count = existing.count + excluded.count,
                       last_at = greatest(existing.last_at, excluded.last_at)""",
                list(counts),
                [count.total for count in counts.values()],
                [count.last_at for count in counts.values()],
            )
        except BaseException:
            for transaction_id, count in counts.items():
                self._add(transaction_id, count)
            raise

    def _add(self, transaction_id: int, added: ReplayCount) -> None:
        existing = self._counts.get(transaction_id)
        if existing is not None:
            added = ReplayCount(existing.total + added.total, max(existing.last_at, added.last_at))
        self._counts[transaction_id] = added
