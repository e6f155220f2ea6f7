"""Subscriber timelines."""

from typing import Any

from builders.kyc_documents import upload_document
from builders.payments import PosDriver
from harness import PIN, WRONG_PIN, Harness
from tapgate_client import ids

TEXT = "I was charged twice"


async def get_page(
    harness: Harness, subscriber: dict[str, Any], role: str = "A", **query: str
) -> dict[str, Any]:
    response = await harness.get(
        f"/api/v1/subscribers/{subscriber['id']}/timeline",
        params=query,
        auth=await harness.create_admin(role),
    )
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def build_turn(harness: Harness, phone_number: str, **fields: Any) -> dict[str, Any]:
    return {
        "turn_id": ids.encode(ids.CHAT_TURN, harness.services.new_id()),
        "phone_number": phone_number,
        "channel": "messaging",
        "input": "text",
        "command": "balance",
        "outcome": "answered",
        "replies": 1,
        **fields,
    }


async def create_history(harness: Harness) -> dict[str, Any]:
    """Create a subscriber with one item of every kind, and return the record."""
    pos = await PosDriver.create(harness, balance="100")
    customer = pos.customer
    url = f"/api/v1/subscribers/{customer['id']}"
    service, admin = harness.get_service_auth(), await harness.create_admin("A")
    assert (await pos.pay("30.00", pin=PIN)).status_code == 200
    assert (await pos.pay("5000.00", pin=PIN)).status_code in (402, 403)
    await harness.post(f"{url}/verify-pin", json={"pin": WRONG_PIN}, auth=service)
    await upload_document(harness, customer)
    await harness.post(
        "/api/v1/support/requests",
        json={"phone_number": customer["phone_number"], "text": TEXT},
        auth=service,
    )
    turn = build_turn(harness, customer["phone_number"], outcome="in_progress", command="send")
    await harness.post("/api/v1/chat/turns", json={"data": [turn]}, auth=service)
    alert = {"alert_type": "STOLEN_PHONE", "details": {}, "subscriber_id": customer["id"]}
    await harness.post("/api/v1/compliance/alerts", json=alert, auth=service)
    await harness.post(f"{url}/reset-pin", auth=admin)
    await harness.post(f"{url}/block", json={"reason": "Lost phone"}, auth=admin)
    return customer
