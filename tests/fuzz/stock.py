"""Who and what really exists, so that a request gets past 404 and reaches what it asks for.

Fuzzing wears out whom it meets: they are blocked, locked, closed or out of money. So nobody stays
for long: after a few uses somebody new takes their place.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

from fuzz.callers import Callers, everybody
from fuzz.installation import Installation
from journeys.caller import Record, done, new_phone
from journeys.people import App, Customer, Merchant, Partner
from journeys.staff import Admin
from world import PIN

T = TypeVar("T")

_CARDS_AT_ONCE = 200
_PEOPLE = 24
_USES = 12


@dataclass
class Agents:
    """One who has a float and has earned something, and one who works for that one."""

    top: str
    sub: str


@dataclass
class Shop:
    """A processor that may be suspended, and what it has."""

    merchant: Merchant
    terminal: str
    key: str


class Ring(Generic[T]):
    """A few of a kind, each used a number of times and then replaced."""

    def __init__(self, make: Callable[[], Awaitable[T]], size: int, uses: int) -> None:
        self._make = make
        self._size = size
        self._uses = uses
        self._there: list[tuple[T, list[int]]] = []

    async def one(self, rng: Random) -> T:
        if len(self._there) < self._size:
            made = await self._make()
            self._there.append((made, [0]))
            return made
        place = rng.randrange(len(self._there))
        found, used = self._there[place]
        used[0] += 1
        if used[0] >= self._uses:
            del self._there[place]
        return found


@dataclass
class Stock:
    installation: Installation
    ada: Admin
    app: App
    callers: Callers
    bank: Partner
    rules: list[Record]
    fees: list[Record]
    commissions: list[Record]
    levels: dict[str, Record]
    people: Ring[Customer] = field(init=False)
    agents: Ring[Agents] = field(init=False)
    #: What answers said to go on with.
    cursors: list[str] = field(default_factory=list)
    _cards: list[str] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)
    _uploading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.people = Ring(lambda: self.despite_rules(self.person), _PEOPLE, _USES)
        self.agents = Ring(lambda: self.despite_rules(self.pair_of_agents), 4, 20)

    async def despite_rules(self, make: Callable[[], Awaitable[T]]) -> T:
        """A request may just have changed the rules so that nobody can have money."""
        for _ in range(20):
            try:
                return await make()
            except AssertionError:
                await self.restore_rules()
        return await make()

    def number(self) -> int:
        return int(next(self._numbers))

    async def card(self) -> str:
        """One that nobody has."""
        async with self._uploading:
            if not self._cards:
                self._cards = [f"FUZZ-{self.number():06d}" for _ in range(_CARDS_AT_ONCE)]
                await self.ada.upload_cards(*self._cards)
            return self._cards.pop()

    async def person(self, balance: str = "400") -> Customer:
        """With a card and money."""
        customer = await self.app.register()
        await self.app.link(await self.card(), customer)
        done(await self.bank.top_up(balance, customer, f"stock-{self.number()}"))
        return customer

    async def agent(self, **fields: Any) -> str:
        record = {"agent_type": "super_agent", "name": "Main", "pin": PIN, **fields}
        made = done(await self.ada.post("agents", phone_number=new_phone(), **record))
        return str(made["agent_id"])

    async def pair_of_agents(self) -> Agents:
        top = await self.agent()
        sub = await self.agent(agent_type="sub_agent", parent_agent_id=top)
        done(await self.ada.post(f"agents/{top}/fund", amount="5000"))
        return Agents(top, sub)

    async def shop(self) -> Shop:
        merchant = await self.ada.merchant()
        added = done(await self.ada.post(f"processors/{merchant.id}/terminals", name="Till"))
        return Shop(merchant, added["terminal"]["id"], added["api_key_id"])

    async def alert(self) -> str:
        body = {"alert_type": f"FUZZ_{self.number()}", "details": {"seen": True}}
        return str(done(await self.ada.post("compliance/alerts", **body))["alert_id"])

    async def code_sent_to(self, customer: Customer) -> str:
        """Read where it waits: codes go out in the background."""
        for _ in range(100):
            answer = await self.installation.messenger.get(
                "/api/v1/messages/outbox",
                params={"to": customer.phone},
                auth=self.callers.by_name["service"].auth,
            )
            codes = [one for one in done(answer)["data"] if one["template"] == "one_time_code"]
            if codes:
                return str(codes[0]["parameters"][0])
            await asyncio.sleep(0.05)
        raise AssertionError("no code was sent")

    async def restore_rules(self) -> None:
        """What fuzzing changed for everybody is changed back."""
        done(await self.ada.put("fee-rules", data=self.fees))
        done(await self.ada.put("commission-rules", data=self.commissions))
        kept = {rule["id"] for rule in self.rules}
        for rule in done(await self.ada.get("compliance/rules", limit=100))["data"]:
            if rule["id"] not in kept:
                url = f"/api/v1/compliance/rules/{rule['id']}"
                await self.ada.client.delete(url, auth=self.ada.auth)
        for rule in self.rules:
            given = {name: value for name, value in rule.items() if value is not None}
            answer = await self.ada.put(f"compliance/rules/{rule['id']}", **given)
            if answer.status_code == 404:  # it was deleted
                rule["id"] = done(await self.ada.post("compliance/rules", **given))["id"]
            else:
                done(answer)
        for level, record in self.levels.items():
            done(await self.ada.put(f"account-rules/{level}", **record))


async def stocked(installation: Installation) -> Stock:
    ada = await installation.platform.ada()
    levels = {}
    for level in ("0", "1", "2", "3"):
        answer = await ada.get(f"account-rules/{level}")
        if answer.is_success:
            record = done(answer)
            levels[level] = {name: record[name] for name in _LEVEL if record[name] is not None}
    bank = await ada.partner()
    for _ in range(3):
        await ada.fund_partner(bank, "900000000")
    return Stock(
        installation,
        ada,
        await ada.app(),
        await everybody(installation, ada),
        bank,
        done(await ada.get("compliance/rules", limit=100))["data"],
        done(await ada.get("fee-rules"))["data"],
        done(await ada.get("commission-rules"))["data"],
        levels,
    )


_LEVEL = (
    "max_balance",
    "max_transaction",
    "daily_limit",
    "monthly_limit",
    "no_pin_limit",
    "requirements",
)
