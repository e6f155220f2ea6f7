"""Idempotency keys belong to an API key and survive its rotation."""

import asyncio
from typing import Any

import httpx2

from admin.test_api_keys import KEYS_URL
from harness import PIN, BearerAuth, Harness
from tapgate import ids

TRANSFER_URL = "/api/v1/wallet/transfer-p2p"


async def _rotate_key(
    harness: Harness, key: BearerAuth, admin: BearerAuth, grace: int = 0
) -> BearerAuth:
    url = f"{KEYS_URL}/{key.id}/rotate"
    response = await harness.client.post(url, json={"grace_seconds": grace}, auth=admin)
    assert response.status_code == 200, response.text
    return BearerAuth(response.json()["key"], key.id)


async def _build_transfer(harness: Harness, request_id: str, sender: str) -> dict[str, Any]:
    recipient = await harness.create_subscriber()
    serial = await harness.create_card(recipient["id"])
    return {
        "request_id": request_id,
        "sender_id": sender,
        "recipient_card_serial": serial,
        "amount": "10.00",
        "pin": PIN,
    }


async def _get_balance(harness: Harness, subscriber_id: str) -> int:
    balance: int = await harness.services.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
    )
    return balance


async def test_retry_with_the_rotated_key_returns_the_original_response(harness: Harness) -> None:
    sender, admin = await harness.create_subscriber(balance="100"), await harness.create_admin()
    key = await harness.create_api_key("payments:write")
    body = await _build_transfer(harness, "one", sender["id"])
    paid = await harness.client.post(TRANSFER_URL, json=body, auth=key)
    assert paid.status_code == 200, paid.text
    rotated = await _rotate_key(harness, key, admin)
    retried = await harness.client.post(TRANSFER_URL, json=body, auth=rotated)
    assert (retried.content, retried.headers["idempotent-replayed"]) == (paid.content, "true")
    assert await _get_balance(harness, sender["id"]) == 89_85  # charged once: 10.00 plus the fee


async def test_rotation_with_grace_interrupts_no_payment(
    client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    """Both secrets work in concurrent retries across two processes, and each request pays once."""
    await harness.disable_compliance_rules()
    sender, admin = await harness.create_subscriber(balance="1000"), await harness.create_admin()
    keys = [await harness.create_api_key("payments:write")]
    bodies = [await _build_transfer(harness, f"request-{n}", sender["id"]) for n in range(20)]

    async def pay(body: dict[str, Any], process: httpx2.AsyncClient) -> httpx2.Response:
        return await process.post(TRANSFER_URL, json=body, auth=keys[-1])

    async def rotate() -> None:
        keys.append(await _rotate_key(harness, keys[-1], admin, 600))

    responses, _ = await asyncio.gather(
        asyncio.gather(
            *(pay(body, process) for body in bodies for process in (client, other_process_client))
        ),
        rotate(),
    )
    responses += [await pay(body, client) for body in bodies]
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["transaction_id"] for response in responses}) == 20
    assert await _get_balance(harness, sender["id"]) == 1000_00 - 20 * 10_15
