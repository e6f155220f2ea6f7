"""Fixtures for admin tests: logged-in admins and audit log queries."""

from typing import Any

import httpx2
import pytest

from admin.builders import EMAIL, PASSWORD, Headers, ListAuditEntries, LogIn
from tapgate.admin import operations
from tapgate.edge.services import Services


@pytest.fixture
def log_in(client: httpx2.AsyncClient) -> LogIn:
    """Return a function that logs in and returns the headers of the new session."""

    async def log_in(email: str = EMAIL, password: str = PASSWORD) -> Headers:
        answer = await client.post(
            "/api/v1/admin/login", json={"email": email, "password": password}
        )
        assert answer.status_code == 200, answer.text
        return {"Authorization": f"Bearer {answer.json()['token']}"}

    return log_in


@pytest.fixture
async def ada(services: Services, log_in: LogIn) -> Headers:
    """Create the first system_admin and return the headers of its session."""
    await operations.create_first_admin(services, email=EMAIL, password=PASSWORD)
    return await log_in()


@pytest.fixture
async def ben(client: httpx2.AsyncClient, ada: Headers) -> dict[str, Any]:
    """Create a second system_admin and return its record."""
    new = {"email": "ben@example.com", "password": PASSWORD, "name": "Ben", "role": "system_admin"}
    answer = await client.post("/api/v1/admin/users", json=new, headers=ada)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


@pytest.fixture
def entries(client: httpx2.AsyncClient, ada: Headers) -> ListAuditEntries:
    """Return a function that lists the audit entries of an event, newest first."""

    async def entries(event: str, **filters: str) -> list[dict[str, Any]]:
        answer = await client.get(
            "/api/v1/audit/logs", params={"event": event, **filters}, headers=ada
        )
        assert answer.status_code == 200, answer.text
        return list(answer.json()["data"])

    return entries
