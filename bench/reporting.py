"""Overview endpoint benchmark: latency with many and with few transactions.

Two databases on one server differ only in the number of transactions in the last 30 days. The
endpoint is called in-process, alternately for each database, so other load affects both.
Run with `python -m bench.reporting`. The data is removed at the end.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

import asyncpg
import msgspec

from bench.growth import indexes
from tapgate.auth.sessions import Sessions
from tapgate.business.reporting import rollups
from tapgate.core.settings import load_settings
from tapgate.http.api.app import App
from tapgate.http.api.services import Services
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.ledger.verification.invariants import STATE_INVARIANTS, TOTALS
from tapgate.runtime import logs
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.migrate import migrate
from tapgate.server.gateway import create_app, open_gateway_services

ACCOUNTS = 2_000
#: Number of processes whose rollup rows of the last hour are not compacted yet.
PROCESSES = 4
PERIODS = ("day", "week", "month")

_INSERT_ACCOUNTS = """
    INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency, kyc_level,
                          checked)
    SELECT n, 'wallet', n + 1000000, 'Aminata Kamara', 'Aminata K.', 'SLE', 1, true
    FROM generate_series(1, $1) AS n"""

#: 5 types; 1 in 10 failed, for one of 5 reasons; 1 in 500 under review.
_INSERT_TRANSACTIONS = """
    INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, from_account,
                              to_account, failure_code, created_at)
    SELECT n, (ARRAY['pos_payment', 'transfer_p2p', 'agent_cashin', 'agent_cashout', 'refund'])
               [1 + n % 5],
           status, 'api', 100 + n % 900, 1, 'SLE', 1 + n % $2, 1 + (n + 1) % $2,
           CASE WHEN status = 'failed' THEN (ARRAY['INSUFFICIENT_FUNDS', 'CARD_NOT_ACTIVE',
               'DAILY_LIMIT_EXCEEDED', 'CARD_LIMIT_EXCEEDED', 'COMPLIANCE_REJECTED'])
               [1 + n / 10 % 5] END,
           now() - n * (interval '30 days' / $1)
    FROM generate_series(1, $1::int) AS n,
         LATERAL (SELECT CASE WHEN n % 10 = 7 THEN 'failed' WHEN n % 500 = 3 THEN 'under_review'
                              ELSE 'completed' END AS status) AS decided"""

_INSERT_ENTRIES = """
    INSERT INTO entries SELECT id, 0, from_account, to_account, amount FROM transactions
    WHERE status = 'completed'"""

#: Like the ledger's rollups: one row per process in the last hour, and combined rows before that.
_INSERT_ROLLUPS = """
    INSERT INTO figures
    SELECT date_bin('15 minutes', created_at, '2000-01-01Z') AS quarter, type, status,
           failure_code, CASE WHEN created_at > now() - interval '1 hour' THEN id % $1 ELSE -1 END,
           count(*), sum(amount), sum(fee_amount)
    FROM transactions GROUP BY 1, 2, 3, 4, 5"""


T = TypeVar("T")


class OverviewRequest:
    """Overview request by an admin."""

    method = "GET"
    path = "/api/v1/overview"
    peer = "127.0.0.1"
    is_complete = True

    def __init__(self, period: str, token: str) -> None:
        self.query = f"period={period}".encode()
        self.headers = {b"authorization": f"Bearer {token}".encode()}

    async def read_body(self, limit: int) -> bytes:
        return b""

    async def cancel_on_disconnect(self, work: Awaitable[T]) -> T:
        return await work


class BenchmarkDatabase(NamedTuple):
    name: str
    app: App
    token: str
    services: Services


async def fill(url: str, transactions: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_INSERT_ACCOUNTS, ACCOUNTS)
        dropped_indexes = await indexes.drop_indexes(connection, ["transactions", "entries"])
        await connection.execute(_INSERT_TRANSACTIONS, transactions, ACCOUNTS)
        await connection.execute(_INSERT_ENTRIES)
        await connection.execute(_INSERT_ROLLUPS, PROCESSES)
        for index in dropped_indexes:
            await connection.execute(index.definition)
        await connection.execute("VACUUM (ANALYZE)")
        assert not await connection.fetch(
            STATE_INVARIANTS[TOTALS], 0, datetime.min.replace(tzinfo=UTC)
        )
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def open_database(
    server_url: str, folder: Path, transactions: int
) -> AsyncIterator[BenchmarkDatabase]:
    name = f"of_{transactions}"
    connection = await asyncpg.connect(server_url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    url = server_url.replace("@/tapgate?", f"@/{name}?")
    await migrate(url)
    await fill(url, transactions)
    environ = {"TAPGATE_RATE_LIMIT": "1000000", "TAPGATE_RATE_BURST": "1000000"}
    settings = load_settings(
        {"TAPGATE_DATA_DIR": str(folder / name), "TAPGATE_DATABASE_URL": url} | environ
    )
    async with open_gateway_services(settings, url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, services.new_id)
        token = await _create_admin_token(services, services.authenticator.sessions)
        yield BenchmarkDatabase(f"{transactions:,}", create_app(services), token, services)


async def _create_admin_token(services: Services, sessions: Sessions) -> str:
    admin_id = services.new_id()
    async with services.transaction() as tx:
        await tx.execute(
            """INSERT INTO admins (id, email, name, role, password_hash, created_at)
               VALUES ($1, 'ada@example.com', 'Ada', 'system_admin', 'no password', now())""",
            admin_id,
        )
        return (await sessions.start(tx, admin_id)).token


async def measure_request(database: BenchmarkDatabase, period: str, *, uncached: bool) -> float:
    if uncached:
        rollups._cache.clear()
    started = time.perf_counter()
    response = await database.app.respond(OverviewRequest(period, database.token))
    seconds = time.perf_counter() - started
    assert response.status == 200, response.body
    assert msgspec.json.decode(response.body)["totals"]["count"] > 0
    return seconds * 1000


async def compare(few: BenchmarkDatabase, many: BenchmarkDatabase, rounds: int) -> None:
    print(f"{'':24} {few.name:>12} {many.name:>12}   ratio (medians of {rounds})")
    for uncached in (False, True):
        for period in PERIODS:
            durations: dict[str, list[float]] = {few.name: [], many.name: []}
            for number in range(rounds + 3):
                for database in (few, many) if number % 2 else (many, few):
                    milliseconds = await measure_request(database, period, uncached=uncached)
                    if number >= 3:  # the first rounds are warm-up
                        durations[database.name].append(milliseconds)
            small, large = (statistics.median(durations[database.name]) for database in (few, many))
            label = f"{period}{', uncached' if uncached else ''}"
            print(f"{label:24} {small:9.2f} ms {large:9.2f} ms   {large / small:.2f}", flush=True)


async def run(server_url: str, folder: Path, few: int, many: int, rounds: int) -> None:
    async with (
        open_database(server_url, folder, few) as few_database,
        open_database(server_url, folder, many) as many_database,
    ):
        await compare(few_database, many_database, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reporting", description=__doc__)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    logs.configure(open(os.devnull, "ab", buffering=0))  # noqa: PTH123, SIM115 - stays open
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path(__file__).parents[1]) as name:
        folder = Path(name)
        server = EmbeddedPostgres(folder / "data")
        try:
            url = server.start()
            few, many = max(1_000, arguments.few), min(10_000_000, arguments.many)
            asyncio.run(run(url, folder, few, many, min(1_000, max(1, arguments.rounds))))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
