"""Where the failures of the field are tried out: people with money, and two processes of one
gateway that they reach."""

from typing import Any

import httpx2

from agents.stage import AGENT_PIN, new_agent
from journeys.at_once import Line, Request, in_turns
from journeys.people import Agent, App, Customer, Merchant, Partner
from journeys.staff import Admin
from world import World

_SCOPES = ("payments:read", "payments:write", "balance:read", "subscribers:read", "cards:write")


class Market:
    def __init__(self, world: World, lines: list[Line], ada: Admin, app: App) -> None:
        self.world = world
        self.lines = lines
        self.ada = ada
        self.app = app

    @classmethod
    async def open(cls, world: World, *lines: Line) -> "Market":
        """Where anybody may pay as often as they like."""
        await world.without_compliance_rules()
        admin, key = await world.admin(), await world.api_key(*_SCOPES)
        ada = Admin(world.client, admin._credential, {"id": admin.id})
        return cls(world, list(lines), ada, App(world.client, key, key.id))

    async def at_once(self, *requests: Request) -> list[httpx2.Response]:
        return await in_turns(self.lines, *requests)

    async def customer(self, balance: str = "0", **fields: Any) -> Customer:
        """With a card."""
        record = await self.world.subscriber(balance=balance, **fields)
        customer = Customer(self.app, record)
        customer.card = await self.world.card(customer.id)
        return customer

    async def merchant(self) -> Merchant:
        return await self.ada.merchant()

    async def agent(self, balance: str) -> Agent:
        agent = Agent(self.app, await new_agent(self.world, balance=balance))
        agent.pin = AGENT_PIN
        return agent

    async def bank(self, balance: str, **fields: Any) -> Partner:
        bank = await self.ada.partner(**fields)
        await self.ada.fund_partner(bank, balance)
        return bank

    async def change_limits(self, level: int = 1, **limits: str) -> None:
        answer = await self.ada.put(f"account-rules/{level}", **limits)
        assert answer.status_code == 200, answer.text
