"""The admin's own account over HTTP: second factors, step-up, password and sessions."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pyotp
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, ListAuditEntries, LogIn, get_previous_code
from builders.passkeys import expire_factors
from tapgate.auth.second_factors import Factors
from tapgate.core.password_strength import is_breached
from tapgate.http.api.services import Services
from tapgate.server.gateway import list_endpoints

ME = "/api/v1/admin/me"
NEW_PASSWORD = "another horse battery"
SENSITIVE = ("PUT", "/api/v1/commission-rules")

Enroll = Callable[[Headers], Awaitable[pyotp.TOTP]]


def get_code(response: httpx2.Response) -> tuple[int, str | None]:
    return response.status_code, response.json().get("code") if response.content else None


async def log_in(client: httpx2.AsyncClient, **fields: str) -> httpx2.Response:
    credentials = {"email": EMAIL, "password": PASSWORD, **fields}
    return await client.post("/api/v1/admin/login", json=credentials)


@pytest.fixture
def enroll(client: httpx2.AsyncClient, services: Services) -> Enroll:
    """Return a function that enrolls an authenticator app, whose current code remains usable."""

    async def enroll(headers: Headers) -> pyotp.TOTP:
        started = (await client.post(f"{ME}/totp", headers=headers)).json()
        app = pyotp.TOTP(started["secret"])
        code = get_previous_code(services, app)
        response = await client.post(f"{ME}/totp/confirm", json={"code": code}, headers=headers)
        assert response.status_code == 200, response.text
        return app

    return enroll


@pytest.fixture
async def require_factors(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.authenticator.factors, "is_required", True)


async def test_enrolled_app_is_required_at_the_next_login(
    client: httpx2.AsyncClient,
    ada: Headers,
    services: Services,
    list_audit_entries: ListAuditEntries,
) -> None:
    started = (await client.post(f"{ME}/totp", headers=ada)).json()
    assert started.keys() == {"secret", "otpauth_url", "qr"}
    assert pyotp.parse_uri(started["otpauth_url"]).secret == started["secret"]
    wrong = await client.post(f"{ME}/totp/confirm", json={"code": "000000"}, headers=ada)
    assert get_code(wrong) == (400, "INVALID_OTP")
    assert (await log_in(client)).status_code == 200

    app = pyotp.TOTP(started["secret"])
    code = get_previous_code(services, app)
    confirmed = await client.post(f"{ME}/totp/confirm", json={"code": code}, headers=ada)
    recovery_codes = confirmed.json()["recovery_codes"]
    assert len(recovery_codes) == 10

    missing = await log_in(client)
    assert get_code(missing) == (403, "OTP_REQUIRED")
    assert missing.json()["details"] == {"methods": ["totp"]}
    assert get_code(await log_in(client, otp=code)) == (400, "INVALID_OTP")
    assert (await log_in(client, otp=app.at(services.clock()))).status_code == 200
    assert (await log_in(client, otp=recovery_codes[3])).status_code == 200
    newest, *_ = await list_audit_entries("admin.login", result="success")
    assert newest["reason"] == "Second factor: recovery_code"
    (failure,) = await list_audit_entries("admin.login", result="failure")
    assert failure["resource_id"] == EMAIL
    stored = str(await services.database.fetch("SELECT audit_entries::text FROM audit_entries"))
    assert started["secret"] not in stored
    assert recovery_codes[3] not in stored


async def test_app_is_removed_with_a_code(
    client: httpx2.AsyncClient, ada: Headers, enroll: Enroll, services: Services
) -> None:
    async def remove(code: str) -> httpx2.Response:
        return await client.request("DELETE", f"{ME}/totp", json={"code": code}, headers=ada)

    assert get_code(await remove("000000")) == (404, "NOT_FOUND")
    app = await enroll(ada)
    assert get_code(await remove("000000")) == (400, "INVALID_OTP")
    assert (await remove(app.at(services.clock()))).status_code == 204
    assert (await log_in(client)).status_code == 200


@pytest.mark.usefixtures("require_factors")
async def test_required_factor_limits_the_session_to_enrollment(
    client: httpx2.AsyncClient, services: Services, ada: Headers, enroll: Enroll
) -> None:
    limited = (await log_in(client)).json()
    assert limited["enroll_only"] is True
    refreshed = await client.post(
        "/api/v1/admin/refresh", json={"refresh_token": limited["refresh_token"]}
    )
    assert refreshed.json()["enroll_only"] is True
    headers = {"Authorization": f"Bearer {refreshed.json()['token']}"}
    allowed = set()
    for endpoint in list_endpoints():
        if endpoint.access.public or "A" not in endpoint.access.roles:
            continue
        if endpoint.name == "POST /api/v1/admin/logout":
            continue
        path = endpoint.path.replace("{", "").replace("}", "")
        response = await client.request(endpoint.method, path, content=b"{}", headers=headers)
        if get_code(response) == (403, "FORBIDDEN"):
            assert response.json()["details"] == {"required": ["second_factor"]}, endpoint.name
        else:
            allowed.add(endpoint.name)
    assert allowed == {
        f"GET {ME}",
        f"GET {ME}/oidc-logout",
        f"POST {ME}/totp",
        f"POST {ME}/totp/confirm",
        f"POST {ME}/passkeys/options",
        f"POST {ME}/passkeys",
    }

    app = await enroll(headers)
    assert (await client.get("/api/v1/admin/users", headers=headers)).status_code == 403
    tokens = (await log_in(client, otp=app.at(services.clock()))).json()
    assert "enroll_only" not in tokens
    full = {"Authorization": f"Bearer {tokens['token']}"}
    assert (await client.get("/api/v1/admin/users", headers=full)).status_code == 200
    last = await client.request(
        "DELETE", f"{ME}/totp", json={"code": app.at(services.clock(), 1)}, headers=full
    )
    assert get_code(last) == (403, "FORBIDDEN")


async def test_factors_that_are_off_are_neither_asked_for_nor_enrolled(
    client: httpx2.AsyncClient,
    services: Services,
    ada: Headers,
    enroll: Enroll,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await enroll(ada)
    off = Factors(services.database, services.vault, services.clock, mode="off")
    monkeypatch.setattr(services.authenticator.factors, "is_enabled", off.is_enabled)
    assert (await log_in(client)).status_code == 200
    assert get_code(await client.post(f"{ME}/totp", headers=ada)) == (403, "FORBIDDEN")


async def test_sensitive_action_requires_a_recent_factor(
    client: httpx2.AsyncClient,
    services: Services,
    ada: Headers,
    enroll: Enroll,
    list_audit_entries: ListAuditEntries,
) -> None:
    method, path = SENSITIVE
    assert (await client.request(method, path, content=b"{}", headers=ada)).status_code == 400
    app = await enroll(ada)
    assert (await client.request(method, path, content=b"{}", headers=ada)).status_code == 400
    await expire_factors(services)
    stale = await client.request(method, path, content=b"{}", headers=ada)
    assert get_code(stale) == (403, "OTP_REQUIRED")
    assert stale.json()["details"] == {"methods": ["totp"]}

    wrong = await client.post(f"{ME}/step-up", json={"otp": "000000"}, headers=ada)
    assert get_code(wrong) == (400, "INVALID_OTP")
    verified = await client.post(
        f"{ME}/step-up", json={"otp": app.at(services.clock())}, headers=ada
    )
    assert verified.json().keys() == {"verified_until"}
    fresh = await client.request(method, path, content=b"{}", headers=ada)
    assert fresh.status_code == 400
    for result in ("success", "failure"):
        assert len(await list_audit_entries("admin.factor_verified", result=result)) == 1


def test_money_credentials_admins_and_rules_require_a_recent_factor() -> None:
    """A new endpoint of one of these kinds must be declared with `step_up`, or listed here."""
    kinds = ("/fund", "-rules", "/users", "/api-keys", "/keys", "keysets", "secret", "/transfer")
    not_sensitive = {
        "DELETE /api/v1/admin/api-keys/{id}",
        "DELETE /api/v1/admin/partners/{id}/keys/{api_key_id}",
        "DELETE /api/v1/processors/{id}/keys/{api_key_id}",
        # Sends a transfer again, which can be credited only once:
        "POST /api/v1/books/transfers/{id}/retry",
        # With the sender's PIN:
        "POST /api/v1/agents/transfer",
        "POST /api/v1/wallet/transfer-p2p",
    }
    undeclared = {
        endpoint.name
        for endpoint in list_endpoints()
        if endpoint.method != "GET"
        and not endpoint.access.public
        and endpoint.access.roles
        and any(kind in endpoint.path for kind in kinds)
        and not endpoint.step_up
    }
    assert undeclared == not_sensitive


def test_every_guardable_operation_requires_a_recent_factor() -> None:
    guarded = [endpoint for endpoint in list_endpoints() if endpoint.guard is not None]
    assert guarded
    assert [endpoint.name for endpoint in guarded if not endpoint.step_up] == []


async def test_new_password_ends_the_other_sessions(
    client: httpx2.AsyncClient, ada: Headers, log_in: LogIn, list_audit_entries: ListAuditEntries
) -> None:
    other_session = await log_in()

    async def change(current: str, new: str) -> httpx2.Response:
        body = {"current_password": current, "new_password": new}
        return await client.post(f"{ME}/password", json=body, headers=ada)

    wrong = await change("wrong", NEW_PASSWORD)
    assert wrong.status_code == 422
    assert wrong.json()["details"]["fields"].keys() == {"current_password"}
    (entry,) = await list_audit_entries("admin.password_verified")
    assert (entry["result"], "wrong" in str(entry["changes"])) == ("failure", False)
    own_email = await change(PASSWORD, EMAIL)
    assert own_email.json()["details"]["fields"].keys() == {"new_password"}
    assert (await change(PASSWORD, NEW_PASSWORD)).status_code == 204
    assert (await client.get(ME, headers=other_session)).status_code == 401
    assert (await client.get(ME, headers=ada)).status_code == 200
    await log_in(password=NEW_PASSWORD)
    assert len(await list_audit_entries("admin.password_changed")) == 1


async def test_sessions_are_listed_and_ended(
    client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
) -> None:
    other_session = await log_in()
    bens_session = await log_in(ben["email"])
    sessions = (await client.get(f"{ME}/sessions", headers=ada)).json()["data"]
    assert [session["current"] for session in sessions] == [False, True]
    assert sessions[0]["id"].startswith("ses_")
    assert sessions[0]["ip"]
    assert sessions[0]["user_agent"].startswith("python-httpx")
    assert sessions[0]["console"] is False

    path = f"{ME}/sessions/{sessions[0]['id']}"
    assert (await client.delete(path, headers=bens_session)).status_code == 404
    assert (await client.delete(path, headers=ada)).status_code == 204
    assert (await client.get(ME, headers=other_session)).status_code == 401
    assert (await client.delete(path, headers=ada)).status_code == 404
    assert len((await client.get(f"{ME}/sessions", headers=ada)).json()["data"]) == 1


async def test_all_other_sessions_are_ended_at_once(
    client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    others = [await log_in() for _ in range(2)]
    bens_session = await log_in(ben["email"])
    assert (await client.delete(f"{ME}/sessions", headers=ada)).status_code == 204
    for session in others:
        assert (await client.get(ME, headers=session)).status_code == 401
    for session in (ada, bens_session):
        assert (await client.get(ME, headers=session)).status_code == 200
    (entry,) = await list_audit_entries("admin.session_ended")
    assert entry["reason"] == "All others were ended by the admin"


async def test_list_says_who_has_a_second_factor(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any], log_in: LogIn, enroll: Enroll
) -> None:
    await enroll(await log_in(ben["email"]))
    admins = (await client.get("/api/v1/admin/users", headers=ada)).json()["data"]
    factors = {admin["name"]: admin["factors"] for admin in admins}
    assert factors == {"Ben": ["totp"], "Administrator": []}


async def test_invited_admin_sets_a_password_once(
    client: httpx2.AsyncClient,
    services: Services,
    ada: Headers,
    list_audit_entries: ListAuditEntries,
) -> None:
    new = {"email": "cyn@example.com", "name": "Cyn", "role": "finance_user"}
    created = (await client.post("/api/v1/admin/users", json=new, headers=ada)).json()
    url, token = created["invitation"]["url"].split("#")
    assert url.endswith("/console/invitation")
    assert token not in str(await services.database.fetch("SELECT * FROM admin_invitations"))

    async def accept(password: str, token: str = token) -> httpx2.Response:
        body = {"token": token, "password": password}
        return await client.post("/api/v1/admin/invitations/accept", json=body)

    assert get_code(await accept(NEW_PASSWORD, "wrong")) == (404, "NOT_FOUND")
    assert get_code(await accept(new["email"])) == (422, "VALIDATION_FAILED")
    assert (await accept(NEW_PASSWORD)).status_code == 204
    assert get_code(await accept(PASSWORD)) == (404, "NOT_FOUND")
    assert (await log_in(client, email=new["email"], password=NEW_PASSWORD)).status_code == 200
    (entry,) = await list_audit_entries("admin.password_set")
    assert entry["actor"]["id"] == created["id"]


async def test_invitation_expires_and_is_replaced_by_the_next_one(
    client: httpx2.AsyncClient, services: Services, ada: Headers, ben: dict[str, Any]
) -> None:
    async def reset() -> str:
        path = f"/api/v1/admin/users/{ben['id']}/reset-password"
        response = await client.post(path, headers=ada)
        return str(response.json()["url"].partition("#")[2])

    async def accept(token: str) -> int:
        body = {"token": token, "password": NEW_PASSWORD}
        return (await client.post("/api/v1/admin/invitations/accept", json=body)).status_code

    first, second = await reset(), await reset()
    assert (await log_in(client, email=ben["email"])).status_code == 401
    assert await accept(first) == 404
    await services.database.execute(
        "UPDATE admin_invitations SET expires_at = $1", services.clock()
    )
    assert await accept(second) == 404
    assert await accept(await reset()) == 204


async def test_new_role_ends_the_sessions_of_another_admin(
    client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    bens_session = await log_in(ben["email"])
    path = f"/api/v1/admin/users/{ben['id']}"
    renamed = await client.put(path, json={"name": "Benjamin"}, headers=ada)
    assert renamed.json()["name"] == "Benjamin"
    own = await client.put(path, json={"role": "finance_user"}, headers=bens_session)
    assert get_code(own) == (403, "FORBIDDEN")
    changed = await client.put(path, json={"role": "finance_user"}, headers=ada)
    assert changed.json()["role"] == "finance_user"
    assert (await client.get(ME, headers=bens_session)).status_code == 401
    entries = await list_audit_entries("admin.updated")
    assert [entry["changes"] for entry in entries] == [
        {"role": ["system_admin", "finance_user"]},
        {"name": ["Ben", "Benjamin"]},
    ]


async def test_another_admin_resets_lost_factors(
    client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
    enroll: Enroll,
) -> None:
    bens_session = await log_in(ben["email"])
    await enroll(bens_session)
    path = f"/api/v1/admin/users/{ben['id']}/reset-factors"
    assert get_code(await client.post(path, headers=bens_session)) == (403, "FORBIDDEN")
    own_password = await client.post(
        f"/api/v1/admin/users/{ben['id']}/reset-password", headers=bens_session
    )
    assert get_code(own_password) == (403, "FORBIDDEN")
    assert (await client.post(path, headers=ada)).status_code == 200
    assert (await client.get(ME, headers=bens_session)).status_code == 401
    await log_in(ben["email"])


async def test_breached_password_is_rejected(
    client: httpx2.AsyncClient, services: Services, ada: Headers, tmp_path: Path
) -> None:
    file = tmp_path / "pwned.txt"
    words = [NEW_PASSWORD, "x", "y", "z"]
    hashes = [hashlib.sha1(word.encode()).hexdigest().upper() for word in words]
    file.write_text("".join(f"{text}:3\r\n" for text in sorted(hashes)))
    assert [is_breached(word, file) for word in [*words, "other", ""]] == [True] * 4 + [False] * 2
    services.settings = services.settings.replace(breached_passwords=file)
    body = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    response = await client.post(f"{ME}/password", json=body, headers=ada)
    expected = {"new_password": "must not be known from a data breach"}
    assert response.json()["details"]["fields"] == expected
