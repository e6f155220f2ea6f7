"""Fixtures for admin tests: logged-in admins and audit log queries."""

from typing import Any

import httpx2
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, ListAuditEntries, LogIn
from builders.passkeys import PasskeyClient
from tapgate.http.api.services import Services
from tapgate.server.gateway_installation import create_first_admin


@pytest.fixture
def log_in(client: httpx2.AsyncClient) -> LogIn:
    """Return a function that logs in and returns the new session's headers."""

    async def log_in(email: str = EMAIL, password: str = PASSWORD) -> Headers:
        response = await client.post(
            "/api/v1/admin/login", json={"email": email, "password": password}
        )
        assert response.status_code == 200, response.text
        return {"Authorization": f"Bearer {response.json()['token']}"}

    return log_in


@pytest.fixture
async def ada(services: Services, log_in: LogIn) -> Headers:
    """Create the first system_admin and return its session headers."""
    await create_first_admin(services, EMAIL, PASSWORD)
    return await log_in()


@pytest.fixture
async def ben(client: httpx2.AsyncClient, ada: Headers) -> dict[str, Any]:
    """Create a second system_admin and return its record."""
    new = {"email": "ben@example.com", "password": PASSWORD, "name": "Ben", "role": "system_admin"}
    response = await client.post("/api/v1/admin/users", json=new, headers=ada)
    assert response.status_code == 201, response.text
    return dict(response.json())


@pytest.fixture
def list_audit_entries(client: httpx2.AsyncClient, ada: Headers) -> ListAuditEntries:
    """Return a function that lists the audit entries for an event, newest first."""

    async def list_entries(event: str, **filters: str) -> list[dict[str, Any]]:
        response = await client.get(
            "/api/v1/audit/logs", params={"event": event, **filters}, headers=ada
        )
        assert response.status_code == 200, response.text
        return list(response.json()["data"])

    return list_entries


@pytest.fixture
def passkeys(client: httpx2.AsyncClient) -> PasskeyClient:
    return PasskeyClient(client)
