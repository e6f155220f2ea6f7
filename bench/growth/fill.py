"""Bulk loader that fills a benchmark database with a year of transactions."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import asyncpg

from bench.growth import indexes, people
from bench.growth.history import PaymentHistory
from bench.growth.months import create_past_months
from bench.growth.results import FillSummary, Sizes
from bench.payments.dataset import Card
from tapgate.core.settings import Settings
from tapgate_client import ids
from tapgate_client.clock import system_clock

#: Maximum entry count for the most active payer; lower if the total is small.
_MAX_HISTORY_ENTRIES: Final = 10_000
_BATCH_SIZE: Final = 100_000
#: Tables that grow, with the column whose hash determines the physical row order, if any.
_GROWING_TABLES: Final = {
    "transactions": None,
    "entries": None,
    "subscribers": None,
    "accounts": "id",
    "cards": "id",
    "pins": "holder_id",
}
#: Session settings. Commits stay durable.
_SESSION_SETTINGS: Final = {
    "work_mem": "128MB",
    "maintenance_work_mem": "512MB",
    "temp_buffers": "128MB",
    "timezone": "UTC",
}

PrintLine = Callable[[str], None]


class DatabaseFiller:
    def __init__(
        self,
        connection: asyncpg.Connection,
        settings: Settings,
        sizes: Sizes,
        print_line: PrintLine,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._sizes = sizes
        self._print_line = print_line
        self._started = monotonic()

    async def run(self, frequent_payer: Card) -> FillSummary:
        """Fill the database and return a summary.

        `frequent_payer` gets the longest history. Every merchant must already have a payment,
        which serves as a template.
        """
        for name, value in _SESSION_SETTINGS.items():
            await self._connection.execute("SELECT set_config($1, $2, false)", name, value)
        entries_before = await self._connection.fetchval("SELECT count(*) FROM entries")
        payments = (self._sizes.entries - entries_before - self._sizes.accounts) // 2
        history = PaymentHistory(
            self._connection,
            now=system_clock(),
            zone=self._settings.timezone,
            payments=payments,
        )
        await create_past_months(self._connection, history.begin)
        dropped_indexes = await indexes.drop_indexes(self._connection, list(_GROWING_TABLES))
        await self._write_history(history, frequent_payer)
        await self._rebuild_tables(dropped_indexes)
        return await self._summarize(history, frequent_payer, entries_before)

    async def _write_history(self, history: PaymentHistory, frequent_payer: Card) -> None:
        subscriber_id = ids.decode(ids.SUBSCRIBER, frequent_payer.subscriber_id)
        assert subscriber_id is not None
        accounts, currency = self._sizes.accounts, self._settings.currency
        await people.plan_payers(self._connection, accounts=accounts, currency=currency)
        longest_history = min(_MAX_HISTORY_ENTRIES // 2, history.payments // 10)
        await history.plan(frequent_payer=subscriber_id, frequent_payments=longest_history)
        self._report_progress("payments planned")
        # Inserting the keys in the order of their index, at the end, is much faster.
        await self._connection.execute(
            "ALTER TABLE transactions DISABLE TRIGGER transactions_add_keys"
        )
        await self._run_in_batches("wallets funded", accounts, history.fund)
        await self._run_in_batches("payments", history.payments, history.pay)
        await history.pay_out()
        await self._connection.execute(
            """ALTER TABLE transactions ENABLE TRIGGER transactions_add_keys;
               INSERT INTO idempotency_keys
               SELECT scope, request_id, id FROM transactions WHERE request_id IS NOT NULL
               ORDER BY scope, request_id ON CONFLICT DO NOTHING"""
        )
        self._report_progress("idempotency keys")
        await history.write_usage()
        await history.write_rollups()

        async def insert_batch(first: int, last: int) -> None:
            await people.insert_people(
                self._connection, first, last, since=history.begin, currency=currency
            )

        await self._run_in_batches("subscribers", accounts, insert_batch)

    async def _run_in_batches(
        self, label: str, total: int, run_batch: Callable[[int, int], Awaitable[None]]
    ) -> None:
        for first in range(0, total, _BATCH_SIZE):
            last = min(first + _BATCH_SIZE, total) - 1
            async with self._connection.transaction():
                await run_batch(first, last)
            self._report_progress(f"{last + 1:,} of {total:,} {label}")

    async def _rebuild_tables(self, dropped_indexes: list[indexes.Index]) -> None:
        for table, key in _GROWING_TABLES.items():
            if key is not None:
                await indexes.shuffle_rows(self._connection, table, key)
        self._report_progress("rows shuffled")
        for index in dropped_indexes:
            await self._connection.execute(index.definition)
        self._report_progress(f"{len(dropped_indexes)} indexes rebuilt")
        await self._connection.execute("DISCARD TEMP")
        await self._connection.execute("VACUUM (ANALYZE)")
        await self._connection.execute("CHECKPOINT")
        self._report_progress("vacuumed, analyzed and flushed to disk")

    async def _summarize(
        self, history: PaymentHistory, frequent_payer: Card, entries_before: int
    ) -> FillSummary:
        seconds = monotonic() - self._started
        entries = await self._connection.fetchval("SELECT count(*) FROM entries") - entries_before
        longest_history = await self._connection.fetchval(
            """SELECT count(*) FROM transactions t JOIN entries e ON e.transaction_id = t.id
               WHERE t.from_account = (SELECT account_id FROM cards WHERE serial = $1)""",
            frequent_payer.serial,
        )
        return FillSummary(
            people=self._sizes.accounts - self._sizes.cards,
            payments=history.payments,
            entries=entries,
            seconds=round(seconds, 1),
            longest_history=longest_history,
            seconds_per_million_entries=round(seconds / entries * 1e6, 1),
        )

    def _report_progress(self, line: str) -> None:
        self._print_line(f"  {monotonic() - self._started:6.0f} s  {line}")
