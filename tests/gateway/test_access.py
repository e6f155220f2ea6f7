"""Every endpoint with every kind of credential, scope and role.

Exactly the callers in the specification pass; all other callers get the specified error.
"""

import httpx2

from cases import run_cases
from gateway.access_contract import is_same_access, parse_contract
from gateway.access_fixtures import (
    AccessFixtures,
    Caller,
    build_missing_path,
    get_status_and_code,
)
from tapgate.api.endpoint import Endpoint
from tapgate.gateway import list_endpoints

ENDPOINTS = list_endpoints()
PROTECTED_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if not endpoint.access.public]
PUBLIC_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if endpoint.access.public]
LOGOUT_ENDPOINT = "POST /api/v1/admin/logout"


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


async def test_only_declared_callers_can_call_the_endpoint(
    access_fixtures: AccessFixtures,
) -> None:
    await run_cases(
        (item.name, check_callers(access_fixtures, item)) for item in PROTECTED_ENDPOINTS
    )


async def check_callers(access_fixtures: AccessFixtures, endpoint: Endpoint) -> None:
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


async def test_protected_endpoints_reject_requests_without_credentials(
    access_fixtures: AccessFixtures,
) -> None:
    client = access_fixtures.client
    for endpoint in PROTECTED_ENDPOINTS:
        path = build_missing_path(endpoint)
        response = await client.request(endpoint.method, path, content=b"{}")
        assert get_status_and_code(response) == (401, "UNAUTHORIZED"), endpoint.name
        assert set(response.json()) <= {"error", "code", "message"}
        if endpoint.method == "GET":
            assert (await client.head(path)).status_code == 401, endpoint.name


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


async def test_override_headers_do_not_bypass_authentication(
    access_fixtures: AccessFixtures,
) -> None:
    headers = {
        "X-HTTP-Method-Override": "GET",
        "X-Original-URL": "/health",
        "X-Rewrite-URL": "/health",
        "X-Forwarded-For": "127.0.0.1",
    }
    for endpoint in PROTECTED_ENDPOINTS:
        response = await access_fixtures.client.request(
            endpoint.method, build_missing_path(endpoint), content=b"{}", headers=headers
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


async def test_public_endpoint_ignores_credentials(access_fixtures: AccessFixtures) -> None:
    """An invalid credential does not cause a rejection either."""
    await run_cases(
        (endpoint.name, check_public(access_fixtures, endpoint)) for endpoint in PUBLIC_ENDPOINTS
    )


async def check_public(access_fixtures: AccessFixtures, endpoint: Endpoint) -> None:
    request = endpoint.method, build_missing_path(endpoint)
    expected = get_status_and_code(await access_fixtures.client.request(*request, content=b"{}"))
    assert expected[0] in (200, 400, 401, 404)
    for caller in access_fixtures.list_callers(endpoint.access):
        response = await access_fixtures.client.request(*request, content=b"{}", auth=caller.auth)
        assert get_status_and_code(response) == expected, caller.name
    for headers in ({"Authorization": "Bearer x"}, {"X-Signature": "x"}, {"X-Service-Name": "x"}):
        response = await access_fixtures.client.request(*request, content=b"{}", headers=headers)
        assert get_status_and_code(response) == expected


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


def _find_endpoint(name: str) -> Endpoint:
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.name == name)
    return endpoint


def _is_compliance(caller: Caller) -> bool:
    return caller.role in ("A", "C") and caller.kind == "admin"
