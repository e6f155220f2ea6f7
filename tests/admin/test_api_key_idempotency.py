"""An API key is the owner of its idempotency keys and keeps them when it is rotated."""

import asyncio
from typing import Any

import httpx2

from admin.test_api_keys import KEYS
from tapgate import ids
from world import PIN, Bearer, World

PAY = "/api/v1/wallet/transfer-p2p"


async def _rotate(world: World, key: Bearer, admin: Bearer, grace: int = 0) -> Bearer:
    url = f"{KEYS}/{key.id}/rotate"
    response = await world.client.post(url, json={"grace_seconds": grace}, auth=admin)
    assert response.status_code == 200, response.text
    return Bearer(response.json()["key"], key.id)


async def _transfer(world: World, request_id: str, sender: str) -> dict[str, Any]:
    recipient = await world.subscriber()
    serial = await world.card(recipient["id"])
    return {
        "request_id": request_id,
        "sender_id": sender,
        "recipient_card_serial": serial,
        "amount": "10.00",
        "pin": PIN,
    }


async def _balance(world: World, subscriber_id: str) -> int:
    balance: int = await world.services.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
    )
    return balance


async def test_retry_with_the_rotated_key_replays(world: World) -> None:
    sender, admin = await world.subscriber(balance="100"), await world.admin()
    key = await world.api_key("payments:write")
    body = await _transfer(world, "one", sender["id"])
    paid = await world.client.post(PAY, json=body, auth=key)
    assert paid.status_code == 200, paid.text
    rotated = await _rotate(world, key, admin)
    retried = await world.client.post(PAY, json=body, auth=rotated)
    assert (retried.content, retried.headers["idempotent-replayed"]) == (paid.content, "true")
    assert await _balance(world, sender["id"]) == 89_85  # 10.00 and the fee, once


async def test_rotation_with_grace_interrupts_no_payment(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    """Both secrets pay, in parallel retries over two processes, and every request pays once."""
    await world.without_compliance_rules()
    sender, admin = await world.subscriber(balance="1000"), await world.admin()
    keys = [await world.api_key("payments:write")]
    bodies = [await _transfer(world, f"request-{n}", sender["id"]) for n in range(20)]

    async def pay(body: dict[str, Any], process: httpx2.AsyncClient) -> httpx2.Response:
        return await process.post(PAY, json=body, auth=keys[-1])

    async def rotate() -> None:
        keys.append(await _rotate(world, keys[-1], admin, 600))

    responses, _ = await asyncio.gather(
        asyncio.gather(
            *(pay(body, process) for body in bodies for process in (client, other_client))
        ),
        rotate(),
    )
    responses += [await pay(body, client) for body in bodies]
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["transaction_id"] for response in responses}) == 20
    assert await _balance(world, sender["id"]) == 1000_00 - 20 * 10_15
