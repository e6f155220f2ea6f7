"""Two gateways or two ledgers on one database, as in two processes."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2

from builders.agents import AGENT_PIN, create_agent
from builders.clock import FakeClock
from builders.ledger import START, LedgerDriver, build_command
from drivers.actors import Admin, Agent, App, Customer, Merchant, Partner
from drivers.clients import Client, SendRequest, send_round_robin
from harness import Harness
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Outcome
from tapgate.store.database import Database

_SCOPES = ("payments:read", "payments:write", "balance:read", "subscribers:read", "cards:write")


class TwoGateways:
    def __init__(self, harness: Harness, clients: list[Client], admin: Admin, app: App) -> None:
        self.harness = harness
        self.clients = clients
        self.admin = admin
        self.app = app

    @classmethod
    async def open(cls, harness: Harness, *clients: Client) -> "TwoGateways":
        """Create an admin and an app, and disable compliance rules so that none holds a payment."""
        await harness.disable_compliance_rules()
        admin, key = await harness.create_admin(), await harness.create_api_key(*_SCOPES)
        system_admin = Admin(harness.client, admin._credential, {"id": admin.id})
        return cls(harness, list(clients), system_admin, App(harness.client, key, key.id))

    async def run_concurrently(self, *requests: SendRequest) -> list[httpx2.Response]:
        return await send_round_robin(self.clients, *requests)

    async def create_customer(self, balance: str = "0", **fields: Any) -> Customer:
        """Create a subscriber with the given balance and a linked card."""
        record = await self.harness.create_subscriber(balance=balance, **fields)
        customer = Customer(self.app, record)
        customer.card = await self.harness.create_card(customer.id)
        return customer

    async def create_merchant(self) -> Merchant:
        return await self.admin.create_merchant()

    async def create_agent(self, balance: str) -> Agent:
        agent = Agent(self.app, await create_agent(self.harness, balance=balance))
        agent.pin = AGENT_PIN
        return agent

    async def create_bank(self, balance: str, **fields: Any) -> Partner:
        bank = await self.admin.create_partner(**fields)
        await self.admin.fund_partner(bank, balance)
        return bank

    async def update_limits(self, level: int = 1, **limits: str) -> None:
        response = await self.admin.put(f"account-rules/{level}", **limits)
        assert response.status_code == 200, response.text


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
            await LedgerDriver.open(url, database, FakeClock(START), timezone, slot)
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


async def wait_for_blocked_sessions(database: Database, count: int) -> None:
    """Wait up to 30 seconds until at least `count` database sessions wait for a lock."""
    async with asyncio.timeout(30):
        while count > await database.fetchval(
            """SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'"""
        ):
            await asyncio.sleep(0.01)
