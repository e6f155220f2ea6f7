"""Limits on what an owner can create, also with concurrent requests."""

import asyncio
from typing import Any

import pytest

from builders.approvals import build_rule, set_rules
from builders.participants import create_agent, create_webhook_endpoint
from builders.payouts import create_merchant, post_payout
from cases import each
from harness import BearerAuth, Harness
from tapgate.auth import owner_limits
from tapgate.auth.owners import parse_owner
from tapgate.http.api.owner_access import NEVER
from tapgate.server.gateway import list_endpoints

V1 = "/api/v1"
MAXIMUM = 3


async def send(
    harness: Harness, name: str, owner: str, number: int, auth: BearerAuth
) -> tuple[int, dict[str, Any]]:
    """Create one thing for the owner."""
    webhook = {"url": f"https://shop.example/{number}", "events": ["*"]}
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "webhook_endpoints": ("/admin/webhook-endpoints", {**webhook, "owner_id": owner}),
        "platform_webhook_endpoints": ("/admin/webhook-endpoints", webhook),
        "users": (
            "/admin/users",
            {
                "email": f"user{number}@shop.example",
                "name": "Musa",
                "role": "merchant_cashier",
                "owner_id": owner,
            },
        ),
        "terminals": (f"/processors/{owner}/terminals", {"name": f"Till {number}"}),
        "signing_keys": (f"/processors/{owner}/keys", {}),
        "api_keys": (
            "/admin/api-keys",
            {"name": f"Key {number}", "scopes": ["payments:read"], "owner_id": owner},
        ),
        "float_requests": (f"/agents/{owner}/float-requests", {"amount": "10"}),
        "bank_accounts": (
            "/bank-accounts",
            {
                "owner_id": owner,
                "holder_name": "Shop",
                "bank_code": "SLCBSLFR",
                "number": f"00100200300{number}",
            },
        ),
    }
    if name == "pending_approvals":
        response = await post_payout(harness, owner, auth, amount="1")
    else:
        path, body = requests[name]
        response = await harness.post(V1 + path, json=body, auth=auth)
    return response.status_code, response.json()


LIMITS = {
    limit.name: constant
    for constant, limit in vars(owner_limits).items()
    if isinstance(limit, owner_limits.OwnerLimit)
}


#: Endpoints with which an owner creates something, and their limits.
CREATIONS = {
    "POST /api/v1/processors/{id}/terminals": "terminals",
    "POST /api/v1/processors/{id}/keys": "signing_keys",
    "POST /api/v1/admin/partners/{id}/keys": "signing_keys",
    "POST /api/v1/agents/{id}/float-requests": "float_requests",
    "POST /api/v1/admin/users": "users",
    "POST /api/v1/admin/webhook-endpoints": "webhook_endpoints",
    "POST /api/v1/bank-accounts": "bank_accounts",
    # Limited elsewhere: 20 open requests, 20 passkeys, and the rate limit of test events.
    "POST /api/v1/support/owner-requests": None,
    "POST /api/v1/admin/me/passkeys": None,
    "POST /api/v1/admin/webhook-endpoints/{id}/test": None,
}


def test_everything_that_an_owner_creates_has_a_limit() -> None:
    creating = {
        endpoint.name
        for endpoint in list_endpoints()
        if endpoint.method == "POST" and endpoint.status == 201 and endpoint.owners is not NEVER
    }
    assert creating == CREATIONS.keys()
    assert {name for name in CREATIONS.values() if name} <= LIMITS.keys()


async def create_owner(harness: Harness, name: str) -> str:
    if name != "float_requests":
        return await create_merchant(harness, "1000")
    agent: str = (await create_agent(harness))["id"]
    return agent


@each("name", sorted(LIMITS))
async def test_owner_cannot_exceed_a_limit(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    owner, other = [await create_owner(harness, name) for _ in range(2)]
    auth = await harness.create_admin()
    if name == "pending_approvals":
        await set_rules(harness, build_rule("payouts"))
        auth = await harness.create_owner_user("M", owner)
    before = await count_rows(harness, name, owner)
    limit = getattr(owner_limits, LIMITS[name])
    lowered = limit._replace(maximum=before + MAXIMUM)
    monkeypatch.setattr(owner_limits, LIMITS[name], lowered)
    answers = await asyncio.gather(
        *(send(harness, name, owner, number, auth) for number in range(MAXIMUM + 3))
    )
    statuses = sorted(status for status, _ in answers)
    assert statuses[MAXIMUM:] == [429] * 3, answers
    assert set(statuses[:MAXIMUM]) <= {201, 202}
    rejection = next(body for status, body in answers if status == 429)
    assert rejection["code"] == "RATE_LIMITED"
    assert rejection["details"] == {"limit": name, "maximum": lowered.maximum}
    assert str(lowered.maximum) in rejection["message"]
    assert await count_rows(harness, name, owner) == lowered.maximum
    if name not in ("platform_webhook_endpoints", "pending_approvals"):
        assert (await send(harness, name, other, 9, auth))[0] == 201


async def count_rows(harness: Harness, name: str, owner: str) -> int:
    limit = getattr(owner_limits, LIMITS[name])
    parsed = None if name.startswith("platform") else parse_owner(owner)
    owner_id = 0 if parsed is None else parsed.id
    count: int = await harness.database.fetchval(f"SELECT count(*) FROM {limit.rows}", owner_id)
    return count


async def test_what_exists_above_a_limit_stays(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await create_webhook_endpoint(harness)
    lowered = owner_limits.PLATFORM_WEBHOOK_ENDPOINTS._replace(maximum=1)
    monkeypatch.setattr(owner_limits, "PLATFORM_WEBHOOK_ENDPOINTS", lowered)
    admin = await harness.create_admin()
    assert (await send(harness, "platform_webhook_endpoints", "", 1, admin))[0] == 429
    listed = await harness.get(f"{V1}/admin/webhook-endpoints", auth=admin)
    assert len(listed.json()["data"]) == 3
