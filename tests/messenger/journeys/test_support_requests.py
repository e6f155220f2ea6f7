"""Support requests from the chat: one open alert per person, at a limited rate."""

from typing import Any

import pytest

from drivers.messenger import MessengerDriver, Phone, ServicesDriver
from messenger.journeys.test_phone_ownership import create_hidden_number_phone, send_text


async def list_alerts(services_driver: ServicesDriver) -> list[dict[str, Any]]:
    response = await services_driver.gateway.get(
        "/api/v1/compliance/alerts", auth=await services_driver.harness.create_admin("C")
    )
    data: list[dict[str, Any]] = response.json()["data"]
    return data


async def request_support(phone: Phone) -> str:
    response = await phone.post_to_bridge(message="talk to a person")
    return str(response.json()["answer"])


@pytest.mark.parametrize("times", [1, 10])
async def test_repeated_support_requests_create_one_alert(
    services_driver: ServicesDriver, messenger: MessengerDriver, times: int
) -> None:
    subscriber = await services_driver.harness.create_subscriber()
    phone = messenger.create_phone(subscriber["phone_number"])
    responses = {await request_support(phone) for _ in range(times)}
    assert len(responses) == 1
    (alert,) = await list_alerts(services_driver)
    assert alert["details"] == {"asked_by": subscriber["phone_number"]}
    # After three requests in an hour, further requests are not sent to the gateway.
    assert alert["occurrences"] == min(times, 3)


async def test_people_without_a_phone_number_get_separate_alerts(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> None:
    for name in ("ada", "eve"):
        phone = create_hidden_number_phone(messenger, name)
        for _ in range(2):
            await send_text(phone, "talk to a person")
    assert sorted(alert["details"]["asked_by"] for alert in await list_alerts(services_driver)) == [
        "user:ada",
        "user:eve",
    ]
