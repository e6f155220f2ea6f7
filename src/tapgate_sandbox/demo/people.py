"""Demo residents, agents, merchants and terminals, as the simulation tracks them."""

from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.ledger.pins.pin_verifier import is_weak_pin
from tapgate_client import ids
from tapgate_client.schemas.subscribers import SubscriberCategory
from tapgate_sandbox.demo.country import Merchant, Person
from tapgate_sandbox.demo.signing_cards import SigningCards


@dataclass(slots=True, kw_only=True)
class ChildCard:
    serial: str
    pin: str
    daily_limit: int


@dataclass(slots=True, kw_only=True)
class Resident:
    """A subscriber, with the balance from the ledger's latest result."""

    number: int
    person: Person
    pin: str
    serial: str
    category: SubscriberCategory
    kyc_level: int
    activity: float
    salary: int  # per month, in minor units; 0 for none
    agent: "Agent"
    friends: "list[Resident]" = field(default_factory=list)
    child_cards: list[ChildCard] = field(default_factory=list)
    card_expires_at: datetime | None = None
    id: int = 0
    account_id: int = 0
    balance: int = 0
    transactions_today: int = 0
    is_active: bool = True

    @property
    def public_id(self) -> str:
        return ids.encode(ids.SUBSCRIBER, self.id)

    @property
    def payday(self) -> int:
        """Day of the month on which the salary is paid; varies between residents."""
        return 1 + self.number % 28


@dataclass(slots=True, kw_only=True)
class Agent:
    name: str
    business_name: str | None
    pin: str
    tier: int
    parent: "Agent | None" = None
    id: int = 0
    balance: int = 0
    commission: int = 0

    @property
    def public_id(self) -> str:
        return ids.encode(ids.AGENT, self.id)


@dataclass(slots=True, kw_only=True)
class Terminal:
    id: int
    key: NewHmacKey

    @property
    def public_id(self) -> str:
        return ids.encode(ids.TERMINAL, self.id)

    @property
    def key_id(self) -> str:
        return ids.encode(ids.KEY, self.key.id)


@dataclass(slots=True, kw_only=True)
class Shop:
    merchant: Merchant
    id: int
    key: NewHmacKey
    terminals: list[Terminal]
    unpaid_takings: int = 0  # not yet paid out to the owner

    @property
    def key_id(self) -> str:
        return ids.encode(ids.KEY, self.key.id)


@dataclass(slots=True, kw_only=True)
class Country:
    """All demo participants; people in the examples come first in each list."""

    residents: list[Resident]
    agents: list[Agent]
    shops: list[Shop]
    partner_id: int
    signing_cards: SigningCards

    @property
    def super_agents(self) -> list[Agent]:
        return [agent for agent in self.agents if agent.parent is None]


_DIGITS: Final = "0123456789"


def draw_pin(rng: Random) -> str:
    """Draw a random PIN that is not weak, so that every configuration accepts it."""
    while True:
        pin = "".join(rng.choices(_DIGITS, k=4))
        if not is_weak_pin(pin):
            return pin
