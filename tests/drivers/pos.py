"""Driver and helpers shared by the point-of-sale tests."""

import itertools
from typing import Any

import httpx2

from harness import Harness, HmacAuth
from tapgate import ids

PAY_URL = "/api/v1/pos/payment"
REFUND_URL = "/api/v1/pos/refund"
VERIFY_URL = "/api/v1/pos/verify-card"
LOOKUP_URL = "/api/v1/pos/lookup-card"

_sequence = itertools.count(1)


def new_request_id() -> str:
    return f"request-{next(_sequence)}"


class PosDriver:
    """A merchant with its signing key, and a customer with a card."""

    def __init__(self, harness: Harness, merchant_auth: HmacAuth, customer: dict[str, Any]) -> None:
        self.harness = harness
        self.merchant_auth = merchant_auth
        self.customer = customer
        self.card = ""

    @classmethod
    async def create(cls, harness: Harness, *, balance: str = "1000", **card: Any) -> "PosDriver":
        customer = await harness.create_subscriber(balance=balance)
        pos = cls(harness, await harness.create_processor(), customer)
        pos.card = await harness.create_card(customer["id"], **card)
        return pos

    async def pay(
        self, amount: str = "100.00", *, url: str = PAY_URL, auth: Any = None, **fields: Any
    ) -> httpx2.Response:
        body = {
            "request_id": new_request_id(),
            "card_serial": self.card,
            "amount": amount,
            **fields,
        }
        return await self.harness.client.post(url, json=body, auth=auth or self.merchant_auth)

    async def refund(
        self,
        transaction_id: str,
        amount: str | None = None,
        *,
        url: str = REFUND_URL,
        **fields: Any,
    ) -> httpx2.Response:
        body = {
            "request_id": new_request_id(),
            "original_transaction_id": transaction_id,
            "amount": amount,
            "reason": "returned goods",
            **fields,
        }
        return await self.harness.client.post(
            url, json=body, auth=fields.pop("auth", self.merchant_auth)
        )

    async def get_balance(self) -> int:
        """Return the customer's balance in minor units."""
        balance: int = await self.harness.services.database.fetchval(
            """SELECT balance FROM accounts a JOIN subscribers s ON s.account_id = a.id
               WHERE s.id = $1""",
            ids.decode(ids.SUBSCRIBER, self.customer["id"]),
        )
        return balance

    async def create_terminal(self, status: str = "active") -> str:
        """Create a terminal of this merchant and return its ID."""
        services, terminal_id = self.harness.services, self.harness.services.new_id()
        await services.database.execute(
            """INSERT INTO terminals (id, processor_id, name, status, created_at)
               SELECT $1, processor_id, 'Till', $2, now() FROM hmac_keys WHERE id = $3""",
            terminal_id,
            status,
            ids.decode(ids.KEY, self.merchant_auth.id),
        )
        return ids.encode(ids.TERMINAL, terminal_id)
