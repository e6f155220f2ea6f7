"""Card payments and disputes about them."""

from typing import Any

import httpx2

from builders.payments import PosDriver, new_request_id
from harness import Harness
from tapgate_client import ids

DISPUTES_URL = "/api/v1/disputes"


class DisputeDriver(PosDriver):
    """A merchant and a customer who contests payments."""

    async def create_payment(self, amount: str = "100.00", **fields: Any) -> str:
        """Pay by card, and return the transaction ID."""
        response = await self.pay(amount, **fields)
        assert response.status_code == 200, response.text
        return str(response.json()["transaction_id"])

    async def dispute(self, transaction_id: str, *, auth: Any = None, **fields: Any) -> Any:
        body = {
            "transaction_id": transaction_id,
            "reason": "not_received",
            "request_id": new_request_id(),
            **fields,
        }
        auth = auth or self.harness.get_service_auth()
        return await self.harness.post(DISPUTES_URL, json=body, auth=auth)

    async def create_dispute(self, amount: str = "100.00", **fields: Any) -> dict[str, Any]:
        """Pay by card, dispute the payment, and return the dispute."""
        response = await self.dispute(await self.create_payment(amount), **fields)
        assert response.status_code == 201, response.text
        record: dict[str, Any] = response.json()
        return record

    async def act(
        self, dispute: dict[str, Any], verb: str, *, auth: Any = None, **body: Any
    ) -> httpx2.Response:
        """Respond as the merchant, or decide or withdraw as a system_admin."""
        if auth is None:
            auth = self.merchant_auth if verb == "respond" else await self.harness.create_admin()
        url = f"{DISPUTES_URL}/{dispute['id']}/{verb}"
        return await self.harness.post(url, json=body, auth=auth)

    async def get(self, dispute: dict[str, Any], *, auth: Any = None) -> dict[str, Any]:
        response = await self.harness.get(
            f"{DISPUTES_URL}/{dispute['id']}", auth=auth or await self.harness.create_admin("F")
        )
        assert response.status_code == 200, response.text
        record: dict[str, Any] = response.json()
        return record

    async def list_messages(self) -> list[str]:
        """Return the customer's messages about disputes, oldest first."""
        sent = await self.harness.list_pending_messages(
            self.customer["phone_number"], "dispute_updated"
        )
        return [parameters[2] for parameters in reversed(sent)]

    async def empty_merchant(self) -> None:
        """Take the merchant's whole balance away."""
        await self.harness.database.execute(
            "UPDATE accounts SET balance = 0 WHERE kind = 'settlement'"
        )

    async def count_refunds(self, transaction_id: str) -> tuple[int, int]:
        """Return the number of completed refunds of a payment, and their sum in minor units."""
        row = await self.harness.database.fetchrow(
            """SELECT count(*), coalesce(sum(amount), 0)::bigint FROM transactions
               WHERE original_id = $1 AND type = 'refund' AND status = 'completed'""",
            ids.decode(ids.TRANSACTION, transaction_id),
        )
        return row[0], row[1]


async def create_driver(harness: Harness, *, balance: str = "1000") -> DisputeDriver:
    driver = await DisputeDriver.create(harness, balance=balance)
    assert isinstance(driver, DisputeDriver)
    return driver
