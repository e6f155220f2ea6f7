"""Support requests."""

from typing import Any

from harness import Harness

PHONE = "+23276555002"


async def send_message(harness: Harness, text: str, phone: str = PHONE) -> dict[str, Any]:
    response = await harness.post(
        "/api/v1/support/requests",
        json={"phone_number": phone, "text": text},
        auth=harness.get_service_auth(),
    )
    record: dict[str, Any] = response.json()
    return record
