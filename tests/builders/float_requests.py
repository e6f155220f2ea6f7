"""Float requests over HTTP."""

from typing import Any

import httpx2

from builders.participants import AGENT_PIN, AGENTS_URL
from builders.payments import new_request_id
from harness import Harness

FLOAT_REQUESTS_URL = "/api/v1/float-requests"


async def ask_for_float(
    harness: Harness, agent: dict[str, Any], amount: str = "100", *, auth: Any = None, **fields: Any
) -> httpx2.Response:
    return await harness.post(
        f"{AGENTS_URL}/{agent['id']}/float-requests",
        json={"amount": amount, **fields},
        auth=auth or harness.get_service_auth(),
    )


async def create_float_request(
    harness: Harness, agent: dict[str, Any], amount: str = "100", **fields: Any
) -> dict[str, Any]:
    response = await ask_for_float(harness, agent, amount, **fields)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def end_float_request(
    harness: Harness, item: dict[str, Any], verb: str, *, auth: Any = None, **body: Any
) -> httpx2.Response:
    """Fund, transfer, pass on, decline or cancel, as a caller that may."""
    defaults: dict[str, dict[str, str]] = {
        "fund": {"request_id": new_request_id()},
        "transfer": {"pin": AGENT_PIN, "request_id": new_request_id()},
        "decline": {"reason": "Deposit first"},
    }
    if auth is None:
        is_finance = verb in ("fund", "decline")
        auth = await harness.create_admin("F") if is_finance else harness.get_service_auth()
    return await harness.post(
        f"{FLOAT_REQUESTS_URL}/{item['id']}/{verb}",
        json=defaults.get(verb, {}) | body,
        auth=auth,
    )


async def get_float_request(harness: Harness, item: dict[str, Any]) -> dict[str, Any]:
    response = await harness.get(
        f"{FLOAT_REQUESTS_URL}/{item['id']}", auth=harness.get_service_auth()
    )
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def list_float_requests(harness: Harness, **query: str) -> list[str]:
    response = await harness.get(FLOAT_REQUESTS_URL, params=query, auth=harness.get_service_auth())
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["data"]]
