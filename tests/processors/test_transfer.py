"""Transfers from a processor's settlement account to a subscriber."""

import httpx2

from builders.participants import (
    PROCESSORS_URL,
    SUSPEND_BODY,
    create_processor,
    deposit_to_processor,
)
from cases import each
from harness import Harness
from tapgate import ids


async def _create_funded_processor(harness: Harness, amount: str = "100") -> str:
    """Create a processor with a balance and return the URL of its transfers."""
    processor_id: str = (await create_processor(harness))["processor_id"]
    await deposit_to_processor(harness, processor_id, amount)
    return f"{PROCESSORS_URL}/{processor_id}/transfer"


async def test_transfer_receipt_shows_the_remaining_balance(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    url, customer = (
        await _create_funded_processor(harness, "2000"),
        await harness.create_subscriber(),
    )
    body = {"subscriber_id": customer["id"], "amount": "750", "description": "Prize"}
    response = await client.post(url, json=body, auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    receipt = response.json()
    transaction_id = ids.decode(ids.TRANSACTION, receipt.pop("transaction_id"))
    assert receipt == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "750.00 SLE",
        "processor_balance": "1,250.00 SLE",
    }
    row = await harness.services.database.fetchrow(
        "SELECT type, channel, fee_amount, context FROM transactions WHERE id = $1", transaction_id
    )
    assert row is not None
    assert tuple(row) == ("processor_transfer", "admin", 0, {"memo": "Prize"})
    subscriber = await client.get(
        f"/api/v1/subscribers/{customer['id']}", auth=harness.get_service_auth()
    )
    assert subscriber.json()["balance"] == "750.00"


async def test_suspended_processor_cannot_transfer(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    url, admin = await _create_funded_processor(harness), await harness.create_admin()
    customer = await harness.create_subscriber()
    await client.post(url.replace("/transfer", "/suspend"), json=SUSPEND_BODY, auth=admin)
    body = {"subscriber_id": customer["id"], "amount": "1"}
    response = await client.post(url, json=body, auth=admin)
    assert (response.status_code, response.json()["code"]) == (403, "PROCESSOR_SUSPENDED")
    assert response.json()["details"] == {"party": "sender"}


@each("id", [ids.encode(ids.SUBSCRIBER, 1), "sub_1", "x"])
async def test_unknown_subscriber_is_not_found(
    client: httpx2.AsyncClient, harness: Harness, id: str
) -> None:
    body = {"subscriber_id": id, "amount": "1"}
    response = await client.post(
        await _create_funded_processor(harness), json=body, auth=await harness.create_admin()
    )
    assert (response.status_code, response.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")
