"""Idempotency keys belong to an API key and survive its rotation."""

import asyncio
from typing import Any

import httpx2

from admin.test_api_keys import KEYS_URL
from harness import PIN, BearerAuth, Harness
from tapgate import ids

TRANSFER_URL = "/api/v1/wallet/transfer-p2p"


async def _rotate_key(
    world: Harness, key: BearerAuth, admin: BearerAuth, grace: int = 0
) -> BearerAuth:
    url = f"{KEYS_URL}/{key.id}/rotate"
    response = await world.client.post(url, json={"grace_seconds": grace}, auth=admin)
    assert response.status_code == 200, response.text
    return BearerAuth(response.json()["key"], key.id)


async def _build_transfer(world: Harness, request_id: str, sender: str) -> dict[str, Any]:
    recipient = await world.create_subscriber()
    serial = await world.create_card(recipient["id"])
    return {
        "request_id": request_id,
        "sender_id": sender,
        "recipient_card_serial": serial,
        "amount": "10.00",
        "pin": PIN,
    }


async def _get_balance(world: Harness, subscriber_id: str) -> int:
    balance: int = await world.services.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
    )
    return balance


async def test_retry_with_the_rotated_key_returns_the_original_response(world: Harness) -> None:
    sender, admin = await world.create_subscriber(balance="100"), await world.create_admin()
    key = await world.create_api_key("payments:write")
    body = await _build_transfer(world, "one", sender["id"])
    paid = await world.client.post(TRANSFER_URL, json=body, auth=key)
    assert paid.status_code == 200, paid.text
    rotated = await _rotate_key(world, key, admin)
    retried = await world.client.post(TRANSFER_URL, json=body, auth=rotated)
    assert (retried.content, retried.headers["idempotent-replayed"]) == (paid.content, "true")
    assert await _get_balance(world, sender["id"]) == 89_85  # charged once: 10.00 plus the fee


async def test_rotation_with_grace_interrupts_no_payment(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: Harness
) -> None:
    """Both secrets work in concurrent retries across two processes, and each request pays once."""
    await world.disable_compliance_rules()
    sender, admin = await world.create_subscriber(balance="1000"), await world.create_admin()
    keys = [await world.create_api_key("payments:write")]
    bodies = [await _build_transfer(world, f"request-{n}", sender["id"]) for n in range(20)]

    async def pay(body: dict[str, Any], process: httpx2.AsyncClient) -> httpx2.Response:
        return await process.post(TRANSFER_URL, json=body, auth=keys[-1])

    async def rotate() -> None:
        keys.append(await _rotate_key(world, keys[-1], admin, 600))

    responses, _ = await asyncio.gather(
        asyncio.gather(
            *(pay(body, process) for body in bodies for process in (client, other_client))
        ),
        rotate(),
    )
    responses += [await pay(body, client) for body in bodies]
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["transaction_id"] for response in responses}) == 20
    assert await _get_balance(world, sender["id"]) == 1000_00 - 20 * 10_15
