"""The SMS provider reports deliveries with the token that it gets in requests."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from builders.messenger import MessengerApp, run_messenger_app
from harness import BearerAuth
from tapgate_client import ids

PATH = "/api/v1/messages/sms-status"
TOKEN = "the SMS provider's token"
MESSAGE_ID = ids.encode(ids.MESSAGE, 1 << 58)


@pytest.fixture
async def sms_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    variables = {"TAPGATE_SMS_URL": "http://127.0.0.1:9/sms", "TAPGATE_SMS_TOKEN": TOKEN}
    async with run_messenger_app(tmp_path, database_url, **variables) as app:
        yield app


async def report(messenger: MessengerApp, token: str = TOKEN, **body: Any) -> httpx2.Response:
    body = {"id": MESSAGE_ID, "status": "delivered", **body}
    return await messenger.client.post(PATH, json=body, auth=BearerAuth(token, ""))


@pytest.mark.parametrize("status", ["delivered", "failed"])
async def test_status_is_stored_and_shown_in_the_outbox(
    sms_messenger: MessengerApp, status: str
) -> None:
    database = sms_messenger.services.database
    await database.execute(
        """INSERT INTO messenger.outbox
               (id, address, status, channel, key, next_attempt_at, created_at)
           VALUES ($1, '+23276123456', 'sent', 'sms', 'gateway:msg_1', now(), now())""",
        1 << 58,
    )
    response = await report(sms_messenger, status=status)
    assert (response.status_code, response.json()) == (200, {"status": "success"})
    listed = await sms_messenger.client.get(
        "/api/v1/messages/outbox",
        params={"to": "+23276123456"},
        auth=sms_messenger.get_service_auth(),
    )
    (message,) = listed.json()["data"]
    assert (message["status"], message["channel"]) == (status, "sms")
    assert await database.fetchval("SELECT report_at IS NOT NULL FROM messenger.outbox")


@pytest.mark.parametrize("message_id", [MESSAGE_ID, "sub_1", "", "x" * 1000, "msg_\u0000"])
async def test_unknown_id_gets_404(sms_messenger: MessengerApp, message_id: str) -> None:
    assert (await report(sms_messenger, id=message_id)).status_code == 404


@pytest.mark.parametrize(
    "body", [{"status": "sent"}, {"status": "read"}, {"status": None}, {"id": 5}, {"id": None}]
)
async def test_invalid_report_gets_400(sms_messenger: MessengerApp, body: dict[str, Any]) -> None:
    response = await report(sms_messenger, **body)
    assert response.status_code == 400
    assert next(iter(body)) in response.json()["error"]


async def test_wrong_token_gets_401(sms_messenger: MessengerApp) -> None:
    response = await report(sms_messenger, token="another token")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_without_sms_settings_every_report_gets_403(messenger: MessengerApp) -> None:
    assert (await report(messenger)).status_code == 403
