"""Sign-in and sign-out with the identity provider in the console."""

import html
import json
import re

import httpx2
import pyotp
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, get_previous_code
from builders.passkeys import PasskeyClient, build_passkey
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from drivers.identity_provider import FakeProvider, Response
from drivers.in_process import AppTransport
from drivers.single_sign_on import CALLBACK, follow_provider, get_next_url
from harness import Harness
from tapgate.server.gateway import create_app

_HIDDEN = re.compile(r'type="hidden" name="(\w+)" value="([^"]*)"')


@pytest.fixture
def console(harness: Harness) -> ConsoleClient:
    return ConsoleClients(harness, AppTransport(create_app(harness.services))).create_signed_out()


async def submit(console: ConsoleClient, page: httpx2.Response, **fields: str) -> httpx2.Response:
    """Submit a page's form, with its hidden fields."""
    hidden = {name: html.unescape(value) for name, value in _HIDDEN.findall(page.text)}
    return await console.post_without_csrf(CALLBACK, {**hidden, **fields})


async def test_sign_in_page_offers_single_sign_on_if_it_is_configured(
    console: ConsoleClient, harness: Harness
) -> None:
    page = await console.get_page_text("/console/sign-in?to=/console/agents")
    assert 'href="/console/sso/start?to=/console/agents"' in page.replace("%2F", "/")
    services = harness.services
    services.settings = services.settings.replace(oidc=None)
    services.authenticator.oidc = None
    assert "sso/start" not in await console.get_page_text("/console/sign-in")
    assert (await console.get("/console/sso/start")).status_code == 404


async def test_sign_in_opens_the_requested_page(
    console: ConsoleClient, provider: FakeProvider
) -> None:
    response = await follow_provider(console, provider, "/console/agents?status=active")
    assert response.status_code == 200
    assert get_next_url(response) == "/console/agents?status=active"
    assert "Content-Security-Policy" in response.headers
    page = await console.get_page_text("/console/account")
    assert "Grace, grace@example.com" in page
    assert "single sign-on" in page
    assert "Change your password" not in page


async def test_list_of_administrators_shows_single_sign_on(
    console: ConsoleClient, provider: FakeProvider, ada: Headers
) -> None:
    await follow_provider(console, provider)
    page = await console.get_page_text("/console/administrators")
    assert page.count('<span class="badge">single sign-on</span>') == 1


async def test_sign_in_cookie_is_sent_when_the_provider_redirects(
    console: ConsoleClient,
) -> None:
    started = await console.client.get("/console/sso/start")
    assert "SameSite=Lax" in started.headers["Set-Cookie"]
    assert "HttpOnly" in started.headers["Set-Cookie"]


async def test_another_site_cannot_start_a_sign_in(
    console: ConsoleClient, provider: FakeProvider
) -> None:
    address = "/console/sso/start?to=/console/agents"
    for site in ("cross-site", "same-site"):
        response = await console.client.get(address, headers={"Sec-Fetch-Site": site})
        assert response.headers["Location"] == "/console/sign-in?to=%2Fconsole%2Fagents"
        assert "Set-Cookie" not in response.headers
    started = await console.client.get(address, headers={"Sec-Fetch-Site": "same-origin"})
    assert started.headers["Location"].startswith(provider.issuer)


async def test_long_path_opens_the_home_page(
    console: ConsoleClient, provider: FakeProvider
) -> None:
    """A browser would ignore the cookie with the path."""
    response = await follow_provider(console, provider, "/console/agents?q=" + "x" * 4000)
    assert get_next_url(response) == "/console"


@each("to", ["https://evil.example.com", "//evil.example.com", "/\\evil.example.com", "evil"])
async def test_sign_in_never_leads_to_another_site(
    console: ConsoleClient, provider: FakeProvider, to: str
) -> None:
    assert get_next_url(await follow_provider(console, provider, to)).startswith("/console")


async def test_callback_without_the_cookie_is_refused(
    console: ConsoleClient, provider: FakeProvider, harness: Harness
) -> None:
    started = await console.client.get("/console/sso/start")
    callback = provider.authorize(started.headers["Location"])
    console.client.cookies.clear()
    refused = await console.client.get(CALLBACK, params=callback)
    assert refused.status_code == 422
    assert "another browser" in refused.text
    assert await harness.database.fetchval("SELECT count(*) FROM sessions") == 0


@each(
    "query, message",
    [
        ({"error": "access_denied", "error_description": "<b>text</b>"}, "was canceled"),
        ({"error": "server_error"}, "The sign-in failed"),
        ({}, "another browser"),
        ({"code": "x", "state": "x"}, "another browser"),
    ],
)
async def test_failed_callback_shows_the_sign_in_page(
    console: ConsoleClient, query: dict[str, str], message: str
) -> None:
    response = await console.client.get(CALLBACK, params=query)
    assert response.status_code in (400, 401, 403, 422)
    assert message in response.text
    assert "text</b>" not in response.text
    assert 'name="password"' in response.text


async def test_person_without_role_sees_why(console: ConsoleClient, provider: FakeProvider) -> None:
    provider.claims = {"groups": []}
    response = await follow_provider(console, provider)
    assert response.status_code == 403
    assert "no role in Tapgate" in response.text


async def test_password_form_remains_usable_while_the_provider_is_down(
    console: ConsoleClient, provider: FakeProvider, ada: Headers
) -> None:
    provider.responses = {"/.well-known/openid-configuration": Response(503)}
    response = await console.client.get("/console/sso/start")
    assert response.status_code == 503
    assert "not available" in response.text
    assert (await console.sign_in(EMAIL, PASSWORD)).status_code == 303


async def test_second_factor_is_required(
    console: ConsoleClient, provider: FakeProvider, harness: Harness
) -> None:
    await follow_provider(console, provider)
    headers = {"Authorization": f"Bearer {console.session}"}
    started = (await harness.post("/api/v1/admin/me/totp", headers=headers)).json()
    app = pyotp.TOTP(started["secret"])
    code = get_previous_code(harness.services, app)
    await harness.post("/api/v1/admin/me/totp/confirm", json={"code": code}, headers=headers)

    page = await follow_provider(console, provider, "/console/agents")
    assert (page.status_code, 'name="otp"' in page.text) == (403, True)
    wrong = await submit(console, page, otp="000000")
    assert (wrong.status_code, "code is wrong" in wrong.text) == (400, True)
    signed_in = await submit(console, wrong, otp=app.at(harness.services.clock()))
    assert signed_in.headers["Location"] == "/console/agents"


async def test_passkey_is_accepted_as_second_factor(
    console: ConsoleClient, provider: FakeProvider, harness: Harness
) -> None:
    await follow_provider(console, provider)
    headers, passkeys = (
        {"Authorization": f"Bearer {console.session}"},
        PasskeyClient(harness.client),
    )
    passkey = build_passkey()
    options = (await passkeys.start_enrollment(headers, password=None)).json()
    await passkeys.submit(headers, passkey.create(options))

    page = await follow_provider(console, provider)
    assert "data-passkey-proof" in page.text and "Use a recovery code" in page.text
    assert "authenticator app" not in page.text
    rejected = await submit(console, page, credential="nonsense")
    assert rejected.status_code in (400, 422)
    page = await follow_provider(console, provider)
    credential = json.dumps(passkey.get(await passkeys.get_options()))
    signed_in = await submit(console, page, credential=credential)
    assert signed_in.headers["Location"] == "/console"


async def test_local_account_is_linked_with_its_password(
    console: ConsoleClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await harness.create_admin()
    provider.claims = {"email": EMAIL}
    page = await follow_provider(console, provider)
    assert (page.status_code, 'name="password"' in page.text) == (409, True)
    wrong = await submit(console, page, password="not the password")
    assert (wrong.status_code, "Incorrect" in wrong.text) == (401, True)
    signed_in = await submit(console, wrong, password=PASSWORD)
    assert signed_in.headers["Location"] == "/console"
    assert EMAIL in await console.get_page_text("/console/account")


async def test_linking_asks_for_the_second_factor_without_showing_the_password(
    console: ConsoleClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await harness.create_admin()
    started = (await harness.post("/api/v1/admin/me/totp", headers=ada)).json()
    app = pyotp.TOTP(started["secret"])
    code = get_previous_code(harness.services, app)
    await harness.post("/api/v1/admin/me/totp/confirm", json={"code": code}, headers=ada)
    provider.claims = {"email": EMAIL}
    page = await submit(console, await follow_provider(console, provider), password=PASSWORD)
    assert (page.status_code, 'name="otp"' in page.text) == (403, True)
    assert PASSWORD not in page.text
    signed_in = await submit(console, page, otp=app.at(harness.services.clock()))
    assert signed_in.status_code == 303


async def test_session_that_may_only_enroll_opens_the_account_page(
    console: ConsoleClient,
    provider: FakeProvider,
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(harness.services.authenticator.factors, "is_required", True)
    response = await follow_provider(console, provider)
    assert get_next_url(response) == "/console/account"


async def test_sign_out_ends_the_session_at_the_provider(
    console: ConsoleClient, provider: FakeProvider
) -> None:
    await follow_provider(console, provider)
    response = await console.post_form("/console/sign-out")
    assert get_next_url(response).startswith(f"{provider.issuer}/logout?")
    assert response.headers["Clear-Site-Data"] == '"storage"'
    assert not console.session


async def test_sign_out_without_logout_page_opens_the_sign_in_page(
    console: ConsoleClient, provider: FakeProvider
) -> None:
    provider.metadata = {"end_session_endpoint": None}
    await follow_provider(console, provider)
    response = await console.post_form("/console/sign-out")
    assert response.headers["Location"] == "/console/sign-in"
