"""Two ledgers on one database, as in two processes, each with its own controllable clock."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

from ledger.builders import FakeClock, LedgerDriver, build_command
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Outcome
from tapgate.store.database import Database


class TwoLedgers:
    def __init__(self, *ledgers: LedgerDriver) -> None:
        self.ledgers = ledgers
        self.first, self.second = ledgers

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, url: str, database: Database, timezone: str = "Africa/Freetown"
    ) -> AsyncIterator["TwoLedgers"]:
        ledgers = [
            await LedgerDriver.open(url, database, FakeClock(), timezone, slot)
            for slot in (501, 502)
        ]
        await database.execute("UPDATE compliance_rules SET status = 'inactive'")
        try:
            yield cls(*ledgers)
        finally:
            for ledger in ledgers:
                await ledger.close()

    async def set_limits(self, **limits: int) -> None:
        changes = ", ".join(f"{name} = ${index}" for index, name in enumerate(limits, 1))
        await self.first.database.execute(f"UPDATE account_rules SET {changes}", *limits.values())
        self.invalidate_rules()

    def invalidate_rules(self) -> None:
        for ledger in self.ledgers:
            ledger.ledger._invalidate_rules()

    async def create_pair(self, balance: int) -> tuple[int, int]:
        """Create a subscriber with the given balance and one without funds; return their IDs."""
        return await self.first.create_subscriber(balance), await self.first.create_subscriber()

    def advance_clocks(self, **time: float) -> None:
        for ledger in self.ledgers:
            ledger.clock.now += timedelta(**time)

    async def submit_transfer(
        self, ledger: LedgerDriver, sender: int, receiver: int, amount: int
    ) -> Outcome:
        parties = commands.subscriber_party(sender), commands.subscriber_party(receiver)
        return await ledger.submit(build_command(chart.TRANSFER, *parties, amount))

    async def submit_concurrently(
        self, sender: int, receiver: int, amount: int, *, times: int
    ) -> Counter[Code | None]:
        """Submit the transfer `times` times, alternating processes, and count the outcome codes."""
        outcomes = await asyncio.gather(
            *(
                self.submit_transfer(self.ledgers[number % 2], sender, receiver, amount)
                for number in range(times)
            )
        )
        return Counter(outcome.code for outcome in outcomes)
