"""Compliance alerts."""

from typing import Any

from builders.payments import ALERTS_URL
from harness import Harness

ALERT = {"alert_type": "UNUSUAL_AMOUNT", "details": {"seen": "twice"}}


async def create_alert(harness: Harness, **fields: Any) -> dict[str, Any]:
    response = await harness.post(ALERTS_URL, json=ALERT | fields, auth=harness.get_service_auth())
    alert: dict[str, Any] = response.json()["alert"]
    return alert
