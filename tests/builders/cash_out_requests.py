"""Cash-out requests over HTTP, as the messenger sends them."""

from typing import Any

import httpx2

from builders.participants import AGENT_PIN
from builders.payments import new_request_id
from harness import PIN, Harness

CASH_OUT_REQUESTS_URL = "/api/v1/cash-out-requests"


async def ask_for_cash_out(
    harness: Harness, agent: dict[str, Any], customer: dict[str, Any], **fields: Any
) -> httpx2.Response:
    body = {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": "10",
        "agent_pin": AGENT_PIN,
        "request_id": new_request_id(),
        **fields,
    }
    return await harness.post(CASH_OUT_REQUESTS_URL, json=body, auth=harness.get_service_auth())


async def create_cash_out_request(
    harness: Harness, agent: dict[str, Any], customer: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    response = await ask_for_cash_out(harness, agent, customer, **fields)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()
    return record


async def confirm_cash_out(
    harness: Harness, item: dict[str, Any], **fields: Any
) -> httpx2.Response:
    body = {"pin": PIN, "request_id": new_request_id(), **fields}
    url = f"{CASH_OUT_REQUESTS_URL}/{item['id']}/confirm"
    return await harness.post(url, json=body, auth=harness.get_service_auth())


async def decline_cash_out(harness: Harness, item: dict[str, Any]) -> httpx2.Response:
    url = f"{CASH_OUT_REQUESTS_URL}/{item['id']}/decline"
    return await harness.post(url, json={}, auth=harness.get_service_auth())


async def get_cash_out_status(harness: Harness, item: dict[str, Any]) -> str:
    url = f"{CASH_OUT_REQUESTS_URL}/{item['id']}"
    return str((await harness.get(url, auth=harness.get_service_auth())).json()["status"])
