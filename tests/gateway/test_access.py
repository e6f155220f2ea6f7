"""Every endpoint with every kind of credential, scope and role: exactly the declared ones pass."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tapgate.admin.model import SCOPES
from tapgate.edge.endpoint import ROLES, Endpoint
from tapgate.gateway import NOUNS
from world import World

ENDPOINTS = [endpoint for noun in NOUNS for endpoint in noun]
CLOSED = [endpoint for endpoint in ENDPOINTS if not endpoint.access.public]


def path_of(endpoint: Endpoint) -> str:
    """A path of this endpoint, to something that does not exist."""
    return "/".join("1" if part.startswith("{") else part for part in endpoint.path.split("/"))


async def callers(world: World, endpoint: Endpoint) -> AsyncIterator[tuple[str, Any, bool]]:
    """Every kind of caller: a name for it, its credential, whether it may."""
    access = endpoint.access
    for scope in SCOPES:
        yield f"key {scope}", await world.api_key(scope), access.scope == scope
    if access.scope is not None:
        others = [scope for scope in SCOPES if scope != access.scope]
        yield "key with all other scopes", await world.api_key(*others), False
    for role in ROLES:
        yield f"role {role}", await world.admin(role), role in access.roles
    yield "service", world.service(), access.service
    yield "processor", await world.processor(), access.hmac == "pos"
    yield "partner", await world.partner(), access.hmac == "partner"


@pytest.mark.parametrize("endpoint", CLOSED, ids=lambda e: f"{e.method} {e.path}")
async def test_exactly_the_declared_callers_pass(
    client: httpx2.AsyncClient, world: World, endpoint: Endpoint
) -> None:
    path = path_of(endpoint)
    answer = await client.request(endpoint.method, path, content=b"{}")
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
    async for name, credential, may in callers(world, endpoint):
        answer = await client.request(endpoint.method, path, content=b"{}", auth=credential)
        code = answer.json()["code"] if answer.status_code >= 400 else None
        passed = answer.status_code != 401 and code != "FORBIDDEN"
        assert passed == may, (name, answer.status_code, answer.text)
        assert answer.status_code < 500, (name, answer.text)
        if code == "FORBIDDEN":
            assert answer.json()["details"]["required"]


def test_every_endpoint_says_who_may_call_it() -> None:
    public = {f"{e.method} {e.path}" for e in ENDPOINTS if e.access.public}
    assert public == {
        "POST /api/v1/admin/login",
        "POST /api/v1/admin/refresh",
        "POST /api/v1/webhooks/partners/{partner_id}",  # its body is signed
        "GET /api/v1/statements/{token}",
    }


async def test_a_refusal_is_in_the_audit_log(client: httpx2.AsyncClient, world: World) -> None:
    key = await world.api_key("balance:read")
    answer = await client.get("/api/v1/audit/logs", auth=key)
    assert answer.status_code == 403
    (entry,) = await world.audit("GET /api/v1/audit/logs", "access.denied")
    assert (entry["result"], entry["actor"]["id"]) == ("denied", key.id)
