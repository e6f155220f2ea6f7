"""Replay counts per transaction.

Counts are kept in memory and flushed about once a second in one statement: a replay itself writes
nothing. A killed process loses the counts of its last second, and a connection lost during the
commit may count them twice. The counts only inform operators: no money depends on them.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple, NoReturn

from tapgate.clock import Clock
from tapgate.ledger.commands import Outcome
from tapgate.service.background import run_periodically
from tapgate.store.database import Database

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
        counted, self._counts = self._counts, {}
        if not counted:
            return
        try:
            await database.execute(
                # Sorted, so that concurrent flushes of several processes cannot deadlock.
                """INSERT INTO replays AS kept (transaction_id, count, last_at)
                   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[])
                     AS new (transaction_id, count, last_at) ORDER BY transaction_id
                   ON CONFLICT (transaction_id) DO UPDATE
                   SET count = kept.count + excluded.count,
                       last_at = greatest(kept.last_at, excluded.last_at)""",
                list(counted),
                [entry.total for entry in counted.values()],
                [element.last_at for element in counted.values()],
            )
        except BaseException:
            for transaction_id, item in counted.items():
                self._add(transaction_id, item)
            raise

    def _add(self, transaction_id: int, more: ReplayCount) -> None:
        before = self._counts.get(transaction_id)
        if before is not None:
            more = ReplayCount(before.total + more.total, max(before.last_at, more.last_at))
        self._counts[transaction_id] = more
