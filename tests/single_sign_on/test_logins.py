"""Logins with the identity provider: state, codes, accounts, roles, factors and sessions."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pyotp
import pytest

from builders.approvals import set_email
from builders.auth import EMAIL, PASSWORD, Headers, get_previous_code
from builders.passkeys import PasskeyClient, build_passkey
from builders.single_sign_on import LOGIN_URL, SsoClient
from cases import each
from drivers.identity_provider import ADMIN_GROUP, CLIENT_ID, FINANCE_GROUP, FakeProvider
from drivers.processes import run_command_on
from harness import Harness, parse_error
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.business.staff import operations
from tapgate.http.api.services import Services
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminChanges

ME = "/api/v1/admin/me"
USERS = "/api/v1/admin/users"


async def get_me(harness: Harness, headers: Headers) -> dict[str, Any]:
    response = await harness.get(ME, headers=headers)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def enroll_totp(harness: Harness, headers: Headers) -> pyotp.TOTP:
    """Enroll an authenticator app, whose current code remains usable."""
    started = (await harness.post(f"{ME}/totp", headers=headers)).json()
    app = pyotp.TOTP(started["secret"])
    code = get_previous_code(harness.services, app)
    confirmed = await harness.post(f"{ME}/totp/confirm", json={"code": code}, headers=headers)
    assert confirmed.status_code == 200, confirmed.text
    return app


def get_current_code(harness: Harness, app: pyotp.TOTP) -> str:
    return app.at(harness.services.clock())


async def test_first_login_creates_the_admin(sso: SsoClient, harness: Harness) -> None:
    headers = await sso.require_login()
    me = await get_me(harness, headers)
    assert (me["email"], me["name"], me["role"]) == ("grace@example.com", "Grace", "system_admin")
    (created,) = await harness.list_audit_entries(me["id"], "admin.created")
    assert created["actor"]["type"] == "system"
    (linked,) = await harness.list_audit_entries(me["id"], "admin.sso_linked")
    assert linked["changes"]["subject"] == [None, "person-1"]
    (login,) = await harness.list_audit_entries(me["id"], "admin.login")
    assert (login["actor"]["id"], login["reason"]) == (me["id"], "Single sign-on")
    assert (await get_me(harness, await sso.require_login()))["id"] == me["id"]


async def test_sessions_list_shows_single_sign_on(sso: SsoClient, harness: Harness) -> None:
    headers = await sso.require_login()
    (session,) = (await harness.get(f"{ME}/sessions", headers=headers)).json()["data"]
    assert session["sso"] is True


async def test_authorization_request_has_pkce_state_and_nonce(harness: Harness) -> None:
    first, second = [(await harness.post(f"{LOGIN_URL}/start")).json() for _ in range(2)]
    queries = [parse_qs(urlsplit(item["authorization_url"]).query) for item in (first, second)]
    for name in ("state", "nonce", "code_challenge"):
        assert queries[0][name] != queries[1][name]
        assert len(queries[0][name][0]) >= 43
        assert queries[0][name][0] not in first["login_token"]
    assert queries[0]["code_challenge_method"] == ["S256"]
    assert queries[0]["redirect_uri"] == ["http://127.0.0.1:8000/console/sso/callback"]
    assert queries[0]["scope"] == ["openid email profile"]


async def test_login_needs_the_token_and_state_of_the_same_browser(
    sso: SsoClient, provider: FakeProvider
) -> None:
    first, second = await sso.start(), await sso.start()
    for login in (
        {**first, "state": second["state"]},
        {**first, "login_token": second["login_token"]},
        {**first, "login_token": first["login_token"][:-4] + "AAAA"},
        {**first, "login_token": "?"},
        {**first, "iss": "http://127.0.0.1:1"},
    ):
        assert parse_error(await sso.complete(login)) == (401, "UNAUTHORIZED")
    assert "/token" not in provider.requests


async def test_state_works_once(sso: SsoClient, provider: FakeProvider, harness: Harness) -> None:
    login = await sso.start()
    assert (await sso.complete(login)).status_code == 200
    assert parse_error(await sso.complete(login)) == (401, "UNAUTHORIZED")
    assert provider.requests.count("/token") == 1
    assert await harness.database.fetchval("SELECT count(*) FROM sessions") == 1


async def test_concurrent_requests_start_one_session(
    sso: SsoClient, harness: Harness, other_process_client: httpx2.AsyncClient
) -> None:
    login = await sso.start()
    responses = await asyncio.gather(
        *(client.post(LOGIN_URL, json=login) for client in (harness.client, other_process_client)),
        sso.complete(login),
    )
    assert sorted(response.status_code for response in responses) == [200, 401, 401]


async def test_code_of_another_login_is_rejected(sso: SsoClient) -> None:
    """The PKCE verifier belongs to the login that requested the code."""
    first, second = await sso.start(), await sso.start()
    login = {**first, "code": second["code"]}
    assert parse_error(await sso.complete(login)) == (401, "UNAUTHORIZED")
    third = await sso.start()
    assert (await sso.complete(third)).status_code == 200
    reused = {**await sso.start(), "code": third["code"]}
    assert parse_error(await sso.complete(reused)) == (401, "UNAUTHORIZED")


async def test_login_expires(sso: SsoClient, harness: Harness) -> None:
    login = await sso.start()
    oidc = harness.services.authenticator.oidc
    assert oidc is not None
    clock = oidc.clock
    oidc.clock = lambda: clock() + timedelta(minutes=10)
    assert parse_error(await sso.complete(login)) == (401, "UNAUTHORIZED")


async def test_role_follows_the_claim_and_ends_sessions(sso: SsoClient, harness: Harness) -> None:
    await harness.create_admin()
    first = await sso.require_login()
    second = await sso.require_login(groups=[FINANCE_GROUP])
    me = await get_me(harness, second)
    assert me["role"] == "finance_user"
    assert (await harness.get(ME, headers=first)).status_code == 401
    (updated,) = await harness.list_audit_entries(me["id"], "admin.updated")
    assert updated["changes"] == {"role": ["system_admin", "finance_user"]}
    assert updated["reason"] == "Single sign-on"


async def test_first_role_of_the_map_counts(sso: SsoClient, harness: Harness) -> None:
    headers = await sso.require_login(groups=[FINANCE_GROUP, ADMIN_GROUP])
    assert (await get_me(harness, headers))["role"] == "system_admin"


async def test_person_who_lost_the_role_is_refused_and_signed_out(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    me = await get_me(harness, headers)
    provider.claims = {"groups": []}
    assert parse_error(await sso.log_in()) == (403, "FORBIDDEN")
    assert (await harness.get(ME, headers=headers)).status_code == 401
    (ended,) = await harness.list_audit_entries(me["id"], "admin.session_ended")
    assert ended["reason"] == "Single sign-on: access lost"


async def test_last_system_admin_keeps_the_role(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    headers = await sso.require_login()
    me = await get_me(harness, headers)
    provider.claims = {"groups": [FINANCE_GROUP]}
    assert parse_error(await sso.log_in()) == (403, "FORBIDDEN")
    role = await harness.database.fetchval(
        "SELECT role FROM admins WHERE id = $1", ids.decode(ids.ADMIN, me["id"])
    )
    assert role == "system_admin"


async def test_disabled_admin_is_refused(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    me = await get_me(harness, await sso.require_login())
    assert (await harness.post(f"{USERS}/{me['id']}/disable", headers=ada)).status_code == 200
    refused = await sso.log_in()
    assert parse_error(refused) == (401, "UNAUTHORIZED")
    assert "disabled" in refused.json()["message"]


async def test_email_address_of_the_first_login_remains(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    me = await get_me(harness, await sso.require_login())
    later = await get_me(harness, await sso.require_login(email="hopper@example.com"))
    assert (later["id"], later["email"]) == (me["id"], me["email"])


async def test_person_with_a_second_account_under_the_new_email_address_is_refused(
    sso: SsoClient, provider: FakeProvider, ada: Headers
) -> None:
    await sso.require_login()
    provider.claims = {"email": EMAIL}
    assert parse_error(await sso.log_in()) == (403, "FORBIDDEN")


async def test_local_account_is_not_taken_over_without_its_password(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    provider.claims = {"email": EMAIL.upper()}
    login = await sso.start()
    assert parse_error(await sso.complete(login)) == (409, "DUPLICATE_EMAIL")
    wrong = await sso.complete(login, password="not the password")
    assert parse_error(wrong) == (401, "UNAUTHORIZED")
    assert await harness.database.fetchval("SELECT count(*) FROM admin_identities") == 0
    assert (await get_me(harness, ada))["email"] == EMAIL


async def test_address_of_a_disabled_owner_user_does_not_stop_a_sign_in(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    """A manager can use the address of a future colleague first."""
    shop = await harness.get_processor_id(await harness.create_processor())
    squatter = await harness.create_owner_user("K", shop)
    await set_email(harness, squatter, "cfo@platform.example")
    provider.claims = {"email": "cfo@platform.example"}
    assert parse_error(await sso.log_in()) == (409, "DUPLICATE_EMAIL")
    disable = f"/api/v1/admin/users/{squatter.id}/disable"
    assert (await harness.post(disable, headers=ada)).status_code == 200
    me = await get_me(harness, await sso.require_login(email="cfo@platform.example"))
    assert (me["email"], me["id"] == squatter.id) == ("cfo@platform.example", False)


async def test_password_links_a_local_account(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await harness.create_admin()  # remains as a local system_admin
    provider.claims = {"email": EMAIL, "groups": [FINANCE_GROUP]}
    login = await sso.start()
    assert parse_error(await sso.complete(login)) == (409, "DUPLICATE_EMAIL")
    before = await harness.database.fetchval("SELECT id FROM admins WHERE email = $1", EMAIL)
    linked = await sso.complete(login, password=PASSWORD)
    assert linked.status_code == 200, linked.text
    me = await get_me(harness, {"Authorization": f"Bearer {linked.json()['token']}"})
    assert (me["id"], me["role"]) == (ids.encode(ids.ADMIN, before), "finance_user")
    assert (await harness.get(ME, headers=ada)).status_code == 401
    credentials = {"email": EMAIL, "password": PASSWORD}
    assert (await harness.post("/api/v1/admin/login", json=credentials)).status_code == 401
    assert (await sso.log_in()).status_code == 200


async def test_linking_needs_the_second_factor(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await harness.create_admin()
    app = await enroll_totp(harness, ada)
    provider.claims = {"email": EMAIL}
    login = {**await sso.start(), "password": PASSWORD}
    assert parse_error(await sso.complete(login)) == (403, "OTP_REQUIRED")
    assert parse_error(await sso.complete(login, otp="000000")) == (400, "INVALID_OTP")
    linked = await sso.complete(login, otp=get_current_code(harness, app))
    assert linked.status_code == 200, linked.text


async def test_last_local_system_admin_remains(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await sso.require_login()
    provider.claims = {"sub": "person-2", "email": EMAIL}
    assert parse_error(await sso.log_in(password=PASSWORD)) == (403, "FORBIDDEN")
    me = await get_me(harness, ada)
    assert me["email"] == EMAIL
    local_id, auth = ids.decode(ids.ADMIN, me["id"]), harness.services.authenticator
    sessions = auth.sessions
    disable = partial(
        operations.disable, makers={}, sessions=sessions, invitations=auth.invitations
    )
    assert local_id is not None
    for change in (
        disable,
        partial(
            operations.update,
            changes=AdminChanges(role="support_user"),
            makers={},
            sessions=sessions,
        ),
    ):
        with pytest.raises(ApiError) as error:
            async with harness.services.transaction() as tx:
                await change(tx, SYSTEM_ACTOR, local_id)
        assert error.value.code is Code.FORBIDDEN
        assert "The last active system_admin with a password" in (error.value.message or "")
    await harness.create_admin("A")  # has a password too
    async with harness.services.transaction() as tx:
        await disable(tx, SYSTEM_ACTOR, local_id)


async def test_enrolled_factor_is_required(sso: SsoClient, harness: Harness) -> None:
    headers = await sso.require_login()
    app = await enroll_totp(harness, headers)
    login = await sso.start()
    missing = await sso.complete(login)
    assert parse_error(missing) == (403, "OTP_REQUIRED")
    assert missing.json()["details"] == {"methods": ["totp"]}
    assert parse_error(await sso.complete(login, otp="000000")) == (400, "INVALID_OTP")
    logged_in = await sso.complete(login, otp=get_current_code(harness, app))
    assert logged_in.status_code == 200, logged_in.text
    repeated = await sso.complete(login, otp=get_current_code(harness, app))
    assert parse_error(repeated) == (401, "UNAUTHORIZED")
    me = await get_me(harness, headers)
    *_, login_entry = await harness.list_audit_entries(me["id"], "admin.login")
    assert login_entry["reason"] == "Single sign-on, second factor: totp"


async def test_enrolled_passkey_is_required(sso: SsoClient, harness: Harness) -> None:
    headers, passkeys = await sso.require_login(), PasskeyClient(harness.client)
    passkey = build_passkey()
    options = (await passkeys.start_enrollment(headers, password=None)).json()
    assert (await passkeys.submit(headers, passkey.create(options))).status_code == 201
    login = await sso.start()
    missing = await sso.complete(login)
    assert parse_error(missing) == (403, "OTP_REQUIRED")
    assert missing.json()["details"] == {"methods": ["passkey"]}
    other = build_passkey(user_handle=b"other").get(await passkeys.get_options())
    assert parse_error(await sso.complete(login, passkey=other)) == (400, "INVALID_OTP")
    proof = passkey.get(await passkeys.get_options())
    logged_in = await sso.complete(login, passkey=proof)
    assert logged_in.status_code == 200, logged_in.text
    assert parse_error(await passkeys.log_in_with(passkey)) == (401, "UNAUTHORIZED")


async def test_passkey_links_its_local_account(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await harness.create_admin()  # remains as a local system_admin
    ben = {"email": "ben@example.com", "password": PASSWORD, "name": "Ben", "role": "support_user"}
    assert (await harness.post(USERS, json=ben, headers=ada)).status_code == 201
    logged_in = await harness.post(
        "/api/v1/admin/login", json={"email": ben["email"], "password": PASSWORD}
    )
    other = {"Authorization": f"Bearer {logged_in.json()['token']}"}
    passkeys = PasskeyClient(harness.client)
    own_passkey, other_passkey = await passkeys.enroll(ada), await passkeys.enroll(other)
    provider.claims = {"email": EMAIL}
    login = await sso.start()
    wrong = await sso.complete(login, passkey=other_passkey.get(await passkeys.get_options()))
    assert parse_error(wrong) == (401, "UNAUTHORIZED")
    linked = await sso.complete(login, passkey=own_passkey.get(await passkeys.get_options()))
    assert linked.status_code == 200, linked.text
    me = await get_me(harness, {"Authorization": f"Bearer {linked.json()['token']}"})
    assert me["email"] == EMAIL


async def test_claims_of_the_provider_do_not_replace_a_required_factor(
    sso: SsoClient, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.services.authenticator.factors, "is_required", True)
    response = await sso.log_in()
    assert response.json()["enroll_only"] is True
    headers = await sso.require_login(amr=["pwd", "mfa"], acr="2")
    assert (await harness.get(USERS, headers=headers)).status_code == 403


async def test_session_cannot_be_refreshed(sso: SsoClient, harness: Harness) -> None:
    tokens = (await sso.log_in()).json()
    refreshed = await harness.post(
        "/api/v1/admin/refresh", json={"refresh_token": tokens["refresh_token"]}
    )
    assert parse_error(refreshed) == (401, "UNAUTHORIZED")


async def test_admin_of_the_provider_can_only_start_sessions_with_it(
    sso: SsoClient, harness: Harness
) -> None:
    me = await get_me(harness, await sso.require_login())
    admin_id = ids.decode(ids.ADMIN, me["id"])
    assert admin_id is not None
    services = harness.services
    with pytest.raises(Exception, match="UNAUTHORIZED"):
        async with services.transaction() as tx:
            await services.authenticator.sessions.start(tx, admin_id)


async def test_password_reset_makes_the_account_local(
    sso: SsoClient, harness: Harness, ada: Headers
) -> None:
    headers = await sso.require_login()
    me = await get_me(harness, headers)
    reset = await harness.post(f"{USERS}/{me['id']}/reset-password", headers=ada)
    token = reset.json()["url"].partition("#")[2]
    assert (await harness.get(ME, headers=headers)).status_code == 401
    body = {"token": token, "password": "another horse battery"}
    await harness.post("/api/v1/admin/invitations/accept", json=body)
    credentials = {"email": me["email"], "password": body["password"]}
    assert (await harness.post("/api/v1/admin/login", json=credentials)).status_code == 200
    assert parse_error(await sso.log_in()) == (409, "DUPLICATE_EMAIL")


async def test_command_line_makes_the_account_local(sso: SsoClient, services: Services) -> None:
    await sso.require_login()
    done = await run_command_on(services, "admin", "reset-password", "grace@example.com")
    assert "/console/invitation#" in done.stdout, done.stderr
    assert await services.database.fetchval("SELECT count(*) FROM admin_identities") == 0


async def test_failed_login_is_recorded(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    await sso.require_login()
    provider.claims = {"groups": []}
    await sso.log_in()
    (entry,) = await harness.list_audit_entries("grace@example.com", "admin.login")
    assert entry["result"] == "failure"
    assert entry["reason"].startswith("Single sign-on: Your account at the identity provider")


async def test_failed_logins_are_limited_per_address(
    sso: SsoClient, provider: FakeProvider, harness: Harness
) -> None:
    login = {**await sso.start(), "state": "x"}
    statuses = {(await sso.complete(login)).status_code for _ in range(40)}
    assert statuses == {401, 429}


async def test_logout_url_of_the_provider(
    sso: SsoClient, provider: FakeProvider, harness: Harness, ada: Headers
) -> None:
    headers = await sso.require_login()
    response = await harness.get(f"{ME}/oidc-logout", headers=headers)
    url = urlsplit(response.json()["logout_url"])
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{provider.issuer}/logout"
    parameters = parse_qs(url.query)
    (hint,) = parameters.pop("id_token_hint")
    assert parameters == {
        "client_id": [CLIENT_ID],
        "post_logout_redirect_uri": ["http://127.0.0.1:8000/console/sign-in"],
    }
    claims = jwt.decode(hint, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"]) == (provider.issuer, CLIENT_ID)
    stored = "SELECT sealed_id_token FROM sessions WHERE is_sso"
    assert hint.encode() not in await harness.database.fetchval(stored)
    await harness.post("/api/v1/admin/logout", headers=headers)
    assert await harness.database.fetchval(stored) is None
    local = await harness.get(f"{ME}/oidc-logout", headers=ada)
    assert local.json() == {"logout_url": None}


async def test_long_id_token_is_not_part_of_the_logout_url(
    sso: SsoClient, harness: Harness
) -> None:
    groups = [ADMIN_GROUP, *(f"group-{number}" for number in range(500))]
    headers = await sso.require_login(groups=groups)
    response = await harness.get(f"{ME}/oidc-logout", headers=headers)
    parameters = parse_qs(urlsplit(response.json()["logout_url"]).query)
    assert parameters.keys() == {"client_id", "post_logout_redirect_uri"}


@each("path", ["", "/start"])
async def test_without_settings_there_is_no_single_sign_on(harness: Harness, path: str) -> None:
    harness.services.authenticator.oidc = None
    body = {"login_token": "x", "state": "x", "code": "x"}
    response = await harness.post(LOGIN_URL + path, json=body)
    assert parse_error(response) == (404, "NOT_FOUND")
