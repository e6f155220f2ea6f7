"""Undeclared query parameters: a misspelled filter gets 422 instead of everyone's records."""

import re

import pytest

from harness import PIN, Harness
from tapgate.http.endpoint import Endpoint
from tapgate.messenger.routes import ENDPOINTS as MESSENGER_ENDPOINTS
from tapgate.server.gateway import list_endpoints

UNKNOWN = "subscriber_idd"
KEY_LIKE_NAME = "key_01hzx9k3v7"

ENDPOINTS = [endpoint for endpoint in list_endpoints() if not endpoint.any_query]


def fill_path(endpoint: Endpoint) -> str:
    return re.sub(r"\{(\w+)\}", "1", endpoint.path)


async def call(harness: Harness, endpoint: Endpoint, query: str) -> tuple[int, dict[str, str]]:
    """Call an endpoint with a query as a caller who may, and return the fields of a 422."""
    access = endpoint.access
    auth: object = None
    if access.hmac == "pos":
        auth = await harness.create_processor()
    elif access.roles:
        auth = await harness.create_admin(access.roles[0])
    elif access.service:
        auth = harness.get_service_auth()
    elif access.hmac == "partner":
        auth = await harness.create_partner()
    elif access.owners:
        shop = await harness.get_processor_id(await harness.create_processor())
        auth = await harness.create_owner_user("M", shop)
    response = await harness.client.request(
        endpoint.method, f"{fill_path(endpoint)}?{query}", auth=auth
    )
    details = response.json().get("details") if response.content else None
    return response.status_code, (details or {}).get("fields", {})


async def test_every_get_endpoint_rejects_an_undeclared_parameter(harness: Harness) -> None:
    accepted = {}
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET":
            status, fields = await call(harness, endpoint, f"{UNKNOWN}=1")
            if (status, list(fields)) != (422, [UNKNOWN]):
                accepted[endpoint.name] = (status, fields)
    assert accepted == {}


@pytest.mark.parametrize("path", ["/api/v1/transactions", "/api/v1/transactions/export"])
async def test_misspelled_filter_returns_no_records(harness: Harness, path: str) -> None:
    await harness.create_subscriber(balance="5")
    admin = await harness.create_admin("F")
    response = await harness.get(path, params={"statuss": "completed"}, auth=admin)
    assert response.status_code == 422
    expected = {"fields": {"statuss": "is not a parameter of this endpoint"}}
    assert response.json()["details"] == expected
    assert (await harness.get(path, auth=admin)).status_code == 200


@pytest.mark.parametrize("name", [KEY_LIKE_NAME, "x" * 200, "%F0%9F%92%A9", "a%0Ab"])
async def test_unusual_parameter_name_is_not_repeated(harness: Harness, name: str) -> None:
    admin = await harness.create_admin("F")
    response = await harness.get(f"/api/v1/transactions?{name}=1", auth=admin)
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["query"]
    assert name not in response.text


async def test_empty_parts_of_a_query_are_ignored(harness: Harness) -> None:
    admin = await harness.create_admin("F")
    response = await harness.get("/api/v1/transactions?&limit=1&", auth=admin)
    assert response.status_code == 200


async def test_requests_with_a_body_reject_undeclared_parameters_too(harness: Harness) -> None:
    customer = await harness.create_subscriber()
    response = await harness.post(
        f"/api/v1/subscribers/{customer['id']}/verify-pin?dry_run=true",
        json={"pin": PIN},
        auth=harness.get_service_auth(),
    )
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["dry_run"]


def test_endpoints_that_ignore_undeclared_parameters_say_why() -> None:
    tolerant = {
        endpoint.name
        for endpoint in (*list_endpoints(), *MESSENGER_ENDPOINTS)
        if endpoint.any_query
    }
    assert {"GET /health", "POST /api/v1/webhooks/partners/{partner_id}"} <= tolerant
    assert not any(name.startswith("GET /api/v1/transactions") for name in tolerant)


async def test_tolerant_endpoints_ignore_undeclared_parameters(harness: Harness) -> None:
    assert (await harness.get("/health?probe=1")).status_code == 200
    file = await harness.get("/api/v1/wallet/statements/none?utm_source=chat")
    assert file.status_code == 404
