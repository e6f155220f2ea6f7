"""Helpers shared by the partner tests."""

import json
from typing import Any

import httpx2

from harness import Harness, HmacAuth
from tapgate import ids, signing

PARTNERS_URL = "/api/v1/admin/partners"
FUND_URL = "/api/v1/wallet/fund-from-partner"
UNKNOWN_IDS = (ids.encode(ids.PARTNER, 1), "ptn_1", "ptn_" + "u" * 13, "sub_0000000000001", "é")


async def create_partner(
    harness: Harness, *, balance: str | None = None, **fields: Any
) -> dict[str, Any]:
    """Create a partner and return the response body."""
    admin = await harness.create_admin()
    response = await harness.client.post(
        PARTNERS_URL, json={"name": "Big Bank", **fields}, auth=admin
    )
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    if balance is not None:
        url = f"{PARTNERS_URL}/{body['partner']['id']}/fund"
        assert (await harness.client.post(url, json={"amount": balance}, auth=admin)).is_success
    return body


async def suspend_partner(harness: Harness, new: dict[str, Any]) -> None:
    url = f"{PARTNERS_URL}/{new['partner']['id']}/suspend"
    response = await harness.client.post(url, auth=await harness.create_admin())
    assert response.status_code == 200, response.text


def get_auth(new: dict[str, Any]) -> HmacAuth:
    """Return the signing credential of a new partner."""
    return HmacAuth(new["api_key_id"], new["hmac_secret"], new["partner"]["id"])


async def get_balance(harness: Harness, new: dict[str, Any]) -> str:
    response = await harness.client.get(
        f"{PARTNERS_URL}/{new['partner']['id']}", auth=await harness.create_admin()
    )
    return str(response.json()["balance"])


async def get_wallet_balance(harness: Harness, subscriber: dict[str, Any]) -> str:
    url = f"/api/v1/subscribers/{subscriber['id']}"
    return str((await harness.client.get(url, auth=harness.get_service_auth())).json()["balance"])


async def post_webhook(
    client: httpx2.AsyncClient, new: dict[str, Any], body: object, **headers: str
) -> httpx2.Response:
    """Send a partner webhook, signed unless `headers` has a signature. Bytes are sent as is."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    signature = signing.webhook_signature(new["webhook_secret"].encode(), raw)
    return await client.post(
        f"/api/v1/webhooks/partners/{new['partner']['id']}",
        content=raw,
        headers={"X-Webhook-Signature": signature, **headers},
    )
