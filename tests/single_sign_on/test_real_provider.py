"""Logins with oidc-provider, an identity provider for Node.js.

`make generators` installs it.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
import pytest

from builders.single_sign_on import LOGIN_URL
from drivers.identity_provider import ADMIN_GROUP, CLIENT_ID, CLIENT_SECRET
from generators.test_client_generators import NODE_MODULES
from harness import Harness, parse_error
from tapgate.oidc_settings import OidcSettings

PROGRAM = Path(__file__).with_name("oidc_provider.mjs")
MODULE = NODE_MODULES / "oidc-provider" / "lib" / "index.js"
REDIRECT_URI = "http://127.0.0.1:8000/console/sso/callback"
LOGOUT_URI = "http://127.0.0.1:8000/console/sign-in"
MAX_STEPS = 10

pytestmark = pytest.mark.skipif(
    not MODULE.exists() or shutil.which("node") is None,
    reason="oidc-provider is not installed: run `make generators` (needs npm)",
)


class NodeProvider(NamedTuple):
    settings: OidcSettings


@pytest.fixture
async def provider() -> AsyncIterator[NodeProvider]:
    environ = {
        "MODULE": str(MODULE),
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRET,
        "REDIRECT_URI": REDIRECT_URI,
        "LOGOUT_URI": LOGOUT_URI,
    }
    process = await asyncio.create_subprocess_exec(
        "node",
        str(PROGRAM),
        env=os.environ | environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            issuer = (await process.stdout.readline()).decode().strip()
        yield NodeProvider(
            OidcSettings(
                issuer=issuer,
                client_id=CLIENT_ID,
                client_secret=CLIENT_SECRET,
                role_claim="groups",
                role_map={ADMIN_GROUP: "system_admin"},
                scopes="openid email profile",
            )
        )
    finally:
        process.kill()
        await process.wait()


async def sign_in(browser: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """Sign in as `grace` and give consent; return the parameters of the redirect."""
    response = await browser.get(url)
    for _ in range(MAX_STEPS):
        if response.is_redirect:
            url = urljoin(url, response.headers["Location"])
            if url.startswith(REDIRECT_URI):
                return dict(parse_qsl(urlsplit(url).query))
            response = await browser.get(url)
        else:
            assert response.status_code == 200, response.text
            prompt = "login" if 'name="login"' in response.text else "consent"
            form = {"prompt": prompt, "login": "grace", "password": "any"}
            response = await browser.post(url, data=form)
    raise AssertionError(f"no redirect to the console: {url}")


async def test_login_with_a_real_provider(harness: Harness) -> None:
    async with httpx2.AsyncClient() as browser:
        started = (await harness.post(f"{LOGIN_URL}/start")).json()
        callback = await sign_in(browser, started["authorization_url"])
        login = {
            name: value
            for name, value in {**callback, "login_token": started["login_token"]}.items()
            if name in ("login_token", "code", "state", "iss")
        }
        assert "iss" in login
        response = await harness.post(LOGIN_URL, json=login)
        assert response.status_code == 200, response.text
        headers = {"Authorization": f"Bearer {response.json()['token']}"}
        me = (await harness.get("/api/v1/admin/me", headers=headers)).json()
        assert (me["email"], me["name"]) == ("grace@example.com", "Grace Hopper")
        assert me["role"] == "system_admin"

        repeated = await harness.post(LOGIN_URL, json=login)
        assert parse_error(repeated) == (401, "UNAUTHORIZED")
        logout = await harness.get("/api/v1/admin/me/oidc-logout", headers=headers)
        page = await browser.get(logout.json()["logout_url"])
        assert page.status_code == 200, page.text

        # The provider rejects a code without the verifier of its own login.
        first, second = [(await harness.post(f"{LOGIN_URL}/start")).json() for _ in range(2)]
        codes = [await sign_in(browser, item["authorization_url"]) for item in (first, second)]
        login = {"login_token": first["login_token"], "state": codes[0]["state"]}
        response = await harness.post(LOGIN_URL, json={**login, "code": codes[1]["code"]})
        assert parse_error(response) == (401, "UNAUTHORIZED")
