"""Admin login, token refresh and logout."""

import httpx2
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, ListAuditEntries, LogIn
from cases import each
from tapgate.http.api.services import Services


async def _log_in(client: httpx2.AsyncClient, email: str, password: str) -> httpx2.Response:
    return await client.post("/api/v1/admin/login", json={"email": email, "password": password})


async def _is_logged_in(client: httpx2.AsyncClient, headers: Headers) -> bool:
    return (await client.get("/api/v1/admin/me", headers=headers)).status_code == 200


async def test_login_returns_tokens_and_is_audited(
    client: httpx2.AsyncClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    response = await _log_in(client, EMAIL.upper(), PASSWORD)
    assert response.status_code == 200
    assert response.json().keys() == {"token", "refresh_token", "expires_in"}
    assert response.json()["expires_in"] == 86400
    assert await _is_logged_in(client, {"Authorization": f"Bearer {response.json()['token']}"})
    newest = (await list_audit_entries("admin.login"))[0]
    assert newest["result"] == "success"
    assert newest["actor"]["type"] == "admin"
    assert newest["actor"]["id"] == newest["resource_id"]
    assert newest["actor"]["role"] == "system_admin"
    assert newest["request_id"] == response.headers["X-Request-ID"]


async def test_me_returns_the_logged_in_admin(client: httpx2.AsyncClient, ada: Headers) -> None:
    me = (await client.get("/api/v1/admin/me", headers=ada)).json()
    fields = {"id", "email", "name", "role", "owner_id", "created_at", "last_login_at"}
    assert me.keys() == fields | {"factors", "recovery_codes"}
    assert (me["email"], me["role"], me["owner_id"]) == (EMAIL, "system_admin", None)
    assert me["id"].startswith("adm_")
    assert me["last_login_at"] >= me["created_at"]


async def test_password_typed_as_the_email_is_not_stored(
    client: httpx2.AsyncClient, services: Services, list_audit_entries: ListAuditEntries
) -> None:
    """Some passwords look like email addresses, and audit entries are permanent."""
    typed_emails = ("Tr0ub4dor@horse", "Tr0ub4dor@horse", "another@slip")
    for typed_email in typed_emails:
        response = await _log_in(client, typed_email, "ada@example.com")
        assert response.status_code == 401
    first, second, third = await list_audit_entries("admin.login", result="failure")
    assert second["resource_id"] == third["resource_id"] != first["resource_id"]
    assert first["resource_id"].startswith("unknown:")
    for table in ("audit_entries", "login_failures"):
        stored = str(await services.database.fetch(f"SELECT t::text FROM {table} t")).lower()
        assert "tr0ub4dor" not in stored


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize("email", [EMAIL, "nobody@example.com"])
async def test_failed_login_gets_the_same_error_and_is_audited_without_the_password(
    client: httpx2.AsyncClient, services: Services, list_audit_entries: ListAuditEntries, email: str
) -> None:
    response = await _log_in(client, email, "incorrect horse")
    assert response.status_code == 401
    assert response.json()["code"] == "UNAUTHORIZED"
    assert response.json()["message"] == "Incorrect email or password."
    (entry,) = await list_audit_entries("admin.login", result="failure")
    assert entry["actor"] == {"type": "anonymous", "id": "anonymous"}
    resource_id = entry["resource_id"]
    assert entry["resource_type"] == "admin"
    assert resource_id == EMAIL if email == EMAIL else resource_id.startswith("unknown:")
    everything = await services.database.fetch("SELECT audit_entries::text FROM audit_entries")
    assert "incorrect horse" not in str(everything)


@each(
    "body, status",
    [
        ({"email": EMAIL}, 400),
        ({"email": EMAIL, "password": 1}, 400),
        ({"email": "ada", "password": PASSWORD}, 422),
        ({"email": EMAIL, "password": ""}, 422),
    ],
)
async def test_malformed_login_is_rejected(
    client: httpx2.AsyncClient, body: dict[str, object], status: int
) -> None:
    assert (await client.post("/api/v1/admin/login", json=body)).status_code == status


async def test_logout_ends_only_its_own_session_in_every_process(
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    ada: Headers,
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    session = await log_in()
    assert await _is_logged_in(other_process_client, session)
    response = await client.post("/api/v1/admin/logout", headers=session)
    assert (response.status_code, response.content) == (204, b"")
    assert not await _is_logged_in(client, session)
    assert not await _is_logged_in(other_process_client, session)
    assert await _is_logged_in(other_process_client, ada)
    (entry,) = await list_audit_entries("admin.logout")
    assert entry["actor"]["id"] == entry["resource_id"]


async def test_refresh_token_reuse_ends_the_session_and_is_audited(
    client: httpx2.AsyncClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    tokens = (await _log_in(client, EMAIL, PASSWORD)).json()
    body = {"refresh_token": tokens["refresh_token"]}
    renewed = (await client.post("/api/v1/admin/refresh", json=body)).json()
    assert (await client.post("/api/v1/admin/refresh", json=body)).status_code == 401
    assert not await _is_logged_in(client, {"Authorization": f"Bearer {renewed['token']}"})
    newest = (await list_audit_entries("admin.session_ended"))[0]
    assert newest["reason"] == "Refresh token reused"
