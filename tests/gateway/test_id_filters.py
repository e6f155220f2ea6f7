"""Filters by ID: a malformed ID is a validation error, and an unknown ID finds nothing."""

import httpx2

from cases import each
from harness import Harness
from tapgate import ids

FILTERS = [
    ("/api/v1/cards", "subscriber_id", ids.SUBSCRIBER),
    ("/api/v1/agents", "parent_agent_id", ids.AGENT),
    ("/api/v1/compliance/alerts", "subscriber_id", ids.SUBSCRIBER),
    ("/api/v1/transactions", "user_id", ids.SUBSCRIBER),
]


@each("url, name, prefix", FILTERS)
async def test_malformed_id_filter_is_rejected_and_unknown_id_finds_nothing(
    client: httpx2.AsyncClient, harness: Harness, url: str, name: str, prefix: str
) -> None:
    admin = await harness.create_admin()
    for bad in ("x", f"{prefix}x", "key_0000000000001"):
        response = await client.get(url, params={name: bad}, auth=admin)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
        assert name in response.json()["details"]["fields"]
    response = await client.get(url, params={name: ids.encode(prefix, 1)}, auth=admin)
    assert (response.status_code, response.json()["data"]) == (200, [])
