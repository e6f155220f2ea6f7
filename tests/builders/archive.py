"""A ledger with payments of several months, and the job that archives them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg

from builders.auth import FakeClock
from builders.ledger import LedgerDriver, build_command, build_refund, build_request_key
from builders.transfers import create_sender_and_receiver, submit_transfer
from tapgate.business.finance.general_ledger.queries import load_totals
from tapgate.business.payments.wallets.statements.queries import load_activity
from tapgate.core.vault import Vault
from tapgate.ledger import chart
from tapgate.ledger.archive.archive_job import ArchiveJob
from tapgate.ledger.commands import ReviewDecision
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.verification.checkpoints import save_progress, verify_with_checkpoints
from tapgate.runtime.store.database import Database
from tapgate_client.clock import system_clock

VAULT: Final = Vault("a secret key of thirty-two characters")
MARCH: Final = datetime(2026, 3, 10, 12, tzinfo=UTC)
MAY, JUNE, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6, 7))


class InterruptError(Exception):
    pass


class History:
    """Payments from March to June, and the job that archives them."""

    url: str  # of a copy

    def __init__(self, ledger: LedgerDriver, folder: Path) -> None:
        self.ledger = ledger
        self.database = ledger.database
        self.folder = folder
        self.audited: list[tuple[str, str]] = []
        self.interrupt: Callable[[], None] = lambda: None

    @classmethod
    async def create(cls, url: str, database: Database) -> "History":
        """Create the partitions and the payments, and close the ledger."""
        await ensure_partitions(database, MARCH)
        ledger = await LedgerDriver.open(url, database, FakeClock(MARCH))
        await database.execute(
            "UPDATE compliance_rules SET status = 'inactive' WHERE action = 'block'"
        )
        history = cls(ledger, Path())
        await history.create_payments()
        await ledger.close()
        return history

    async def open_copy(self, url: str, database: Database, folder: Path) -> "History":
        """Open the ledger in a database copy, one second later."""
        clock = FakeClock(self.ledger.clock.now + timedelta(seconds=1))
        copy = History(await LedgerDriver.open(url, database, clock), folder)
        copy.url = url
        copy.payer, copy.merchant, copy.payments = self.payer, self.merchant, [*self.payments]
        return copy

    async def create_payments(self) -> None:
        ledger = self.ledger
        self.payer = await ledger.create_subscriber(1000_00)
        self.merchant = await ledger.create_processor(10_00)
        self.payments: list[int] = []
        for month in range(4):
            ledger.clock.now = MARCH + timedelta(days=30 * month)
            await self.pay(f"key {month}")
            refund = build_refund(self.merchant, await self.pay(), 50)
            (await ledger.submit(refund)).require_accepted()
            sender, receiver = await create_sender_and_receiver(ledger)
            held = (await submit_transfer(ledger, sender, receiver)).require_accepted()
            # The transfer of April is released in May.
            ledger.clock.now += timedelta(days=25 if month == 1 else 1)
            await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))

    async def pay(self, key: str | None = None) -> int:
        command = build_command(
            chart.POS_PAYMENT,
            self.payer,
            self.merchant,
            1_00,
            idempotency_key=key and build_request_key(key),
        )
        outcome = (await self.ledger.submit(command)).require_accepted()
        self.payments.append(outcome.transaction_id)
        return outcome.transaction_id

    async def verify(self, *, full: bool = False) -> dict[str, list[str]]:
        async with self.database.connection() as connection:
            verification, progress = await verify_with_checkpoints(connection, VAULT, full=full)
            if verification.is_valid:
                await save_progress(connection, VAULT, progress, system_clock())
        self.verification = verification
        return {
            finding.invariant: finding.examples
            for finding in verification.findings
            if finding.broken
        }

    async def run(self, before: datetime = JUNE, *, drop: bool = False) -> list[str]:
        async with self.database.dedicated_connection() as connection:
            job = self._open_job(connection)
            return [line async for line in job.run(before, self.folder, drop=drop)]

    async def restore(self) -> str:
        async with self.database.dedicated_connection() as connection:
            return await self._open_job(connection).restore(self.folder)

    def _open_job(self, connection: asyncpg.Connection) -> ArchiveJob:
        async def audit(tx: Any, action: str, month: str) -> None:
            self.audited.append((action, month))

        return ArchiveJob(
            InterruptedConnection(connection, self),
            VAULT,
            clock=self.ledger.clock,
            new_id=self.ledger.new_id,
            actor_id="command line:test",
            audit=audit,
            report=lambda name, size: None,
        )

    async def read_balances(self) -> Any:
        """Return everything that must not depend on archived months."""
        rows = await self.database.fetch("SELECT id FROM accounts WHERE checked ORDER BY id")
        activities = [await load_activity(self.database, row["id"], JUNE, JULY) for row in rows]
        return await self.read_totals(), activities

    async def read_totals(self) -> Any:
        return [(await load_totals(self.database, end))[1] for end in (None, JUNE, JULY)]

    async def read_rows(self) -> Any:
        return [
            [
                row[0]
                for row in await self.database.fetch(f"SELECT t::text FROM {table} t ORDER BY 1")
            ]
            for table in ("transactions", "entries")
        ]


class InterruptedConnection:
    """Connection that may fail before each change, as if the process were killed."""

    def __init__(self, connection: asyncpg.Connection, history: History) -> None:
        self._connection = connection
        self._history = history

    def __getattr__(self, name: str) -> Any:
        if name in ("execute", "copy_from_query", "copy_to_table"):
            self._history.interrupt()
        return getattr(self._connection, name)
