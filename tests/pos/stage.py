"""Words that the tests of points of sale share."""

import itertools
from typing import Any

import httpx2

from tapgate import ids
from world import RequestSignature, World

PAY = "/api/v1/pos/payment"
REFUND = "/api/v1/pos/refund"
VERIFY = "/api/v1/pos/verify-card"
LOOK_UP = "/api/v1/pos/lookup-card"

_numbers = itertools.count(1)


def request_id() -> str:
    return f"request-{next(_numbers)}"


class Shop:
    """A merchant with its key, and a customer with a card."""

    def __init__(self, world: World, till: RequestSignature, customer: dict[str, Any]) -> None:
        self.world = world
        self.till = till
        self.customer = customer
        self.card = ""

    @classmethod
    async def open(cls, world: World, *, balance: str = "1000", **card: Any) -> "Shop":
        customer = await world.subscriber(balance=balance)
        shop = cls(world, await world.processor(), customer)
        shop.card = await world.card(customer["id"], **card)
        return shop

    async def pay(
        self, amount: str = "100.00", *, url: str = PAY, auth: Any = None, **fields: Any
    ) -> httpx2.Response:
        body = {
            "request_id": request_id(),
            "card_serial": self.card,
            "amount": amount,
            **fields,
        }
        return await self.world.client.post(url, json=body, auth=auth or self.till)

    async def refund(
        self, transaction_id: str, amount: str | None = None, *, url: str = REFUND, **fields: Any
    ) -> httpx2.Response:
        body = {
            "request_id": request_id(),
            "original_transaction_id": transaction_id,
            "amount": amount,
            "reason": "returned goods",
            **fields,
        }
        return await self.world.client.post(url, json=body, auth=fields.pop("auth", self.till))

    async def balance(self) -> int:
        """Of the customer, in minor units."""
        found: int = await self.world.services.database.fetchval(
            """SELECT balance FROM accounts a JOIN subscribers s ON s.account_id = a.id
               WHERE s.id = $1""",
            ids.decode(ids.SUBSCRIBER, self.customer["id"]),
        )
        return found

    async def terminal(self, status: str = "active") -> str:
        """A new terminal of this merchant."""
        services, terminal_id = self.world.services, self.world.services.new_id()
        await services.database.execute(
            """INSERT INTO terminals (id, processor_id, name, status, created_at)
               SELECT $1, processor_id, 'Till', $2, now() FROM hmac_keys WHERE id = $3""",
            terminal_id,
            status,
            ids.decode(ids.KEY, self.till.id),
        )
        return ids.encode(ids.TERMINAL, terminal_id)


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]
