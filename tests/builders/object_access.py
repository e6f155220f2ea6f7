"""Callers and requests that reach objects of different owners."""

import json
from typing import Any

import httpx2

from server.gateway.fixtures import (
    V1,
    Caller,
    OwnershipFixtures,
    OwnershipRequest,
    SubscriberFixture,
)
from tapgate.http.api.access import Access
from tapgate.server.gateway import list_endpoints

ACCESS = {endpoint.name: endpoint.access for endpoint in list_endpoints()}


async def send(
    ownership_fixtures: OwnershipFixtures, request: OwnershipRequest, auth: Any
) -> httpx2.Response:
    content = b"" if request.body is None else json.dumps(request.body).encode()
    return await ownership_fixtures.client.request(
        request.method, request.path, content=content, auth=auth
    )


def list_allowed_callers(
    ownership_fixtures: OwnershipFixtures, access: Access, *kinds: str
) -> list[Caller]:
    """Return the allowed callers of these kinds, with only one of the API keys."""
    return [
        caller
        for caller in ownership_fixtures.access_fixtures.callers
        if caller.is_allowed(access)
        and caller.kind in kinds
        and (caller.kind != "api_key" or caller.name == "key with all scopes")
    ]


async def create_verified_admin(
    ownership_fixtures: OwnershipFixtures, person: SubscriberFixture
) -> Any:
    """Return an admin who has verified a one-time code sent to the person's phone."""
    admin = await ownership_fixtures.harness.create_admin()
    url = f"{V1}/subscribers/{person.id}/restricted-access"
    assert (await ownership_fixtures.client.post(url, auth=admin)).status_code == 200
    code = await ownership_fixtures.harness.get_pending_code(person.phone)
    response = await ownership_fixtures.client.post(f"{url}/verify", json={"otp": code}, auth=admin)
    assert response.is_success
    return admin
