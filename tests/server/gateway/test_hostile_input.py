"""Hostile input never causes a server error at any endpoint, and no error echoes it."""

import msgspec

from builders.hostile_input import (
    CANARY,
    ENDPOINTS_WITH_BODY,
    HOSTILE_BODIES,
    HOSTILE_VALUES,
    build_path,
    create_caller,
    list_fields,
)
from cases import run_cases
from harness import Harness
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import ENDPOINT_GROUPS

ENDPOINTS_WITH_PATH_PARAMETERS = [
    endpoint for group in ENDPOINT_GROUPS for endpoint in group if endpoint.path_parameters
]
LIST_ENDPOINTS = [
    endpoint for group in ENDPOINT_GROUPS for endpoint in group if endpoint.query_type is not None
]


async def test_hostile_bodies_cause_no_server_error_and_are_not_echoed(harness: Harness) -> None:
    await run_cases((item.name, check_bodies(harness, item)) for item in ENDPOINTS_WITH_BODY)


async def check_bodies(harness: Harness, endpoint: Endpoint) -> None:
    path, auth = await build_path(harness, endpoint), await create_caller(harness, endpoint)
    filled = [dict.fromkeys(list_fields(endpoint), value) for value in HOSTILE_VALUES]
    for body in (*HOSTILE_BODIES, *map(msgspec.json.encode, filled)):
        response = await harness.client.request(endpoint.method, path, content=body, auth=auth)
        assert response.status_code < 500, (body[:80], response.text)
        if response.status_code >= 400:
            assert CANARY not in response.text, (body[:80], response.text)
            assert {"error", "code"} <= set(response.json())
        else:  # the request may have ended the session
            auth = await create_caller(harness, endpoint)


async def test_hostile_path_parameters_cause_no_server_error_and_are_not_echoed(
    harness: Harness,
) -> None:
    await run_cases(
        (item.name, check_paths(harness, item)) for item in ENDPOINTS_WITH_PATH_PARAMETERS
    )


async def check_paths(harness: Harness, endpoint: Endpoint) -> None:
    auth = await create_caller(harness, endpoint)
    for part in (
        "%00",
        "%ff",
        "%2e%2e",
        "%2e%2e%2f",
        "sub_",
        "9" * 5000,
        CANARY,
        "sub_zzzzzzzzzzzzz",
    ):
        path = "/".join(
            part if segment.startswith("{") else segment for segment in endpoint.path.split("/")
        )
        response = await harness.client.request(endpoint.method, path, content=b"{}", auth=auth)
        # Public endpoints with signed bodies return 401.
        allowed = {400, 404, 409, 422, 405}
        allowed |= {401} if endpoint.access.public else set()
        assert response.status_code in allowed, (part, response.text)
        assert CANARY not in response.text


async def test_hostile_query_parameters_cause_no_server_error_and_are_not_echoed(
    harness: Harness,
) -> None:
    await run_cases((item.name, check_queries(harness, item)) for item in LIST_ENDPOINTS)


async def check_queries(harness: Harness, endpoint: Endpoint) -> None:
    assert endpoint.query_type is not None
    names = [field.encode_name for field in msgspec.structs.fields(endpoint.query_type)]
    hostile = ("%00", "%ff", "%ed%a0%80", "", "-1", "9" * 400, CANARY, "%27;--", "a" * 5000)
    path, auth = await build_path(harness, endpoint), await create_caller(harness, endpoint)
    allowed = {200, 422} | ({404} if endpoint.path.endswith("}") else set())
    for name in names:
        for value in hostile:
            response = await harness.get(f"{path}?{name}={value}", auth=auth)
            assert response.status_code in allowed, (name, value[:20], response.text)
            assert CANARY not in response.text or response.status_code == 200
