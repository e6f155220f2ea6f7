"""Division of an existing ledger into months while payments run, interrupted before any step."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from builders.auth import FakeClock
from builders.ledger import (
    LedgerDriver,
    build_cash_in,
    build_payment,
    build_refund,
    build_request_key,
    require_balanced_books,
)
from tapgate.general_ledger.queries import load_totals
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.store import split
from tapgate.store.database import Database
from tapgate.store.partitions import list_partitions
from tapgate.store.split import copy_keys, divide
from tapgate.wallets.statements.queries import load_activity

_START = datetime(2026, 8, 20, tzinfo=UTC)
_UPGRADE = datetime(2026, 11, 16, 12, tzinfo=UTC)
_LATER = datetime(2026, 12, 2, tzinfo=UTC)


class InterruptError(Exception):
    pass


class InterruptedConnection:
    """Connection that fails before a statement, as if the process were killed."""

    def __init__(self, connection: asyncpg.Connection, statements: int) -> None:
        self._connection = connection
        self._left = statements

    def __getattr__(self, name: str) -> Any:
        if name in ("execute", "fetch", "fetchval", "fetchrow"):
            self._left -= 1
            if self._left < 0:
                raise InterruptError
        return getattr(self._connection, name)


class Installation:
    """Ledgers of two processes on one database, with payments from before partitioning."""

    def __init__(self, ledgers: list[LedgerDriver]) -> None:
        self.ledgers = ledgers
        self.database = ledgers[0].database
        self.accepted: dict[str, int] = {}
        self.is_paying = False

    async def create_history(self) -> None:
        first, clock = self.ledgers[0], self.ledgers[0].clock
        self.payers = [await first.create_subscriber(10_000_00) for _ in range(4)]
        self.merchant = await first.create_processor(1000_00)
        self.agent = await first.create_agent(1000_00)
        for number in range(24):
            clock.now = _START + timedelta(days=3 * number)
            await self.pay(first, f"old {number}", self.payers[number % 4])
        # As if written before idempotency keys had a table of their own.
        await self.database.execute("INSERT INTO installation VALUES ('uncopied_keys', 'yes')")
        await self.database.execute("DELETE FROM idempotency_keys")
        clock.now = _UPGRADE
        await ensure_partitions(self.database, clock.now)
        for ledger in self.ledgers:
            ledger.clock.now = _LATER

    async def pay(self, ledger: LedgerDriver, name: str, payer: int) -> None:
        command = build_payment(payer, self.merchant, 1_00, idempotency_key=build_request_key(name))
        result = (await ledger.submit(command)).require_accepted()
        # A repeated request returns the original payment, whatever the division has copied.
        assert self.accepted.setdefault(name, result.transaction_id) == result.transaction_id

    async def keep_paying(self, ledger: LedgerDriver, seed: int) -> int:
        """Pay, refund old payments and repeat old requests until the division has ended."""
        source, count = random.Random(seed), 0
        while self.is_paying:
            count += 1
            payer = source.choice(self.payers)
            await self.pay(ledger, f"new {seed} {count}", payer)
            number = source.randrange(24)
            await self.pay(ledger, f"old {number}", self.payers[number % 4])
            refund = build_refund(self.merchant, self.accepted[f"old {number}"], 1)
            (await ledger.submit(refund)).require_accepted()
            (await ledger.submit(build_cash_in(self.agent, payer, 1_00))).require_accepted()
            ledger.clock.now += timedelta(seconds=1)
        return count

    async def divide(self, statements: int = 10_000) -> None:
        async with self.database.dedicated_connection() as connection:
            interrupted = InterruptedConnection(connection, statements)
            async for _ in copy_keys(interrupted, _pause):  # type: ignore[arg-type]
                pass
            async for _ in divide(interrupted, _LATER, _pause):  # type: ignore[arg-type]
                pass

    async def read(self) -> Any:
        """Return everything that users see of old months."""
        rows = [
            await self.database.fetch(f"SELECT t::text FROM {table} t ORDER BY 1")
            for table in ("transactions", "entries")
        ]
        accounts = await self.database.fetch("SELECT id FROM accounts WHERE checked ORDER BY id")
        statements = [
            await load_activity(self.database, row["id"], _START, _LATER) for row in accounts
        ]
        totals = [(await load_totals(self.database, end))[1] for end in (None, _START, _UPGRADE)]
        return rows, statements, totals


async def _pause() -> None:
    await asyncio.sleep(0)


@pytest.fixture
async def installation(
    database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Installation]:
    monkeypatch.setattr(split, "STEP_ROWS", 7)
    ledgers = [
        await LedgerDriver.open(database_url, database, FakeClock(_START), slot=slot)
        for slot in (1, 2)
    ]
    await database.execute("UPDATE compliance_rules SET status = 'inactive'")
    installation = Installation(ledgers)
    try:
        await installation.create_history()
        yield installation
        await require_balanced_books(database)
    finally:
        for ledger in ledgers:
            await ledger.close()


async def test_lists_statements_and_trial_balance_are_the_same_after_the_division(
    installation: Installation,
) -> None:
    before = await installation.read()
    await installation.divide()
    assert await installation.read() == before


async def test_payments_continue_during_a_division_that_is_killed_before_every_statement(
    installation: Installation,
) -> None:
    """Each run gets some statements further than the last. No payment fails, is lost or doubled."""
    installation.is_paying = True
    payments = [
        asyncio.create_task(installation.keep_paying(ledger, seed))
        for seed, ledger in enumerate(installation.ledgers)
    ]
    interruptions = 0
    while True:
        try:
            await installation.divide(interruptions)
        except InterruptError:
            interruptions += 1
        else:
            break
        assert interruptions < 300
    installation.is_paying = False
    counts = await asyncio.gather(*payments)
    assert interruptions > 20
    assert min(counts) > 5
    database = installation.database
    rows = await database.fetch("SELECT id FROM transactions WHERE request_id IS NOT NULL")
    assert sorted(row["id"] for row in rows) == sorted(installation.accepted.values())
    assert await database.fetchval("SELECT count(*) FROM transactions_initial") == 0
    async with database.connection() as connection:
        for table in ("transactions", "entries"):
            names = [part.name for part in await list_partitions(connection, table)]
            assert {f"{table}_2026_{month:02}" for month in range(8, 13)} <= set(names)
