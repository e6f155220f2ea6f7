"""Benchmark of a large batch and of a day close, both beside card payments.

    python -m bench.finance

A gateway with two workers and a report worker, as installed by default, serves card payments at a
fixed rate. At the same time, a batch is uploaded, validated and paid, and two days are closed, one
with few entries and one with many. Receivers of the batch get receipts. Prints the tables in
docs/benchmark-details.md. Fails if a payment is declined or if the books do not balance at the end.
"""

import argparse
import asyncio
import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg
import msgspec
import psutil

from bench.growth.months import create_past_months
from bench.payments import books, dataset
from bench.payments.installation import Installation, run_installation
from bench.payments.receiver import run_receiver
from bench.payments.results import Books
from bench.payments.steady_load import LoadSummary, SteadyLoad
from tapgate.business.finance.day_close import verify_receipt
from tapgate.core.id_generator import first_id_at
from tapgate.core.settings import Settings, load_settings
from tapgate.server.gateway_services import open_services
from tapgate_client import AsyncTapgateClient, Login, ids
from tapgate_client.clock import get_platform_day, system_clock

_ROOT: Final = Path(__file__).parents[1]
_EMAIL: Final = "bench@example.com"
_WORKERS: Final = 2
_CARDS: Final = 4_000
_QUIET_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.2
_SAMPLE_SECONDS: Final = 0.05
_SMALL_DAY: Final = 1_000
#: Transactions per statement of the history.
_CHUNK: Final = 100_000
_SETUP_TIMEOUT_SECONDS: Final = 600.0

_INSERT_RECEIVERS: Final = """
    WITH accounts AS (
        INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency, kyc_level,
                              checked)
        SELECT n, 'wallet', n + 1000000, 'Foday Kamara', 'Foday K.', $2, 1, true
        FROM generate_series(1000001, 1000000 + $1::bigint) n)
    INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name, created_at,
                             updated_at)
    SELECT n + 1000000, n, '+2327' || n, 'Foday', 'Kamara', now(), now()
    FROM generate_series(1000001, 1000000 + $1::bigint) n"""

#: Deposits to the receivers with a fee, so each transaction has two entries. The payers of the load
#: have no history, because compliance rules count the payments of a day.
_INSERT_HISTORY: Final = """
    WITH receivers AS (
        SELECT array_agg(id ORDER BY id) AS ids FROM accounts WHERE holder_name = 'Foday Kamara'
    ), platform AS (
        SELECT max(id) FILTER (WHERE kind = 'cash') AS cash,
               max(id) FILTER (WHERE kind = 'fees') AS fees
        FROM accounts WHERE owner_id IS NULL
    ), new AS (
        INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
                                  from_account, to_account, created_at, completed_at)
        SELECT $3 + n * $4, 'transfer', 'completed', 'admin', 100, 1, $5, platform.cash,
               receivers.ids[1 + n % cardinality(receivers.ids)],
               $6::timestamptz + n * $7::interval, $6::timestamptz + n * $7::interval
        FROM generate_series($1::bigint, $2::bigint - 1) n, receivers, platform
        RETURNING id, from_account, to_account)
    INSERT INTO entries (transaction_id, position, debit_account, credit_account, amount)
    SELECT new.id, position, debit, credit, amount FROM new, platform
    CROSS JOIN LATERAL (VALUES (0, new.from_account, new.to_account, 100),
                               (1, new.to_account, platform.fees, 1))
        AS entry (position, debit, credit, amount)
    ORDER BY new.id, position"""
_UPDATE_BALANCES: Final = """
    WITH sides AS (
        SELECT credit_account AS id, amount FROM entries WHERE transaction_id < $1
        UNION ALL SELECT debit_account, -amount FROM entries WHERE transaction_id < $1
    ), sums AS (SELECT id, sum(amount)::bigint AS total FROM sides GROUP BY id)
    UPDATE accounts SET balance = balance + total FROM sums WHERE sums.id = accounts.id
                                                          AND accounts.checked"""
_INSERT_ROLLUPS: Final = """
    INSERT INTO figures (quarter, type, outcome, failure_code, slot, count, amount, fees)
    SELECT date_bin('15 minutes', created_at, '2000-01-01Z'), type, 'completed', NULL, -1,
           count(*), sum(amount), sum(fee_amount)
    FROM transactions WHERE id < $1 GROUP BY 1, 2"""


class Usage(NamedTuple):
    """Memory of the worker that grew most in MB, its growth, and the CPU time of all processes."""

    peak: float
    growth: float
    python_seconds: float
    postgres_seconds: float


class Measured(NamedTuple):
    seconds: float
    payments: LoadSummary
    usage: Usage


class FinanceBenchmark:
    def __init__(
        self,
        installation: Installation,
        settings: Settings,
        connection: asyncpg.Connection,
        client: AsyncTapgateClient,
        load: SteadyLoad,
    ) -> None:
        self._installation = installation
        self.settings = settings
        self._connection = connection
        self._client = client
        self._load = load
        self.approved = 0

    async def run_batch(self, lines: int) -> None:
        await self._connection.execute(
            _INSERT_RECEIVERS, lines, self.settings.currency, timeout=_SETUP_TIMEOUT_SECONDS
        )
        await self._connection.execute("VACUUM ANALYZE", timeout=_SETUP_TIMEOUT_SECONDS)
        quiet = await self._measure(lambda: asyncio.sleep(_QUIET_SECONDS))
        print_row("payments alone", quiet)
        batch = await self._client.batches.create(name="Salaries", source_id="platform")
        rows = (f"+2327{1_000_001 + n},1,EMP-{n:06}" for n in range(lines))
        file = "\n".join(["phone_number,amount,reference", *rows]).encode()
        upload = await self._measure(lambda: self._client.batches.upload_lines(batch.id, file))
        print_row(f"upload of {lines:,} lines", upload)
        validation = await self._measure(lambda: self._client.batches.validate(batch.id))
        print_row("validation", validation)
        run = await self._measure(lambda: self._pay(batch.id, lines))
        print_row("run", run)

    async def _pay(self, batch_id: str, lines: int) -> None:
        await self._client.batches.run(batch_id)
        # Another process ends the batch.
        while (batch := await self._client.batches.get(batch_id)).status == "running":  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        if (batch.status, batch.paid) != ("completed", lines):
            raise RuntimeError(f"the batch is {batch.status} with {batch.paid} paid lines")

    async def write_history(self, day: date, entries: int) -> None:
        """Write transactions with two entries each, spread over a day of the past."""
        start = datetime.combine(day, datetime.min.time(), self.settings.timezone)
        await create_past_months(self._connection, start)
        count = entries // 2
        step = timedelta(hours=23) / count
        ids_per_step = (first_id_at(start + timedelta(hours=23)) - first_id_at(start)) // count
        for first in range(0, count, _CHUNK):
            await self._connection.execute(
                _INSERT_HISTORY,
                *(first, min(count, first + _CHUNK), first_id_at(start), ids_per_step),
                *(self.settings.currency, start, step),
                timeout=_SETUP_TIMEOUT_SECONDS,
            )

    async def finish_history(self, end: date) -> None:
        """Add the history to the balances and totals, as the ledger would have done."""
        end_id = first_id_at(datetime.combine(end, datetime.min.time(), self.settings.timezone))
        for sql in (_UPDATE_BALANCES, _INSERT_ROLLUPS):
            await self._connection.execute(sql, end_id, timeout=_SETUP_TIMEOUT_SECONDS)
        await self._connection.execute("VACUUM ANALYZE", timeout=_SETUP_TIMEOUT_SECONDS)

    async def close_day(self, day: date, entries: int) -> None:
        closed = await self._measure(lambda: self._client.day_close.close_ledger_day(str(day)))
        record = await self._client.day_close.get_ledger_day(str(day))
        if record.entries != entries:
            raise RuntimeError(f"the day has {record.entries} entries")
        print_row(f"close of a day with {entries:,} entries", closed)
        await self._check_proof(day)

    async def _check_proof(self, day: date) -> None:
        """Load the proof of a transaction in the middle of the day, and verify it."""
        transaction_id = await self._connection.fetchval(
            """SELECT transaction_ids[cardinality(transaction_ids) / 2 + 1] FROM closed_day_chunks
               WHERE day = $1 ORDER BY number
               OFFSET (SELECT count(*) / 2 FROM closed_day_chunks WHERE day = $1) LIMIT 1""",
            day,
        )
        started = time.perf_counter()
        proof = await self._client.day_close.get_transaction_proof(
            ids.encode(ids.TRANSACTION, transaction_id)
        )
        seconds = time.perf_counter() - started
        keys = await self._client.day_close.list_ledger_keys()
        verify_receipt.verify_proof(msgspec.to_builtins(proof), msgspec.to_builtins(keys.keys))
        print(f"  proof: {seconds * 1000:.0f} ms, {len(proof.path)} hashes", file=sys.stderr)

    async def verify(self) -> Books:
        result = await books.verify_books(self._connection, approved=self.approved)
        if not result.hold:
            raise RuntimeError(f"the books do not hold: {result}")
        return result

    async def _measure(self, work: Callable[[], Awaitable[object]]) -> Measured:
        """Do some work beside payments."""
        sampler = _Sampler(self._installation)
        async with asyncio.TaskGroup() as group:
            sampling = group.create_task(sampler.run())
            started = time.perf_counter()
            task = asyncio.ensure_future(work())
            payments = group.create_task(self._load.run_until(task.done))
            await task
            seconds = time.perf_counter() - started
            await payments
            sampling.cancel()
        summary = payments.result()
        if set(summary.statuses) != {200}:
            raise RuntimeError(f"payments were declined: {summary.statuses}")
        self.approved += summary.statuses[200]
        return Measured(seconds, summary, sampler.finish())


class _Sampler:
    """Highest memory of each worker, and CPU time."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._before = self._peaks = installation.get_workers_mb()
        self._python = sum(installation.get_worker_seconds())
        self._postgres = installation.get_postgres_seconds()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(psutil.NoSuchProcess):
                current = self._installation.get_workers_mb()
                self._peaks = [max(pair) for pair in zip(self._peaks, current, strict=True)]
            await asyncio.sleep(_SAMPLE_SECONDS)

    def finish(self) -> Usage:
        growth, peak = max(
            (peak - before, peak) for peak, before in zip(self._peaks, self._before, strict=True)
        )
        return Usage(
            peak,
            growth,
            sum(self._installation.get_worker_seconds()) - self._python,
            self._installation.get_postgres_seconds() - self._postgres,
        )


def print_row(name: str, measured: Measured) -> None:
    seconds, payments, usage = measured
    cells = [
        name,
        f"{seconds:.1f}",
        f"{payments.per_second:.0f}",
        f"{payments.p50:.1f}",
        f"{payments.p99:.1f}",
        f"{usage.peak:.0f}",
        f"{usage.growth:.0f}",
        f"{usage.python_seconds:.1f}",
        f"{usage.postgres_seconds:.1f}",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def print_header() -> None:
    print(
        "| Work | s | Payments/s | p50 ms | p99 ms | Worker MB | Growth"
        " | CPU s: Python | PostgreSQL |"
    )
    print(f"| --- |{' --: |' * 8}", flush=True)


@contextlib.asynccontextmanager
async def open_benchmark(folder: Path, rate: int) -> AsyncIterator[FinanceBenchmark]:
    password = secrets.token_urlsafe(16)
    async with contextlib.AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(run_receiver())
        environ = {
            "TAPGATE_ADMIN_EMAIL": _EMAIL,
            "TAPGATE_ADMIN_PASSWORD": password,
            "TAPGATE_REPORT_WORKERS": "1",
            "TAPGATE_DAY_CLOSE": "manual",
            "TAPGATE_MESSENGER_URL": receiver,
        }
        installation = await stack.enter_async_context(
            run_installation(folder, workers=_WORKERS, settings=environ)
        )
        settings = load_settings(installation.environ)
        async with open_services(settings, installation.database_url) as services:
            data = await dataset.build(services, cards=_CARDS, processors=10)
        connection = await asyncpg.connect(installation.database_url)
        stack.push_async_callback(connection.close)
        await books.require_durable(connection)
        client = await stack.enter_async_context(
            AsyncTapgateClient(
                f"http://127.0.0.1:{installation.port}",
                Login(_EMAIL, password),
                timeout=_SETUP_TIMEOUT_SECONDS,
            )
        )
        load = SteadyLoad(installation.port, data, rate)
        await load.connect()
        yield FinanceBenchmark(installation, settings, connection, client, load)


async def run_benchmark(folder: Path, *, lines: int, entries: int, rate: int) -> Books:
    async with open_benchmark(folder, rate) as benchmark:
        today = get_platform_day(system_clock(), benchmark.settings.timezone)
        print_header()
        await benchmark.run_batch(lines)
        days = [(today - timedelta(days=2), _SMALL_DAY), (today - timedelta(days=1), entries)]
        for day, count in days:
            await benchmark.write_history(day, count)
        await benchmark.finish_history(today)
        for day, count in days:
            await benchmark.close_day(day, count)
        return await benchmark.verify()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.finance", description=__doc__)
    parser.add_argument("--lines", type=int, default=50_000, help="lines of the batch")
    parser.add_argument("--entries", type=int, default=1_000_000, help="entries of the large day")
    parser.add_argument("--rate", type=int, default=200, help="card payments per second")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        result = asyncio.run(
            run_benchmark(
                Path(name), lines=options.lines, entries=options.entries, rate=options.rate
            )
        )
    print(f"The books hold: {result.transactions:,} transactions, {result.entries:,} entries.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
