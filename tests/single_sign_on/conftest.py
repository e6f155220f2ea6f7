"""Fixtures for tests of single sign-on: an identity provider, and a gateway that trusts it."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from builders.auth import EMAIL, PASSWORD, Headers
from builders.single_sign_on import SsoClient
from drivers.identity_provider import FakeProvider
from tapgate.core.settings import Settings
from tapgate.http.api.services import Services
from tapgate.server.gateway_installation import create_first_admin


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider().listen() as provider:
        yield provider


@pytest.fixture
def settings(settings: Settings, provider: FakeProvider) -> Settings:
    return settings.replace(oidc=provider.settings)


@pytest.fixture
def sso(client: httpx2.AsyncClient, provider: FakeProvider) -> SsoClient:
    return SsoClient(client, provider)


@pytest.fixture
async def ada(services: Services, client: httpx2.AsyncClient) -> Headers:
    """Create the local system_admin and return its session headers."""
    await create_first_admin(services, EMAIL, PASSWORD)
    response = await client.post("/api/v1/admin/login", json={"email": EMAIL, "password": PASSWORD})
    return {"Authorization": f"Bearer {response.json()['token']}"}
