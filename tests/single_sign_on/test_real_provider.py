"""Logins and logouts with two identity providers: oidc-provider (Node.js) and Canaille (Python).

`make generators` installs them.
"""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
import pytest

from builders.single_sign_on import LOGIN_URL
from drivers.client_generators import NODE_MODULES
from drivers.identity_provider import ADMIN_GROUP, CLIENT_ID
from drivers.identity_provider import CLIENT_SECRET as ENCODED_SECRET
from harness import Harness, parse_error
from tapgate.core.settings.security import OidcSettings

FOLDER = Path(__file__).parent
MODULE = NODE_MODULES / "oidc-provider" / "lib" / "index.js"
CANAILLE_PYTHON = NODE_MODULES.parents[1] / "canaille" / "bin" / "python"
REDIRECT_URI = "http://127.0.0.1:8000/console/sso/callback"
LOGOUT_URI = "http://127.0.0.1:8000/console/sign-in"
PERSON, PASSWORD = "grace", "any"
MAX_STEPS = 10
#: Canaille does not decode the secret, as RFC 6749 requires, so it has none that needs encoding.
CLIENT_SECRETS = {"oidc-provider": ENCODED_SECRET, "Canaille": "plain-secret"}
HINT = "is not installed: run `make generators`"


class RealProvider(NamedTuple):
    name: str
    settings: OidcSettings


def find_command(name: str) -> list[str]:
    """Return the command that starts a provider; skip the test if it is not installed."""
    if name == "oidc-provider":
        if not MODULE.exists() or shutil.which("node") is None:
            pytest.skip(f"oidc-provider {HINT} (needs npm)")
        return ["node", str(FOLDER / "oidc_provider.mjs")]
    if not CANAILLE_PYTHON.exists():
        pytest.skip(f"Canaille {HINT}")
    return [str(CANAILLE_PYTHON), str(FOLDER / "canaille_provider.py")]


@pytest.fixture(params=["oidc-provider", "Canaille"])
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[RealProvider]:
    environ = {
        "MODULE": str(MODULE),
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRETS[request.param],
        "REDIRECT_URI": REDIRECT_URI,
        "LOGOUT_URI": LOGOUT_URI,
        "GROUP": ADMIN_GROUP,
        "PASSWORD": PASSWORD,
    }
    process = await asyncio.create_subprocess_exec(
        *find_command(request.param),
        env=os.environ | environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            issuer = (await process.stdout.readline()).decode().strip()
        scopes = "openid email profile"
        yield RealProvider(
            request.param,
            OidcSettings(
                issuer=issuer,
                client_id=CLIENT_ID,
                client_secret=CLIENT_SECRETS[request.param],
                role_claim="groups",
                role_map={ADMIN_GROUP: "system_admin"},
                scopes=scopes if request.param == "oidc-provider" else f"{scopes} groups",
            ),
        )
    finally:
        process.kill()
        await process.wait()


async def sign_in(browser: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """Sign in as `grace` and give consent; return the redirect's parameters."""
    response = await browser.get(url)
    for _ in range(MAX_STEPS):
        if response.is_redirect:
            url = urljoin(url, response.headers["Location"])
            if url.startswith(REDIRECT_URI):
                return dict(parse_qsl(urlsplit(url).query))
            response = await browser.get(url)
        else:
            assert response.status_code == 200, response.text
            action = re.search(r'<form[^>]* action="([^"#]+)"', response.text)
            url = urljoin(url, action[1]) if action else url
            # Each provider's login form ignores the other provider's fields.
            prompt = "login" if 'name="login"' in response.text else "consent"
            form = {"prompt": prompt, "login": PERSON, "password": PASSWORD, "answer": "accept"}
            response = await browser.post(url, data=form)
    raise AssertionError(f"no redirect to the console: {url}")


async def log_in(harness: Harness, browser: httpx2.AsyncClient) -> dict[str, str]:
    started = (await harness.post(f"{LOGIN_URL}/start")).json()
    callback = await sign_in(browser, started["authorization_url"])
    return {
        name: value
        for name, value in {**callback, "login_token": started["login_token"]}.items()
        if name in ("login_token", "code", "state", "iss")
    }


async def test_login_with_a_real_provider(harness: Harness) -> None:
    async with httpx2.AsyncClient() as browser:
        login = await log_in(harness, browser)
        assert "iss" in login
        response = await harness.post(LOGIN_URL, json=login)
        assert response.status_code == 200, response.text
        headers = {"Authorization": f"Bearer {response.json()['token']}"}
        me = (await harness.get("/api/v1/admin/me", headers=headers)).json()
        assert (me["email"], me["name"]) == ("grace@example.com", "Grace Hopper")
        assert me["role"] == "system_admin"
        repeated = await harness.post(LOGIN_URL, json=login)
        assert parse_error(repeated) == (401, "UNAUTHORIZED")


async def test_real_provider_rejects_a_code_without_the_verifier_of_its_login(
    harness: Harness, provider: RealProvider
) -> None:
    if provider.name == "Canaille":
        pytest.skip("Canaille's memory backend finds any pending code of the client")
    async with httpx2.AsyncClient() as browser:
        first, second = [(await harness.post(f"{LOGIN_URL}/start")).json() for _ in range(2)]
        codes = [await sign_in(browser, item["authorization_url"]) for item in (first, second)]
        login = {"login_token": first["login_token"], "state": codes[0]["state"]}
        response = await harness.post(LOGIN_URL, json={**login, "code": codes[1]["code"]})
        assert parse_error(response) == (401, "UNAUTHORIZED")


async def test_logout_ends_the_session_at_a_real_provider(
    harness: Harness, provider: RealProvider
) -> None:
    async with httpx2.AsyncClient() as browser:
        response = await harness.post(LOGIN_URL, json=await log_in(harness, browser))
        headers = {"Authorization": f"Bearer {response.json()['token']}"}
        assert not await asks_for_login(harness, browser)
        url = (await harness.get("/api/v1/admin/me/oidc-logout", headers=headers)).json()
        page = await browser.get(url["logout_url"])
        if provider.name == "oidc-provider":
            # It asks for confirmation also with a hint. Its form submits the value of the session.
            assert page.status_code == 200, page.text
            (secret,) = re.findall(r'name="xsrf" value="(\w+)"', page.text)
            (action,) = re.findall(r'action="([^"]+)"', page.text)
            page = await browser.post(action, data={"xsrf": secret, "logout": "yes"})
        assert page.is_redirect, page.text
        assert page.headers["Location"] == LOGOUT_URI
        assert await asks_for_login(harness, browser)


async def test_logout_without_the_id_token_needs_a_confirmation(
    harness: Harness, provider: RealProvider
) -> None:
    """The hint is what lets the provider end the session without a question."""
    if provider.name == "oidc-provider":
        pytest.skip("oidc-provider always asks for confirmation")
    async with httpx2.AsyncClient() as browser:
        response = await harness.post(LOGIN_URL, json=await log_in(harness, browser))
        headers = {"Authorization": f"Bearer {response.json()['token']}"}
        await harness.database.execute("UPDATE sessions SET sealed_id_token = NULL")
        url = (await harness.get("/api/v1/admin/me/oidc-logout", headers=headers)).json()
        page = await browser.get(url["logout_url"])
        assert page.status_code == 200, page.text
        assert not await asks_for_login(harness, browser)


async def asks_for_login(harness: Harness, browser: httpx2.AsyncClient) -> bool:
    """Return whether the provider asks for credentials, and no longer knows the browser."""
    url = (await harness.post(f"{LOGIN_URL}/start")).json()["authorization_url"]
    response = await browser.get(url)
    for _ in range(MAX_STEPS):
        if not response.is_redirect:
            return "password" in response.text or 'name="login"' in response.text
        url = urljoin(url, response.headers["Location"])
        if url.startswith(REDIRECT_URI):
            return False
        response = await browser.get(url)
    raise AssertionError("too many redirects")
