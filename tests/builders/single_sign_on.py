"""Logins with an identity provider, over HTTP."""

from typing import Any

import httpx2

from builders.auth import Headers
from drivers.identity_provider import FakeProvider

LOGIN_URL = "/api/v1/admin/login/oidc"
VERIFICATION_URL = "/api/v1/admin/me/step-up/oidc"


class SsoClient:
    """Client of one browser that signs in with the provider."""

    def __init__(self, client: httpx2.AsyncClient, provider: FakeProvider) -> None:
        self._client = client
        self._provider = provider

    async def start(self) -> dict[str, str]:
        """Start a login, sign in at the provider, and return the body that completes the login."""
        response = await self._client.post(f"{LOGIN_URL}/start")
        assert response.status_code == 200, response.text
        started = response.json()
        callback = self._provider.authorize(started["authorization_url"])
        return {"login_token": started["login_token"], **callback}

    async def complete(self, login: dict[str, str], **fields: Any) -> httpx2.Response:
        return await self._client.post(LOGIN_URL, json={**login, **fields})

    async def log_in(self, **fields: str) -> httpx2.Response:
        return await self.complete(await self.start(), **fields)

    async def require_login(self, **claims: Any) -> Headers:
        """Log in with these claims and return the session headers."""
        self._provider.claims = claims
        response = await self.log_in()
        assert response.status_code == 200, response.text
        return {"Authorization": f"Bearer {response.json()['token']}"}

    async def start_verification(self, headers: Headers) -> dict[str, str]:
        """Start to verify a session, sign in again, and return the body that completes it."""
        response = await self._client.post(f"{VERIFICATION_URL}/start", headers=headers)
        assert response.status_code == 200, response.text
        started = response.json()
        callback = self._provider.authorize(started["authorization_url"])
        return {"login_token": started["login_token"], **callback}

    async def verify(
        self, headers: Headers, verification: dict[str, str] | None = None
    ) -> httpx2.Response:
        """Verify a session by signing in again."""
        body = verification or await self.start_verification(headers)
        return await self._client.post(VERIFICATION_URL, json=body, headers=headers)
