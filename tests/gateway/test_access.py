"""Every endpoint with every kind of credential, scope and role.

Exactly the callers in the specification pass; all other callers get the specified error.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from conftest import ScratchDatabases
from gateway.access_contract import is_same_access, parse_contract
from gateway.access_fixtures import (
    AccessFixtures,
    Caller,
    build_missing_path,
    get_status_and_code,
    run_access_fixtures,
)
from harness import Harness
from tapgate.api.endpoint import Endpoint
from tapgate.cli.manual import list_endpoints

ENDPOINTS = list_endpoints()
PROTECTED_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if not endpoint.access.public]
PUBLIC_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if endpoint.access.public]
LOGOUT_ENDPOINT = "POST /api/v1/admin/logout"


def endpoint_name(endpoint: Endpoint) -> str:
    return endpoint.name


@pytest.fixture(scope="module")
async def access_fixtures(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[AccessFixtures]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    async with run_access_fixtures(folder, postgres, scratch_databases) as access_fixtures:
        yield access_fixtures


def test_declared_access_matches_the_specification() -> None:
    specified = parse_contract()
    declared = {endpoint.name: endpoint.access for endpoint in ENDPOINTS}
    assert declared.keys() == specified.keys()
    wrong = [name for name in declared if not is_same_access(declared[name], specified[name])]
    assert not wrong


def test_restricted_fields_are_limited_to_admin_and_compliance_roles() -> None:
    guarded = {
        f"{endpoint.name} {field}": set(access.roles)
        for endpoint in ENDPOINTS
        for field, access in endpoint.field_access.items()
        if not (access.scope or access.service or access.hmac)
    }
    put = "PUT /api/v1/subscribers/{id}"
    assert guarded == {
        f"{put} {field}": {"A", "C"} for field in ("kyc_level", "kyc_status", "restricted")
    }


@pytest.mark.parametrize("endpoint", PROTECTED_ENDPOINTS, ids=endpoint_name)
async def test_only_declared_callers_can_call_the_endpoint(
    access_fixtures: AccessFixtures, endpoint: Endpoint
) -> None:
    path, access = build_missing_path(endpoint), endpoint.access
    denials, before = 0, await access_fixtures.count_denials()
    for caller in access_fixtures.list_callers(access):
        if endpoint.name == LOGOUT_ENDPOINT and caller.kind == "admin":
            continue  # would end the session of a shared caller; tested below
        response = await access_fixtures.client.request(
            endpoint.method, path, content=b"{}", auth=caller.auth
        )
        if caller.is_allowed(access):
            assert response.status_code in (200, 400, 404, 422), (caller.name, response.text)
            continue
        assert get_status_and_code(response) == caller.get_expected_error(access), (
            caller.name,
            response.text,
        )
        if response.status_code == 403:
            denials += 1
            assert response.json()["details"] == {
                "required": caller.get_expected_requirements(access)
            }, caller.name
        else:
            assert response.headers["WWW-Authenticate"]
    # Every 403 FORBIDDEN is audited; a 401 is not.
    assert await access_fixtures.count_denials() == before + denials


async def test_every_admin_role_can_log_out(access_fixtures: AccessFixtures) -> None:
    for role in "ACSF":
        admin = await access_fixtures.harness.create_admin(role)
        response = await access_fixtures.client.post("/api/v1/admin/logout", auth=admin)
        assert response.status_code == 204
        assert get_status_and_code(
            await access_fixtures.client.get("/api/v1/admin/me", auth=admin)
        ) == (
            401,
            "UNAUTHORIZED",
        )


@pytest.mark.parametrize("method", ["as declared", "HEAD"])
async def test_protected_endpoints_reject_requests_without_credentials(
    access_fixtures: AccessFixtures, method: str
) -> None:
    for endpoint in PROTECTED_ENDPOINTS:
        if method == "HEAD" and endpoint.method != "GET":
            continue
        actual_method = "HEAD" if method == "HEAD" else endpoint.method
        response = await access_fixtures.client.request(
            actual_method, build_missing_path(endpoint), content=b"{}"
        )
        assert response.status_code == 401, endpoint.name
        if method != "HEAD":
            assert response.json()["code"] == "UNAUTHORIZED"
            assert set(response.json()) <= {"error", "code", "message"}


def list_path_variants(path: str) -> list[str]:
    """Return alternative spellings that some servers and proxies treat as the same path."""
    letter = path.rindex("/") + 1
    encoded = f"{path[:letter]}%{ord(path[letter]):02x}{path[letter + 1 :]}"
    return [
        f"{path}/",
        f"/{path}",
        path.upper(),
        encoded,
        path.replace("/", "%2f").replace("%2f", "/", 1),
        f"{path};public",
        f"{path}%00",
        f"{path}%20",
        f"{path}.json",
        f"/docs/..{path}",
        f"/docs/%2e%2e{path}",
        f"/health/../{path}",
        path.replace("/api/v1", "/api/v1/."),
        path.replace("/api/v1", "/api//v1"),
        "/" + path[1:].replace("/", "\\"),
    ]


async def test_alternative_path_spellings_do_not_bypass_authentication(
    access_fixtures: AccessFixtures,
) -> None:
    for endpoint in PROTECTED_ENDPOINTS:
        for path in list_path_variants(build_missing_path(endpoint)):
            url = httpx2.URL(scheme="http", host="gateway", raw_path=path.encode())
            response = await access_fixtures.client.request(endpoint.method, url, content=b"{}")
            assert response.status_code in (401, 404, 405), (endpoint.name, path, response.text)


@pytest.mark.parametrize(
    "header", ["X-HTTP-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-For"]
)
async def test_override_headers_do_not_bypass_authentication(
    access_fixtures: AccessFixtures, header: str
) -> None:
    value = {"X-HTTP-Method-Override": "GET", "X-Forwarded-For": "127.0.0.1"}.get(header, "/health")
    for endpoint in PROTECTED_ENDPOINTS:
        response = await access_fixtures.client.request(
            endpoint.method, build_missing_path(endpoint), content=b"{}", headers={header: value}
        )
        assert get_status_and_code(response) == (401, "UNAUTHORIZED"), endpoint.name


async def test_undeclared_methods_return_405(access_fixtures: AccessFixtures) -> None:
    declared_methods: dict[str, set[str]] = {}
    for endpoint in ENDPOINTS:
        declared_methods.setdefault(endpoint.path, set()).add(endpoint.method)
    admin = await access_fixtures.harness.create_admin()
    for endpoint in PROTECTED_ENDPOINTS:
        methods = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD"}
        others = methods - declared_methods[endpoint.path]
        for method in others - ({"HEAD"} if "GET" in declared_methods[endpoint.path] else set()):
            response = await access_fixtures.client.request(
                method, build_missing_path(endpoint), auth=admin
            )
            assert response.status_code == 405, (method, endpoint.path)


@pytest.mark.parametrize("endpoint", PUBLIC_ENDPOINTS, ids=endpoint_name)
async def test_public_endpoint_ignores_credentials(
    access_fixtures: AccessFixtures, endpoint: Endpoint
) -> None:
    """An invalid credential does not cause a rejection either."""
    request = endpoint.method, build_missing_path(endpoint)
    expected = get_status_and_code(await access_fixtures.client.request(*request, content=b"{}"))
    assert expected[0] in (200, 400, 401, 404)
    for caller in access_fixtures.callers:
        response = await access_fixtures.client.request(*request, content=b"{}", auth=caller.auth)
        assert get_status_and_code(response) == expected, caller.name
    for headers in ({"Authorization": "Bearer x"}, {"X-Signature": "x"}, {"X-Service-Name": "x"}):
        response = await access_fixtures.client.request(*request, content=b"{}", headers=headers)
        assert get_status_and_code(response) == expected


async def test_denied_access_is_audited(client: httpx2.AsyncClient, harness: Harness) -> None:
    for name, credential, actor in (
        ("key", key := await harness.create_api_key("balance:read"), key.id),
        ("admin", admin := await harness.create_admin("F"), admin.id),
        ("service", harness.get_service_auth(), "messenger"),
        ("processor", terminal_auth := await harness.create_processor(), terminal_auth.id),
        ("partner", partner := await harness.create_partner(), partner.id),
    ):
        headers = {"X-Request-ID": f"denied-{name}"}
        response = await client.get("/api/v1/audit/logs", auth=credential, headers=headers)
        assert response.status_code == 403
        entries = await harness.list_audit_entries("GET /api/v1/audit/logs", "access.denied")
        assert (entries[-1]["result"], entries[-1]["actor"]["id"]) == ("denied", actor)
    assert len(entries) == 5


async def test_field_without_permission_is_rejected_and_audited(
    access_fixtures: AccessFixtures,
) -> None:
    subscriber = await access_fixtures.harness.create_subscriber()
    path = f"/api/v1/subscribers/{subscriber['id']}"
    for caller in access_fixtures.callers:
        if not caller.is_allowed(_find_endpoint("PUT /api/v1/subscribers/{id}").access):
            continue
        before = await access_fixtures.count_denials()
        for field, value in (("kyc_level", 1), ("kyc_status", "NONE"), ("restricted", False)):
            response = await access_fixtures.client.put(path, json={field: value}, auth=caller.auth)
            if _is_compliance(caller):
                assert response.status_code == 200, (caller.name, response.text)
                continue
            assert get_status_and_code(response) == (403, "FORBIDDEN"), caller.name
            required = ["compliance_user", "system_admin"]
            assert response.json()["details"] == {"required": required}
        assert await access_fixtures.count_denials() == before + (
            0 if _is_compliance(caller) else 3
        )


async def test_denials_beyond_declared_access_are_audited(
    access_fixtures: AccessFixtures,
) -> None:
    """An admin cannot disable their own account."""
    (admin,) = (caller for caller in access_fixtures.callers if caller.role == "A")
    before = await access_fixtures.count_denials()
    path = f"/api/v1/admin/users/{admin.auth.id}/disable"
    response = await access_fixtures.client.post(path, auth=admin.auth)
    assert get_status_and_code(response) == (403, "FORBIDDEN")
    assert response.json()["details"]["required"]
    assert await access_fixtures.count_denials() == before + 1


async def test_failed_login_is_audited_without_revealing_whether_the_account_exists(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    email = "grace@example.com"
    new = {"email": email, "password": "a right one, long", "name": "Grace", "role": "finance_user"}
    created = await client.post("/api/v1/admin/users", json=new, auth=await harness.create_admin())
    assert created.status_code == 201
    responses = [
        await client.post("/api/v1/admin/login", json={"email": address, "password": "x" * 12})
        for address in (email, "nobody@example.com")
    ]
    assert [get_status_and_code(response) for response in responses] == [(401, "UNAUTHORIZED")] * 2
    assert responses[0].json() == responses[1].json()
    (entry,) = await harness.list_audit_entries(email, "admin.login")
    assert entry["result"] == "failure"
    # An unknown email may be a password typed into the wrong field, so it is not stored in clear.
    assert await harness.list_audit_entries("nobody@example.com", "admin.login") == []
    failed = await client.get(
        "/api/v1/audit/logs", params={"event": "admin.login"}, auth=await harness.create_admin()
    )
    names = [entry["resource_id"] for entry in failed.json()["data"]]
    assert [name.partition(":")[0] for name in names if name != email] == ["unknown"]


def _find_endpoint(name: str) -> Endpoint:
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.name == name)
    return endpoint


def _is_compliance(caller: Caller) -> bool:
    return caller.role in ("A", "C") and caller.kind == "admin"
