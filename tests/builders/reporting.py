"""Sales, and the reports that show them."""

from typing import Any

from builders.payments import PosDriver
from harness import Harness
from tapgate_client import ids

URL = "/api/v1/overview"


async def create_sales(harness: Harness) -> tuple[PosDriver, str]:
    """Create a payment of 100 and a refund of 40; return the driver and the processor's ID."""
    pos = await PosDriver.create(harness, balance="1000")
    payment = (await pos.pay("100.00")).json()
    assert (await pos.refund(payment["transaction_id"], "40.00")).status_code == 200
    processor_id = await harness.database.fetchval("SELECT id FROM processors")
    return pos, ids.encode(ids.PROCESSOR, processor_id)


async def get_overview(harness: Harness, role: str = "A", **query: str) -> dict[str, Any]:
    response = await harness.get(URL, params=query, auth=await harness.create_admin(role))
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body
