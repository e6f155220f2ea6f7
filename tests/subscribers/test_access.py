"""Who may do what: every endpoint with every kind of credential."""

from typing import Any, NamedTuple

import httpx2
import pytest

from world import PIN, World

URL = "/api/v1/subscribers"

WRITE, READ = "subscribers:write", "subscribers:read"


class Allowed(NamedTuple):
    """Who may call an endpoint, as the interface has it."""

    method: str
    path: str
    body: Any
    scope: str | None
    roles: str
    service: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ENDPOINTS = [
    Allowed("POST", "", {}, WRITE, "AS", True),
    Allowed("GET", "", None, READ, "ACSF", True),
    Allowed("GET", "/{id}", None, READ, "ACSF", True),
    Allowed("PUT", "/{id}", {}, WRITE, "ACS", False),
    Allowed("POST", "/{id}/block", {"reason": "r"}, WRITE, "ACS", False),
    Allowed("POST", "/{id}/unblock", None, WRITE, "AC", False),
    Allowed("POST", "/{id}/close", {"reason": "r"}, None, "A", False),
    Allowed("POST", "/{id}/verify-pin", {"pin": PIN}, WRITE, "AS", True),
    Allowed("POST", "/{id}/change-pin", {"old_pin": PIN, "new_pin": PIN}, WRITE, "AS", True),
    Allowed("POST", "/{id}/reset-pin", None, None, "AS", True),
    Allowed("POST", "/{id}/reset-pin/confirm", {"otp": "123456", "new_pin": PIN}, None, "AS", True),
    Allowed("POST", "/{id}/restricted-access", None, None, "ACSF", False),
    Allowed("POST", "/{id}/restricted-access/verify", {"otp": "123456"}, None, "ACSF", False),
]


@pytest.mark.parametrize("allowed", ENDPOINTS, ids=str)
async def test_who_may(client: httpx2.AsyncClient, world: World, allowed: Allowed) -> None:
    record = await world.subscriber()
    url = URL + allowed.path.format(id=record["id"])
    other_scopes = {WRITE, READ, "payments:write", "cards:write"} - {allowed.scope}
    callers: list[tuple[Any, bool]] = [
        (await world.api_key(*other_scopes), False),
        (world.service(), allowed.service),
        *[(await world.admin(role), role in allowed.roles) for role in "ACSF"],
    ]
    if allowed.scope is not None:
        callers.append((await world.api_key(allowed.scope), True))
    for caller, may in callers:
        answer = await client.request(allowed.method, url, json=allowed.body, auth=caller)
        forbidden = answer.status_code == 403 and answer.json()["code"] == "FORBIDDEN"
        assert forbidden is not may, (caller.id, answer.text)
        assert may or answer.json()["details"]["required"]


async def test_nobody_may_without_a_credential(client: httpx2.AsyncClient) -> None:
    for allowed in ENDPOINTS:
        url = URL + allowed.path.format(id="sub_1")
        answer = await client.request(allowed.method, url, json=allowed.body)
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
