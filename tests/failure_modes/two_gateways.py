"""Driver for failure tests: funded accounts and two gateway processes on one database."""

from typing import Any

import httpx2

from agents.builders import AGENT_PIN, create_agent
from harness import Harness
from journeys.actors import Agent, App, Customer, Merchant, Partner
from journeys.admin import Admin
from journeys.concurrency import Client, SendRequest, send_round_robin

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
