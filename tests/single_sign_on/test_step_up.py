"""Sensitive actions in sessions of single sign-on: a new sign-in, or a second factor."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from builders.auth import Headers, enroll_app
from builders.single_sign_on import LOGIN_URL, VERIFICATION_URL, SsoClient
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from drivers.identity_provider import FakeProvider
from drivers.in_process import AppTransport
from drivers.single_sign_on import CALLBACK, follow_provider, get_next_url
from harness import Harness, parse_error
from tapgate.server.gateway import create_app
from tapgate_client import ids

ME = "/api/v1/admin/me"
KEYS_URL = "/api/v1/admin/api-keys"
NEW_KEY = {"name": "Reports", "scopes": ["payments:read"]}


async def create_key(harness: Harness, headers: Headers) -> httpx2.Response:
    return await harness.post(KEYS_URL, json=NEW_KEY, headers=headers)


async def age_sessions(harness: Harness) -> None:
    """Let sessions and verifications be older than 15 minutes."""
    await harness.database.execute(
        """UPDATE sessions SET created_at = created_at - interval '15 minutes 1 second',
           factor_at = factor_at - interval '15 minutes 1 second'"""
    )
    async with harness.services.transaction() as tx:
        await harness.services.authenticator.sessions.publish_change(tx)


async def test_sensitive_action_needs_a_new_sign_in(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    refused = await create_key(harness, headers)
    assert parse_error(refused) == (403, "OTP_REQUIRED")
    assert refused.json()["details"] == {"methods": ["sso"]}

    verified = await sso.verify(headers)
    assert verified.status_code == 200, verified.text
    assert verified.json()["verified_until"]
    assert (await create_key(harness, headers)).status_code == 201
    admin_id = (await harness.get(ME, headers=headers)).json()["id"]
    (entry,) = await harness.list_audit_entries(admin_id, "admin.factor_verified")
    assert entry["reason"] == "Single sign-on"

    await age_sessions(harness)
    assert parse_error(await create_key(harness, headers)) == (403, "OTP_REQUIRED")


async def test_provider_must_ask_for_the_credentials_again(
    sso: SsoClient, harness: Harness
) -> None:
    headers = await sso.require_login()
    started = (await harness.post(f"{VERIFICATION_URL}/start", headers=headers)).json()
    query = parse_qs(urlsplit(started["authorization_url"]).query)
    assert (query["prompt"], query["max_age"]) == (["login"], ["0"])


@each("seconds", [61, 900, 86_400])
async def test_earlier_sign_in_is_rejected(
    sso: SsoClient, provider: FakeProvider, harness: Harness, seconds: int
) -> None:
    headers = await sso.require_login()
    provider.claims = {"auth_time": lambda now: now - seconds - 5}
    body = await sso.start_verification(headers)
    assert parse_error(await sso.verify(headers, body)) == (400, "INVALID_OTP")
    assert parse_error(await create_key(harness, headers)) == (403, "OTP_REQUIRED")
    admin_id = (await harness.get(ME, headers=headers)).json()["id"]
    *_, entry = await harness.list_audit_entries(admin_id, "admin.factor_verified")
    assert (entry["result"], "auth_time" in entry["reason"]) == ("failure", True)


@each("auth_time", ["now", True, float("nan"), [1]])
async def test_malformed_time_of_the_sign_in_is_rejected(
    sso: SsoClient, provider: FakeProvider, harness: Harness, auth_time: Any
) -> None:
    headers = await sso.require_login()
    provider.claims = {"auth_time": auth_time}
    body = await sso.start_verification(headers)
    assert parse_error(await sso.verify(headers, body)) == (400, "INVALID_OTP")


async def test_provider_without_the_time_of_the_sign_in_needs_a_factor(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    provider.claims = {"auth_time": None}
    refused = await sso.verify(headers)
    assert parse_error(refused) == (403, "FORBIDDEN")
    assert "enroll a second factor" in refused.json()["message"]
    assert (await harness.get(ME, headers=headers)).status_code == 200


async def test_another_account_of_the_provider_is_rejected(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    await sso.require_login(sub="person-2", email="hopper@example.com")
    headers = await sso.require_login()
    for claims in ({"sub": "person-2"}, {"sub": "person-3"}):
        provider.claims = claims
        body = await sso.start_verification(headers)
        assert parse_error(await sso.verify(headers, body)) == (400, "INVALID_OTP")
    assert parse_error(await create_key(harness, headers)) == (403, "OTP_REQUIRED")


async def test_verification_is_for_one_session_and_once(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    first, second = await sso.require_login(), await sso.require_login()
    body = await sso.start_verification(first)
    assert parse_error(await sso.verify(second, body)) == (400, "INVALID_OTP")
    assert (await sso.verify(first, body)).status_code == 200
    assert parse_error(await sso.verify(first, body)) == (400, "INVALID_OTP")
    assert parse_error(await create_key(harness, second)) == (403, "OTP_REQUIRED")


async def test_verification_and_login_are_not_interchangeable(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    verification = await sso.start_verification(headers)
    assert parse_error(await sso.complete(verification)) == (401, "UNAUTHORIZED")
    login = await sso.start()
    assert parse_error(await sso.verify(headers, login)) == (400, "INVALID_OTP")


async def test_person_who_lost_the_role_is_signed_out(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    provider.claims = {"groups": []}
    refused = await sso.verify(headers)
    assert parse_error(refused) == (403, "FORBIDDEN")
    assert (await harness.get(ME, headers=headers)).status_code == 401


async def test_enrolled_factor_replaces_the_sign_in(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    body = await sso.start_verification(headers)
    me = (await harness.get(ME, headers=headers)).json()
    admin_id = ids.decode(ids.ADMIN, me["id"])
    assert admin_id is not None
    app = await enroll_app(harness.services, admin_id)
    refused = await create_key(harness, headers)
    assert refused.json()["details"] == {"methods": ["totp"]}
    for response in (
        await harness.post(f"{VERIFICATION_URL}/start", headers=headers),
        await sso.verify(headers, body),
    ):
        assert parse_error(response) == (404, "NOT_FOUND")
    code = {"otp": app.at(harness.services.clock())}
    assert (await harness.post(f"{ME}/step-up", json=code, headers=headers)).status_code == 200
    assert (await create_key(harness, headers)).status_code == 201


async def test_first_factor_needs_a_recent_sign_in(sso: SsoClient, harness: Harness) -> None:
    """A stolen session alone must not be able to enroll a factor and verify itself with it."""
    headers = await sso.require_login()
    assert (await harness.post(f"{ME}/totp", headers=headers)).status_code == 200
    await age_sessions(harness)
    for path in ("totp", "passkeys/options"):
        refused = await harness.post(f"{ME}/{path}", json={}, headers=headers)
        assert parse_error(refused) == (403, "OTP_REQUIRED")
        assert "Sign in again" in refused.json()["message"]


async def test_password_session_cannot_be_verified_with_the_provider(
    harness: Harness, ada: Headers
) -> None:
    refused = await harness.post(f"{VERIFICATION_URL}/start", headers=ada)
    assert parse_error(refused) == (404, "NOT_FOUND")
    assert (await create_key(harness, ada)).status_code == 201


async def test_without_second_factors_no_sign_in_is_needed(
    sso: SsoClient, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.services.authenticator.factors, "is_enabled", False)
    assert (await create_key(harness, await sso.require_login())).status_code == 201


@pytest.fixture
def console(harness: Harness) -> ConsoleClient:
    return ConsoleClients(harness, AppTransport(create_app(harness.services))).create_signed_out()


async def test_form_in_the_console_asks_for_a_new_sign_in(
    console: ConsoleClient, provider: FakeProvider
) -> None:
    await follow_provider(console, provider)
    form = {"name": "Reports", "scopes": ["payments:read"]}
    prompt = await console.submit_action("api_key.create", form)
    assert prompt.headers["HX-Retarget"] == "find [data-step-up]"
    assert 'href="/console/sso/verify"' in prompt.text
    assert "step_up_code" not in prompt.text
    assert "Verify your identity" in await console.get_page_text("/console/account")

    started = await console.client.get("/console/sso/verify")
    callback = provider.authorize(started.headers["Location"])
    returned = await console.client.get(CALLBACK, params=callback)
    verified = await console.client.get(get_next_url(returned))
    assert "Identity verified" in verified.text
    assert "svc_test_" in (await console.submit_action("api_key.create", form)).text
    again = await console.client.get(get_next_url(returned))
    assert (again.status_code, "Not verified" in again.text) == (400, True)


async def test_canceled_sign_in_does_not_verify_the_session(
    console: ConsoleClient, provider: FakeProvider, harness: Harness
) -> None:
    await follow_provider(console, provider)
    started = await console.client.get("/console/sso/verify")
    callback = provider.authorize(started.headers["Location"])
    error = {"error": "access_denied", "state": callback["state"]}
    returned = await console.client.get(CALLBACK, params=error)
    page = await console.client.get(get_next_url(returned))
    assert "Not verified" in page.text
    assert await harness.database.fetchval("SELECT count(factor_at) FROM sessions") == 0
    assert "Grace" in await console.get_page_text("/console/account"), "the session continues"


async def test_page_to_verify_needs_a_session(console: ConsoleClient) -> None:
    response = await console.client.get("/console/sso/verify")
    assert response.headers["Location"].startswith("/console/sign-in")


async def test_login_url_is_not_the_one_of_a_verification(sso: SsoClient, harness: Harness) -> None:
    started = (await harness.post(f"{LOGIN_URL}/start")).json()
    query = parse_qs(urlsplit(started["authorization_url"]).query)
    assert query.keys().isdisjoint({"prompt", "max_age"})


async def test_verification_expires(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    body = await sso.start_verification(headers)
    oidc = harness.services.authenticator.oidc
    assert oidc is not None
    clock = oidc.clock
    oidc.clock = lambda: clock() + timedelta(minutes=10)
    assert parse_error(await sso.verify(headers, body)) == (400, "INVALID_OTP")
