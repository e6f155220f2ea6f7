"""A running deployment, and two gateways or ledgers on one database, as in two processes."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

from builders.auth import FakeClock
from builders.ledger import START, LedgerDriver, build_command
from builders.participants import AGENT_PIN, create_agent
from drivers.actors import Admin, Agent, App, Customer, Merchant, Partner, Record, require_success
from drivers.forked import start_forked
from drivers.processes import (
    ADMIN,
    TAPGATE_EXECUTABLE,
    Client,
    SendRequest,
    open_client_per_process,
    send_round_robin,
)
from harness import Harness, ServiceAuth
from tapgate.core.settings import Settings, load_settings
from tapgate.core.vault import Vault
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Outcome
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database
from tapgate_client.errors import Code


class Deployment:
    def __init__(self, client: httpx2.AsyncClient, folder: Path, database_url: str) -> None:
        self.client = client
        self.database_url = database_url
        self._environ = {
            "TAPGATE_DATA_DIR": str(folder / "gateway"),
            "TAPGATE_DATABASE_URL": database_url,
        }

    async def log_in_admin(self) -> Admin:
        """Log in as the first system admin."""
        return await Admin.log_in(self.client, ADMIN["email"], ADMIN["password"])

    @property
    def settings(self) -> Settings:
        """Settings for the gateway's processes, including generated secrets."""
        return load_settings(self._environ)

    def create_messenger_app(self) -> App:
        """Return a caller that authenticates as the messenger."""
        secret = self.settings.service_secrets["messenger"]
        return App(self.client, ServiceAuth("messenger", secret), "messenger")

    def open_client_per_process(self) -> AbstractAsyncContextManager[list[httpx2.AsyncClient]]:
        """Open a client for each of the gateway's processes."""
        return open_client_per_process(self.client.base_url)

    async def run_command(self, *arguments: str) -> tuple[int, str]:
        """Run a `tapgate` command and return its exit status and output."""
        process = await start_forked(
            TAPGATE_EXECUTABLE,
            *arguments,
            env=os.environ | self._environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    async def get_pending_code(self, phone_number: str) -> str:
        """Return the newest pending one-time code for a phone number."""
        _, output = await self.run_command("messages", "--to", phone_number)
        codes = [line for line in output.splitlines() if " one_time_code: " in line]
        assert codes, output
        return codes[0].rpartition(": ")[2]

    async def wait_for_messages(
        self, phone_number: str, template: str, count: int = 1
    ) -> list[list[str]]:
        """Return the parameters in a phone's pending messages with a template, oldest first."""
        vault = Vault(self.settings.secret_key)
        database = await Database.connect(self.database_url)
        try:
            async with asyncio.timeout(30):
                while True:
                    pending = await list_pending(database, vault, phone_number)
                    found = [item.parameters for item in pending if item.template == template]
                    if len(found) >= count:
                        return found[::-1]
                    await asyncio.sleep(0.05)
        finally:
            await database.close()

    async def disable_compliance_rules(self) -> None:
        """Disable all rules, for journeys with more payments per day than the rules allow."""
        ada = await self.log_in_admin()
        for rule in require_success(await ada.get("compliance/rules"))["data"]:
            require_success(await ada.put(f"compliance/rules/{rule['id']}", status="inactive"))

    async def require_balanced_books(self) -> None:
        """Assert the ledger invariants that must hold after every journey."""
        connection = await asyncpg.connect(self.database_url)
        try:
            proof = await verify(connection)
            assert proof.is_valid, proof
            assert await connection.fetchval(_SUM_OF_ALL_ACCOUNTS_SQL) == 0
        finally:
            await connection.close()


#: Uses stored balances where they exist, and entries otherwise.
_SUM_OF_ALL_ACCOUNTS_SQL = """
    SELECT (SELECT coalesce(sum(balance), 0) FROM accounts WHERE checked)
         + (SELECT coalesce(sum(e.amount), 0) FROM entries e
            JOIN accounts a ON a.id = e.credit_account WHERE NOT a.checked)
         - (SELECT coalesce(sum(e.amount), 0) FROM entries e
            JOIN accounts a ON a.id = e.debit_account WHERE NOT a.checked)"""


_POSTED_STATUSES = frozenset({"completed", "partially_refunded", "refunded"})


def sum_history(history: list[Record]) -> Decimal:
    """Return the balance that results from the history, starting at zero."""
    return sum(map(_get_balance_change, history), Decimal())


def _get_balance_change(transaction: Record) -> Decimal:
    """Return by how much a transaction changed the history owner's balance.

    A fully refunded payment costs the merchant no fee.
    """
    if transaction["status"] not in _POSTED_STATUSES:
        return Decimal()
    amount, fee = Decimal(transaction["amount"]), Decimal(transaction["fee_amount"])
    is_credit = transaction["direction"] == "credit"
    if transaction["fee_payer"] != ("receiver" if is_credit else "sender"):
        fee = Decimal()
    if is_credit:
        return amount if transaction["status"] == "refunded" else amount - fee
    return -amount - fee


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
        system_admin = Admin(harness.client, admin.credential, {"id": admin.id})
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
            ledger.ledger.invalidate_rules()

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
