"""A one-time code by SMS, from the gateway to the SMS provider and back to the support view."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drivers.messenger import MessengerDriver, ServicesDriver
from harness import BearerAuth
from tapgate.events.notifications.notification_messages import SERVICE_NAME
from tapgate_sandbox.fake_provider.provider import Provider
from tapgate_sandbox.fake_provider.server import serve
from tapgate_sandbox.fake_provider.sms import PlannedSmsFailure, ReceivedSms, SmsProvider

TOKEN = "a token for the tests of SMS"
STATUS_PATH = "/api/v1/messages/sms-status"


@pytest.fixture
def provider() -> Provider:
    sms = SmsProvider(token=TOKEN, reports=False)
    return Provider(access_token="unused", phone_number_id="1065", sms=sms)


@pytest.fixture
async def messenger(
    services_driver: ServicesDriver, provider: Provider
) -> AsyncIterator[MessengerDriver]:
    async with (
        serve(provider) as url,
        services_driver.run_messenger(
            sms_url=f"{url}/sms", sms_token=TOKEN, sms_after=0
        ) as messenger,
    ):
        yield messenger


async def request_code(
    services_driver: ServicesDriver, messenger: MessengerDriver, record: dict[str, Any]
) -> str:
    """Request a code, pass it to the messenger as the gateway does, and return the code."""
    harness = services_driver.harness
    url = f"/api/v1/subscribers/{record['id']}/reset-pin"
    assert (await harness.post(url, auth=harness.get_service_auth())).status_code == 200
    listed = await get_subscriber_list(services_driver, record, "messages")
    (code,) = await harness.list_pending_messages(record["phone_number"], "one_time_code")
    response = await messenger.client.post(
        "/api/v1/messages/template",
        json={
            "to": record["phone_number"],
            "template": "one_time_code",
            "language": record["language"],
            "parameters": code,
        },
        headers={"Idempotency-Key": listed[0]["message_id"]},
        auth=harness.get_service_auth(SERVICE_NAME),
    )
    assert response.status_code == 202
    return str(code[0])


async def get_subscriber_list(
    services_driver: ServicesDriver, record: dict[str, Any], name: str
) -> list[dict[str, Any]]:
    response = await services_driver.gateway.get(
        f"/api/v1/subscribers/{record['id']}/{name}",
        auth=await services_driver.harness.create_admin("S"),
    )
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def wait_for_sms(provider: Provider) -> ReceivedSms:
    async with asyncio.timeout(30):
        while not (received := provider.sms.list_messages()):
            await asyncio.sleep(0.02)
    return received[0]


async def wait_for_status(
    services_driver: ServicesDriver, record: dict[str, Any], status: str
) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while True:
            (message,) = await get_subscriber_list(services_driver, record, "messages")
            if message["status"] == status:
                return message
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("has_used_chat", [False, True])
async def test_code_reaches_a_phone_by_sms_and_support_sees_it(
    services_driver: ServicesDriver,
    messenger: MessengerDriver,
    provider: Provider,
    has_used_chat: bool,
) -> None:
    record = await services_driver.harness.create_subscriber()
    if has_used_chat:
        await messenger.create_phone(record["phone_number"]).send_text("menu")
    code = await request_code(services_driver, messenger, record)

    sms = await wait_for_sms(provider)

    assert (sms.to, sms.text) == (
        record["phone_number"],
        f"{code} is your code. Don't share it with anyone.",
    )
    assert (await wait_for_status(services_driver, record, "sent"))["channel"] == "sms"
    response = await messenger.client.post(
        STATUS_PATH, json={"id": sms.id, "status": "delivered"}, auth=BearerAuth(TOKEN, "")
    )
    assert response.status_code == 200
    assert (await wait_for_status(services_driver, record, "delivered"))["channel"] == "sms"
    timeline = await get_subscriber_list(services_driver, record, "timeline?kind=message")
    statuses = [(item["status"], item["message_channel"]) for item in timeline]
    assert statuses == [("delivered", "sms")]


async def test_attempts_are_counted(
    services_driver: ServicesDriver, messenger: MessengerDriver, provider: Provider
) -> None:
    record = await services_driver.harness.create_subscriber()
    await request_code(services_driver, messenger, record)
    await wait_for_sms(provider)
    await wait_for_status(services_driver, record, "sent")
    metrics = (await messenger.client.get("/metrics")).text
    assert 'tapgate_sms_total{result="accepted"} 1.0' in metrics
    assert 'tapgate_queue_jobs{queue="sms"} 0.0' in metrics


async def test_repeated_requests_and_reports_about_an_sms_change_nothing(
    services_driver: ServicesDriver, messenger: MessengerDriver, provider: Provider
) -> None:
    """The provider accepts a code, but its first two responses are lost."""
    provider.sms.failures.append(PlannedSmsFailure(status=503, accepts=True, times=2))
    record = await services_driver.harness.create_subscriber()
    await request_code(services_driver, messenger, record)
    await wait_for_status(services_driver, record, "sent")
    (sms,) = provider.sms.list_messages()
    assert sms.requests == 3

    auth = BearerAuth(TOKEN, "")
    for status in ("delivered", "delivered", "failed"):
        report = {"id": sms.id, "status": status}
        response = await messenger.client.post(STATUS_PATH, json=report, auth=auth)
        assert response.status_code == 200
    message = await wait_for_status(services_driver, record, "delivered")
    assert message["channel"] == "sms"
    unknown = await messenger.client.post(
        STATUS_PATH, json={"id": "msg_5", "status": "delivered"}, auth=auth
    )
    assert unknown.status_code == 404
