"""Words that the tests of partners share."""

import json
from typing import Any

import httpx2

from tapgate import ids, signing
from world import RequestSignature, World

URL = "/api/v1/admin/partners"
FUND = "/api/v1/wallet/fund-from-partner"
UNKNOWN = (ids.encode(ids.PARTNER, 1), "ptn_1", "ptn_" + "u" * 13, "sub_0000000000001", "é")


async def created(world: World, *, balance: str | None = None, **fields: Any) -> dict[str, Any]:
    """What is answered about a new partner."""
    admin = await world.admin()
    answer = await world.client.post(URL, json={"name": "Big Bank", **fields}, auth=admin)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    if balance is not None:
        url = f"{URL}/{body['partner']['id']}/fund"
        assert (await world.client.post(url, json={"amount": balance}, auth=admin)).is_success
    return body


async def suspend(world: World, new: dict[str, Any]) -> None:
    url = f"{URL}/{new['partner']['id']}/suspend"
    answer = await world.client.post(url, auth=await world.admin())
    assert answer.status_code == 200, answer.text


def signed(new: dict[str, Any]) -> RequestSignature:
    """The credential that a new partner was given."""
    return RequestSignature(new["api_key_id"], new["hmac_secret"], new["partner"]["id"])


async def balance_of(world: World, new: dict[str, Any]) -> str:
    answer = await world.client.get(f"{URL}/{new['partner']['id']}", auth=await world.admin())
    return str(answer.json()["balance"])


async def wallet_of(world: World, subscriber: dict[str, Any]) -> str:
    url = f"/api/v1/subscribers/{subscriber['id']}"
    return str((await world.client.get(url, auth=world.service())).json()["balance"])


async def deliver(
    client: httpx2.AsyncClient, new: dict[str, Any], body: object, **headers: str
) -> httpx2.Response:
    """A webhook of a partner, signed unless the headers say otherwise; bytes are sent as given."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    signature = signing.webhook_signature(new["webhook_secret"].encode(), raw)
    return await client.post(
        f"/api/v1/webhooks/partners/{new['partner']['id']}",
        content=raw,
        headers={"X-Webhook-Signature": signature, **headers},
    )


def said(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]
