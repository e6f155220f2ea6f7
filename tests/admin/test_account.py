"""The admin's own account over HTTP: second factors, step-up, password and sessions."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx2
import pyotp
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, ListAuditEntries, LogIn
from tapgate.api.services import Services
from tapgate.auth.factors import Factors
from tapgate.gateway import list_endpoints

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
        code = app.at(services.clock() - timedelta(seconds=30))
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
    code = app.at(services.clock() - timedelta(seconds=30))
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
    assert allowed == {f"GET {ME}", f"POST {ME}/totp", f"POST {ME}/totp/confirm"}

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
    log_in: LogIn,
    enroll: Enroll,
    list_audit_entries: ListAuditEntries,
) -> None:
    method, path = SENSITIVE
    other_session = await log_in()
    assert (await client.request(method, path, content=b"{}", headers=ada)).status_code == 400
    app = await enroll(ada)
    assert (await client.request(method, path, content=b"{}", headers=ada)).status_code == 400
    stale = await client.request(method, path, content=b"{}", headers=other_session)
    assert get_code(stale) == (403, "OTP_REQUIRED")
    assert stale.json()["details"] == {"methods": ["totp"]}

    wrong = await client.post(f"{ME}/step-up", json={"otp": "000000"}, headers=other_session)
    assert get_code(wrong) == (400, "INVALID_OTP")
    verified = await client.post(
        f"{ME}/step-up", json={"otp": app.at(services.clock())}, headers=other_session
    )
    assert verified.json().keys() == {"verified_until"}
    fresh = await client.request(method, path, content=b"{}", headers=other_session)
    assert fresh.status_code == 400
    assert len(await list_audit_entries("admin.factor_verified")) == 1

    await services.database.execute(
        "UPDATE sessions SET factor_at = factor_at - interval '15 minutes 1 second'"
    )
    async with services.transaction() as tx:
        await services.authenticator.sessions.publish_change(tx)
    expired = await client.request(method, path, content=b"{}", headers=ada)
    assert get_code(expired) == (403, "OTP_REQUIRED")


def test_money_credentials_admins_and_rules_require_a_recent_factor() -> None:
    """A new endpoint of one of these kinds must be declared with `step_up`, or listed here."""
    kinds = ("/fund", "-rules", "/users", "/api-keys", "/keys", "keysets", "secret", "/transfer")
    not_sensitive = {
        "DELETE /api/v1/admin/api-keys/{id}",
        "DELETE /api/v1/admin/partners/{id}/keys/{api_key_id}",
        "DELETE /api/v1/processors/{id}/keys/{api_key_id}",
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
