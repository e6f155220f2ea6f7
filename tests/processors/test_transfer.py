"""Transfers from a processor's settlement account to a subscriber."""

import asyncio
from typing import Any

import httpx2
import pytest

from harness import Harness
from processors.builders import PROCESSORS_URL, SUSPEND_BODY, create_processor, deposit
from tapgate import ids


async def _create_funded_processor(world: Harness, amount: str = "100") -> str:
    """Create a processor with a balance and return the URL of its transfers."""
    processor_id: str = (await create_processor(world))["processor_id"]
    await deposit(world, processor_id, amount)
    return f"{PROCESSORS_URL}/{processor_id}/transfer"


async def test_transfer_receipt_shows_the_remaining_balance(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    url, customer = await _create_funded_processor(world, "2000"), await world.create_subscriber()
    order = {"subscriber_id": customer["id"], "amount": "750", "description": "Prize"}
    answer = await client.post(url, json=order, auth=await world.create_admin("F"))
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    transaction = ids.decode(ids.TRANSACTION, receipt.pop("transaction_id"))
    assert receipt == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "750.00 SLE",
        "processor_balance": "1,250.00 SLE",
    }
    row = await world.services.database.fetchrow(
        "SELECT type, channel, fee_amount, context FROM transactions WHERE id = $1", transaction
    )
    assert row is not None
    assert tuple(row) == ("processor_transfer", "admin", 0, {"memo": "Prize"})
    shown = await client.get(f"/api/v1/subscribers/{customer['id']}", auth=world.get_service_auth())
    assert shown.json()["balance"] == "750.00"


async def test_replayed_transfer_moves_no_money(client: httpx2.AsyncClient, world: Harness) -> None:
    url, customer, admin = (
        await _create_funded_processor(world),
        await world.create_subscriber(),
        await world.create_admin(),
    )
    order = {"subscriber_id": customer["id"], "amount": "10", "request_id": "one"}
    first, again = [await client.post(url, json=order, auth=admin) for _ in range(2)]
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await client.post(url, json=order | {"amount": "11"}, auth=admin)
    assert (other.status_code, other.json()["code"]) == (409, "DUPLICATE_REQUEST")


async def test_transfer_above_the_balance_is_declined(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    url, customer = await _create_funded_processor(world), await world.create_subscriber()
    order = {"subscriber_id": customer["id"], "amount": "100.01"}
    answer = await client.post(url, json=order, auth=await world.create_admin())
    assert (answer.status_code, answer.json()["code"]) == (402, "INSUFFICIENT_FUNDS")
    assert answer.json()["details"] == {"available": 100.0, "required": 100.01}


async def test_concurrent_transfers_cannot_overdraw_the_processor(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: Harness
) -> None:
    url, customer, admin = (
        await _create_funded_processor(world),
        await world.create_subscriber(),
        await world.create_admin(),
    )
    order = {"subscriber_id": customer["id"], "amount": "30"}
    answers = await asyncio.gather(
        *(process.post(url, json=order, auth=admin) for process in [client, other_client] * 5)
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [402] * 7
    record = await client.get(url.removesuffix("/transfer"), auth=admin)
    assert record.json()["balance"] == "10.00"


async def test_status_and_limit_violations_decline_the_transfer(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    url, admin = await _create_funded_processor(world, "600000"), await world.create_admin()
    customer = await world.create_subscriber()

    async def refused(amount: str = "1") -> Any:
        order = {"subscriber_id": customer["id"], "amount": amount}
        answer = await client.post(url, json=order, auth=admin)
        return answer.status_code, answer.json()["code"], answer.json().get("details")

    status, code, details = await refused("500000.01")
    assert (status, code) == (403, "MAX_BALANCE_EXCEEDED")
    assert details["party"] == "receiver"
    await client.post(f"/api/v1/subscribers/{customer['id']}/block", json=SUSPEND_BODY, auth=admin)
    assert await refused() == (403, "SUBSCRIBER_BLOCKED", {"party": "receiver"})
    await client.post(url.replace("/transfer", "/suspend"), json=SUSPEND_BODY, auth=admin)
    assert await refused() == (403, "PROCESSOR_SUSPENDED", {"party": "sender"})


@pytest.mark.parametrize("id", [ids.encode(ids.SUBSCRIBER, 1), "sub_1", "x"])
async def test_unknown_subscriber_is_not_found(
    client: httpx2.AsyncClient, world: Harness, id: str
) -> None:
    order = {"subscriber_id": id, "amount": "1"}
    answer = await client.post(
        await _create_funded_processor(world), json=order, auth=await world.create_admin()
    )
    assert (answer.status_code, answer.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")


async def test_transfer_to_a_restricted_subscriber_requires_an_otp(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    """A balance limit decline would reveal the subscriber's balance."""
    url, customer = (
        await _create_funded_processor(world, "600000"),
        await world.create_restricted_subscriber(),
    )
    await world.deposit(customer["id"], "1234.50")
    order = {"subscriber_id": customer["id"], "amount": "500000"}
    for role in "AF":
        answer = await client.post(url, json=order, auth=await world.create_admin(role))
        assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED")
        assert "1234.50" not in answer.text
