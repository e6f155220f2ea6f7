"""Existing records, so that requests get past 404.

Fuzzed requests block, lock or close records, or spend their money. Each record is therefore
replaced after a few uses.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

import httpx2

from drivers.actors import (
    Admin,
    App,
    Customer,
    Merchant,
    Partner,
    Record,
    new_phone_number,
    require_success,
)
from fuzz.callers import Callers, create_callers
from fuzz.installation import Installation
from fuzz.owner_callers import FAMILY, create_owner_callers
from harness import PIN

T = TypeVar("T")

_CARD_BATCH_SIZE = 200
_CUSTOMER_COUNT = 24
_MAX_USES_PER_CUSTOMER = 12


@dataclass
class AgentPair:
    """A super-agent with a float, and its sub-agent."""

    super_agent: str
    sub_agent: str


@dataclass
class ProcessorWithTerminal:
    """A processor that may be suspended, with a terminal and a key."""

    merchant: Merchant
    terminal: str
    key: str


class RecyclingPool(Generic[T]):
    """A small record pool, with each record replaced after a number of uses."""

    def __init__(self, create: Callable[[], Awaitable[T]], size: int, max_uses: int) -> None:
        self._create = create
        self._size = size
        self._max_uses = max_uses
        self._items: list[tuple[T, list[int]]] = []

    async def acquire(self, rng: Random) -> T:
        if len(self._items) < self._size:
            created = await self._create()
            self._items.append((created, [0]))
            return created
        index = rng.randrange(len(self._items))
        record, use_count = self._items[index]
        use_count[0] += 1
        if use_count[0] >= self._max_uses:
            del self._items[index]
        return record


@dataclass
class FuzzFixtures:
    installation: Installation
    admin: Admin
    app: App
    callers: Callers
    bank: Partner
    rules: list[Record]
    fees: list[Record]
    commissions: list[Record]
    kyc_levels: dict[str, Record]
    #: They guard nothing that is requested, so that no prerequisite waits for an approval.
    approval_rules: list[Record]
    customers: RecyclingPool[Customer] = field(init=False)
    agents: RecyclingPool[AgentPair] = field(init=False)
    #: An agent that can be paid out.
    payee: str = field(init=False)
    saved_reply: str | None = None
    #: Paths of the lists, from the OpenAPI documents.
    list_paths: set[str] = field(default_factory=set)
    #: Cursors returned by list responses.
    cursors: list[str] = field(default_factory=list)
    #: Texts that no owner may receive: names and phone numbers of customers, and foreign owners.
    canaries: set[str] = field(default_factory=lambda: {FAMILY})
    _cards: list[str] = field(default_factory=list)
    _sequence: Any = field(default_factory=itertools.count)
    _upload_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.customers = RecyclingPool(
            lambda: self.retry_with_restored_rules(self.create_customer),
            _CUSTOMER_COUNT,
            _MAX_USES_PER_CUSTOMER,
        )
        self.agents = RecyclingPool(
            lambda: self.retry_with_restored_rules(self.create_agent_pair), 4, 20
        )

    async def retry_with_restored_rules(self, create: Callable[[], Awaitable[T]]) -> T:
        """Create a record; after a failure, restore the rules and retry, at most 20 times."""
        for _ in range(20):
            try:
                return await create()
            except AssertionError:
                await self.restore_rules()
        return await create()

    def next_number(self) -> int:
        return int(next(self._sequence))

    async def take_card(self) -> str:
        """Return an unlinked card's serial."""
        async with self._upload_lock:
            if not self._cards:
                self._cards = [f"FUZZ-{self.next_number():06d}" for _ in range(_CARD_BATCH_SIZE)]
                await self.admin.upload_cards(*self._cards)
            return self._cards.pop()

    async def create_customer(self, balance: str = "400") -> Customer:
        """Create a customer with a card and a balance."""
        customer = await self.app.register_customer(f"Aminata {FAMILY}")
        self.canaries.add(customer.phone)
        await self.app.link_card(await self.take_card(), customer)
        require_success(await self.bank.top_up(balance, customer, f"stock-{self.next_number()}"))
        return customer

    async def create_agent(self, **fields: Any) -> str:
        record = {"agent_type": "super_agent", "name": "Main", "pin": PIN, **fields}
        record.setdefault("phone_number", new_phone_number())
        created = require_success(await self.admin.post("agents", **record))
        self.canaries |= {created["agent_id"], record["phone_number"]}
        return str(created["agent_id"])

    async def create_agent_pair(self) -> AgentPair:
        super_agent = await self.create_agent()
        sub_agent = await self.create_agent(agent_type="sub_agent", parent_agent_id=super_agent)
        require_success(await self.admin.post(f"agents/{super_agent}/fund", amount="5000"))
        return AgentPair(super_agent, sub_agent)

    async def create_processor(self) -> ProcessorWithTerminal:
        merchant = await self.admin.create_merchant()
        added = require_success(
            await self.admin.post(f"processors/{merchant.id}/terminals", name="Till")
        )
        self.canaries |= {merchant.id, added["terminal"]["id"], added["api_key_id"]}
        return ProcessorWithTerminal(merchant, added["terminal"]["id"], added["api_key_id"])

    async def create_bank_account(self, **owner: str) -> str:
        number = f"{self.next_number():08d}"
        fields = {"holder_name": "Fuzz Ltd", "bank_code": "SLCBSLFR", "number": number}
        created = await self.admin.post("bank-accounts", **owner, **fields)
        return str(require_success(created)["id"])

    async def create_payee(self, checker: httpx2.Auth) -> None:
        """Create an agent with a float whose bank account is verified, like the platform's."""
        self.payee = await self.create_agent(phone_number=new_phone_number())
        require_success(await self.admin.post(f"agents/{self.payee}/fund", amount="90000"))
        owners: list[dict[str, str]] = [{"owner_type": "platform"}, {"owner_id": self.payee}]
        for owner in owners:
            path = f"/api/v1/bank-accounts/{await self.create_bank_account(**owner)}/verify"
            require_success(await self.admin.client.post(path, auth=checker))

    async def wait_for_code(self, phone: str) -> str:
        """Poll the outbox for a one-time code, which is sent in the background."""
        async with asyncio.timeout(60):
            while True:
                response = await self.installation.messenger.get(
                    "/api/v1/messages/outbox",
                    params={"to": phone},
                    auth=self.callers.by_name["service"].auth,
                )
                for item in require_success(response)["data"]:
                    if item["template"] == "one_time_code":
                        return str(item["parameters"][0])
                await asyncio.sleep(0.05)

    async def restore_rules(self) -> None:
        """Restore all rules, because fuzzing may have changed them."""
        require_success(await self.admin.put("fee-rules", data=self.fees))
        require_success(await self.admin.put("commission-rules", data=self.commissions))
        original_ids = {rule["id"] for rule in self.rules}
        for rule in require_success(await self.admin.get("compliance/rules", limit=100))["data"]:
            if rule["id"] not in original_ids:
                url = f"/api/v1/compliance/rules/{rule['id']}"
                await self.admin.client.delete(url, auth=self.admin.auth)
        for rule in self.rules:
            fields = {name: value for name, value in rule.items() if value is not None}
            response = await self.admin.put(f"compliance/rules/{rule['id']}", **fields)
            if response.status_code == 404:  # the rule was deleted
                rule["id"] = require_success(await self.admin.post("compliance/rules", **fields))[
                    "id"
                ]
            else:
                require_success(response)
        for level, record in self.kyc_levels.items():
            require_success(await self.admin.put(f"account-rules/{level}", **record))


async def create_fixtures(installation: Installation) -> FuzzFixtures:
    ada = await installation.deployment.log_in_admin()
    levels = {}
    for level in ("0", "1", "2", "3"):
        response = await ada.get(f"account-rules/{level}")
        if response.is_success:
            record = require_success(response)
            levels[level] = {
                name: record[name] for name in _KYC_LEVEL_FIELDS if record[name] is not None
            }
    bank = await ada.create_partner()
    for _ in range(3):
        await ada.fund_partner(bank, "900000000")
    app = await ada.create_app()
    customer = await ada.create_funded_customer("900", app, f"Aminata {FAMILY}")
    owners = await create_owner_callers(ada, customer)
    callers = await create_callers(installation, ada, owners)
    require_success(await ada.post(f"ledger/days/{installation.first_day}/close"))
    rules = require_success(await ada.put("admin/approval-rules", data=[_APPROVAL_RULE]))["data"]
    fixtures = FuzzFixtures(
        installation,
        ada,
        app,
        callers,
        bank,
        require_success(await ada.get("compliance/rules", limit=100))["data"],
        require_success(await ada.get("fee-rules"))["data"],
        require_success(await ada.get("commission-rules"))["data"],
        levels,
        rules,
    )
    checker = callers.by_name["system_admin"].auth
    assert checker is not None
    await fixtures.create_payee(checker)
    return fixtures


_APPROVAL_RULE = {
    "operation": "agent_fund",
    "above": "900000000",
    "roles": ["system_admin"],
    "approvers": 1,
}
_KYC_LEVEL_FIELDS = (
    "max_balance",
    "max_transaction",
    "daily_limit",
    "monthly_limit",
    "no_pin_limit",
    "requirements",
)
