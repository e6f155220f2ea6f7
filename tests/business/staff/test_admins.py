"""Creating, listing, disabling and enabling admins."""

import asyncio
from itertools import product
from typing import Any

import httpx2
import pytest

from builders.auth import EMAIL, PASSWORD, Headers, ListAuditEntries, LogIn
from cases import each
from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.sessions import SessionOrigin
from tapgate.business.staff import operations
from tapgate.http.api.services import Services
from tapgate.server.gateway_installation import create_first_admin
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminChanges

ADMINS_URL = "/api/v1/admin/users"
NEW_ADMIN = {
    "email": "Eve@Example.com",
    "password": PASSWORD,
    "name": "Eve",
    "role": "finance_user",
}


async def test_created_admin_can_log_in(
    client: httpx2.AsyncClient, ada: Headers, log_in: LogIn, list_audit_entries: ListAuditEntries
) -> None:
    response = await client.post(ADMINS_URL, json=NEW_ADMIN, headers=ada)
    assert response.status_code == 201
    record = response.json()
    minimum = {
        "email": "eve@example.com",
        "name": "Eve",
        "role": "finance_user",
        "status": "active",
        "last_login_at": None,
        "sso": False,
    }.items()
    assert record.items() >= minimum
    assert record["id"].startswith("adm_")
    assert record["created_at"].endswith("Z")
    assert "password" not in record
    await log_in("eve@example.com", PASSWORD)
    newest = (await list_audit_entries("admin.created"))[0]
    assert newest["resource_id"] == record["id"]
    assert newest["actor"]["type"] == "admin"
    assert newest["changes"] == {
        "email": [None, "eve@example.com"],
        "name": [None, "Eve"],
        "role": [None, "finance_user"],
        "status": [None, "active"],
    }


async def test_duplicate_email_is_rejected(client: httpx2.AsyncClient, ada: Headers) -> None:
    responses = await asyncio.gather(
        *(client.post(ADMINS_URL, json=NEW_ADMIN, headers=ada) for _ in range(3)),
        client.post(ADMINS_URL, json=NEW_ADMIN | {"email": "eve@example.com"}, headers=ada),
    )
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409]
    rejected = next(response for response in responses if response.status_code == 409)
    assert rejected.json()["code"] == "DUPLICATE_EMAIL"


@each(
    "field, value",
    [
        ("email", "eve"),
        ("password", "eleven char"),
        ("password", "x" * 256),
        ("password", "eve@example.com"),
        ("password", "EVE@example.COM"),
        ("password", "Eve Everly Evans"),
        ("name", ""),
        ("name", "nul\0"),
        ("role", "king"),
    ],
)
async def test_invalid_field_is_named_without_echoing_its_value(
    client: httpx2.AsyncClient, ada: Headers, field: str, value: str
) -> None:
    new = NEW_ADMIN | {"name": "Eve Everly Evans"} | {field: value}
    response = await client.post(ADMINS_URL, json=new, headers=ada)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == [field]
    assert not value or value not in response.text


@pytest.mark.parametrize("password", ["Password123!", "x" * 12, "everly-20262026"])
async def test_weak_password_is_rejected_only_in_production(
    client: httpx2.AsyncClient, ada: Headers, services: Services, password: str
) -> None:
    """In development, these passwords are accepted."""
    new = NEW_ADMIN | {"name": "Eve Everly Evans", "password": password}
    original = services.settings
    services.settings = original.replace(environment="production")
    rejected = await client.post(ADMINS_URL, json=new, headers=ada)
    assert (rejected.status_code, rejected.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(rejected.json()["details"]["fields"]) == ["password"]
    services.settings = original
    assert (await client.post(ADMINS_URL, json=new, headers=ada)).status_code == 201


@pytest.mark.parametrize("missing", sorted(NEW_ADMIN.keys() - {"password"}))
async def test_every_field_but_the_password_is_required(
    client: httpx2.AsyncClient, ada: Headers, missing: str
) -> None:
    new = {field: value for field, value in NEW_ADMIN.items() if field != missing}
    response = await client.post(ADMINS_URL, json=new, headers=ada)
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")


async def test_admins_are_paged_newest_first(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any]
) -> None:
    first = (await client.get(ADMINS_URL, params={"limit": 1}, headers=ada)).json()
    assert (first["data"], first["has_more"]) == ([ben], True)
    rest = {"limit": 1, "cursor": first["next_cursor"]}
    second = (await client.get(ADMINS_URL, params=rest, headers=ada)).json()
    assert [admin["email"] for admin in second["data"]] == [EMAIL]
    assert (second["has_more"], second["next_cursor"]) == (False, None)


async def test_disabling_an_admin_ends_its_sessions_in_every_process(
    *,
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    as_ben = await log_in(ben["email"])
    assert (await other_process_client.get("/api/v1/admin/me", headers=as_ben)).status_code == 200
    response = await client.post(f"{ADMINS_URL}/{ben['id']}/disable", headers=ada)
    assert response.status_code == 200
    assert (response.json()["id"], response.json()["status"]) == (ben["id"], "disabled")
    for process in (client, other_process_client):
        assert (await process.get("/api/v1/admin/me", headers=as_ben)).status_code == 401
    credentials = {"email": ben["email"], "password": PASSWORD}
    assert (await client.post("/api/v1/admin/login", json=credentials)).status_code == 401
    (entry,) = await list_audit_entries("admin.disabled")
    assert (entry["resource_id"], entry["result"]) == (ben["id"], "success")
    assert entry["changes"] == {"status": ["active", "disabled"]}


async def test_enabled_admin_must_log_in_again(
    client: httpx2.AsyncClient,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
    list_audit_entries: ListAuditEntries,
) -> None:
    before = await log_in(ben["email"])
    await client.post(f"{ADMINS_URL}/{ben['id']}/disable", headers=ada)
    response = await client.post(f"{ADMINS_URL}/{ben['id']}/enable", headers=ada)
    assert (response.status_code, response.json()["status"]) == (200, "active")
    assert (await client.get("/api/v1/admin/me", headers=before)).status_code == 401
    await log_in(ben["email"])
    (entry,) = await list_audit_entries("admin.enabled")
    assert entry["changes"] == {"status": ["disabled", "active"]}


async def test_admin_cannot_be_disabled_or_enabled_twice(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any]
) -> None:
    response = await client.post(f"{ADMINS_URL}/{ben['id']}/enable", headers=ada)
    assert (response.status_code, response.json()["code"]) == (409, "NOT_BLOCKED")
    await client.post(f"{ADMINS_URL}/{ben['id']}/disable", headers=ada)
    response = await client.post(f"{ADMINS_URL}/{ben['id']}/disable", headers=ada)
    assert (response.status_code, response.json()["code"]) == (409, "ALREADY_BLOCKED")


@each(
    "action, text",
    product(
        ["disable", "enable"],
        [ids.encode(ids.ADMIN, 1), ids.encode(ids.KEY, 1), "ben", "adm_%F0"],
    ),
)
async def test_unknown_admin_is_not_found(
    client: httpx2.AsyncClient, ada: Headers, action: str, text: str
) -> None:
    response = await client.post(f"{ADMINS_URL}/{text}/{action}", headers=ada)
    assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")


@pytest.mark.usefixtures("ben")
async def test_admin_cannot_disable_their_own_account(
    client: httpx2.AsyncClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    own_id = (await client.get("/api/v1/admin/me", headers=ada)).json()["id"]
    response = await client.post(f"{ADMINS_URL}/{own_id}/disable", headers=ada)
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
    assert response.json()["message"] == "You can't disable your own account."
    assert await list_audit_entries("admin.disabled") == []


async def get_number(client: httpx2.AsyncClient, headers: Headers) -> int:
    me = (await client.get("/api/v1/admin/me", headers=headers)).json()
    number = ids.decode(ids.ADMIN, me["id"])
    assert number is not None
    return number


async def test_last_system_admin_cannot_be_disabled(
    client: httpx2.AsyncClient, services: Services, ada: Headers, ben: dict[str, Any]
) -> None:
    """Simulates a request by Ben that was authorized just before Ada disabled him."""
    await client.post(f"{ADMINS_URL}/{ben['id']}/disable", headers=ada)
    adas_id = await get_number(client, ada)
    as_ben = Actor(record={"type": "admin", "id": ben["id"]})
    auth = services.authenticator
    with pytest.raises(ApiError) as error:
        async with services.transaction() as tx:
            await operations.disable(
                tx,
                as_ben,
                adas_id,
                makers={},
                sessions=auth.sessions,
                invitations=auth.invitations,
            )
    assert error.value.code is Code.FORBIDDEN
    assert error.value.message == "The last active system_admin cannot be disabled."


async def test_last_system_admin_keeps_the_role(
    client: httpx2.AsyncClient, services: Services, ada: Headers, ben: dict[str, Any]
) -> None:
    """Simulates a request by Ben that was authorized just before Ada changed his role."""
    changed = await client.put(
        f"{ADMINS_URL}/{ben['id']}", json={"role": "support_user"}, headers=ada
    )
    assert changed.status_code == 200
    adas_id = await get_number(client, ada)
    as_ben = Actor(record={"type": "admin", "id": ben["id"]})
    sessions = services.authenticator.sessions
    with pytest.raises(ApiError) as error:
        async with services.transaction() as tx:
            changes = AdminChanges(role="support_user")
            await operations.update(tx, as_ben, adas_id, changes, makers={}, sessions=sessions)
    assert error.value.code is Code.FORBIDDEN
    assert error.value.message == "The last active system_admin cannot get another role."


async def test_login_with_a_password_that_was_just_reset_starts_no_session(
    client: httpx2.AsyncClient, services: Services, ada: Headers, ben: dict[str, Any]
) -> None:
    """Simulates a login whose password was verified just before Ada reset it."""
    auth = services.authenticator
    verified = await auth.logins.authenticate(ben["email"], PASSWORD, "192.0.2.1")
    reset = await client.post(f"{ADMINS_URL}/{ben['id']}/reset-password", headers=ada)
    assert reset.status_code == 200
    with pytest.raises(ApiError) as error:
        async with services.transaction() as tx:
            await operations.log_in(
                tx, SYSTEM_ACTOR, verified, sessions=auth.sessions, origin=SessionOrigin()
            )
    assert error.value.code is Code.UNAUTHORIZED


async def test_admins_disabling_each_other_concurrently_do_not_both_succeed(
    *,
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    services: Services,
    ada: Headers,
    ben: dict[str, Any],
    log_in: LogIn,
) -> None:
    as_ben = await log_in(ben["email"])
    adas_id = (await client.get("/api/v1/admin/me", headers=ada)).json()["id"]
    responses = await asyncio.gather(
        client.post(f"{ADMINS_URL}/{ben['id']}/disable", headers=ada),
        other_process_client.post(f"{ADMINS_URL}/{adas_id}/disable", headers=as_ben),
    )
    statuses = sorted(response.status_code for response in responses)
    assert statuses in ([200, 401], [200, 403])
    active = await services.database.fetchval("SELECT count(*) FROM admins WHERE status = 'active'")
    assert active == 1


async def test_concurrent_startups_create_one_first_admin(services: Services) -> None:
    created = await asyncio.gather(
        *(
            create_first_admin(services, email=f"A{n}@example.com", password=PASSWORD)
            for n in range(4)
        )
    )
    assert sorted(created) == [False, False, False, True]
    assert not await create_first_admin(services, email="late@example.com", password=PASSWORD)
    (admin,) = await services.database.fetch("SELECT email, role, status FROM admins")
    assert admin["email"] == f"a{created.index(True)}@example.com"
    assert (admin["role"], admin["status"]) == ("system_admin", "active")
    (entry,) = await services.database.fetch("SELECT event, actor_id FROM audit_entries")
    assert (entry["event"], entry["actor_id"]) == ("admin.created", "system")
