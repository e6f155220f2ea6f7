"""The fake provider enforces the real provider's rules and uses its message formats."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest

from builders.auth import FakeClock
from drivers.webhooks import (
    ACCESS_TOKEN,
    GRAPH_APP_SECRET,
    PHONE_NUMBER_ID,
    ProviderWebhookServer,
    open_graph_client,
)
from tapgate.messenger.channel.delivery_parser import parse_delivery
from tapgate.messenger.model import (
    FormClosed,
    ImageFile,
    NumberChanged,
    OptionChosen,
    ReceivedMessage,
    TextContent,
)
from tapgate_client import signing
from tapgate_sandbox.fake_provider.provider import Provider
from tapgate_sandbox.fake_provider.rules import ProviderRules
from tapgate_sandbox.fake_provider.server import serve

PHONE = "23276123456"
TEXT = {
    "messaging_product": "whatsapp",
    "recipient_type": "individual",
    "to": PHONE,
    "type": "text",
    "text": {"body": "Hello"},
}
TEMPLATE: dict[str, Any] = {
    "messaging_product": "whatsapp",
    "to": PHONE,
    "type": "template",
    "template": {"name": "receipt", "language": {"code": "en"}},
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def webhook() -> AsyncIterator[ProviderWebhookServer]:
    webhook = ProviderWebhookServer()
    async with webhook.listen():
        yield webhook


@pytest.fixture
async def provider(clock: FakeClock, webhook: ProviderWebhookServer) -> Provider:
    return Provider(
        access_token=ACCESS_TOKEN,
        phone_number_id=PHONE_NUMBER_ID,
        callback=webhook.url,
        app_secret=GRAPH_APP_SECRET,
        rules=ProviderRules(
            max_per_second=5, pair_burst=3, templates={"receipt": 0}, redelivery_delays=(0.01,)
        ),
        clock=clock,
    )


@pytest.fixture
async def graph(provider: Provider) -> AsyncIterator[httpx2.AsyncClient]:
    async with serve(provider) as url, open_graph_client(url) as client:
        yield client


async def _send_user_message(graph: httpx2.AsyncClient, **content: Any) -> str:
    response = await graph.post(f"/_fake/users/+{PHONE}/say", json=content)
    assert response.status_code == 200
    return str(response.json()["message_id"])


async def _send_and_get_error(graph: httpx2.AsyncClient, message: Any = TEXT) -> int:
    """Send a message and return the error code, or 0 on success."""
    response = await graph.post(f"/v23.0/{PHONE_NUMBER_ID}/messages", json=message)
    if response.status_code == 200:
        return 0
    error = response.json()["error"]
    assert set(error) >= {"message", "type", "code", "error_data", "fbtrace_id"}
    assert str(error["code"]) in error["message"]
    return int(error["code"])


def _parse_messages(webhook: ProviderWebhookServer) -> list[ReceivedMessage]:
    return [received for body, _ in webhook.received for received in parse_delivery(body).messages]


async def test_accepted_message_is_recorded_and_its_status_delivered(
    graph: httpx2.AsyncClient, webhook: ProviderWebhookServer
) -> None:
    await _send_user_message(graph, text="hi")
    response = await graph.post(f"/{PHONE_NUMBER_ID}/messages", json=TEXT)
    accepted = response.json()
    assert accepted["contacts"] == [{"input": PHONE, "wa_id": PHONE}]
    message_id = accepted["messages"][0]["id"]
    (sent,) = (await graph.get(f"/_fake/sent?to=+{PHONE}")).json()["data"]
    assert (sent["id"], sent["message"]) == (message_id, TEXT)
    assert (await graph.get("/_fake/sent?to=1")).json() == {"data": []}
    async with asyncio.timeout(30):
        while len(webhook.received) < 2:
            await asyncio.sleep(0.01)
    status = msgspec.json.decode(webhook.received[1][0])["entry"][0]["changes"][0]["value"]
    assert status["statuses"][0]["id"] == message_id
    assert parse_delivery(webhook.received[1][0]).messages == []


async def test_wrong_token_or_phone_number_id_is_rejected(graph: httpx2.AsyncClient) -> None:
    headers = {"Authorization": "Bearer another"}
    response = await graph.post(f"/{PHONE_NUMBER_ID}/messages", json=TEXT, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (401, 190)
    response = await graph.post("/1/messages", json=TEXT)
    assert (response.status_code, response.json()["error"]["error_subcode"]) == (400, 33)


async def test_free_form_message_is_allowed_only_within_24_hours_of_a_user_message(
    graph: httpx2.AsyncClient, clock: FakeClock
) -> None:
    assert await _send_and_get_error(graph) == 131047
    await _send_user_message(graph, text="hi")
    clock.advance(hours=24)
    assert await _send_and_get_error(graph) == 0
    clock.advance(seconds=1)
    assert await _send_and_get_error(graph) == 131047
    assert await _send_and_get_error(graph, TEMPLATE) == 0


async def test_messages_to_one_recipient_are_rate_limited(
    graph: httpx2.AsyncClient, clock: FakeClock
) -> None:
    await _send_user_message(graph, text="hi")
    assert [await _send_and_get_error(graph) for _ in range(4)] == [0, 0, 0, 131056]
    clock.advance(seconds=6)
    assert [await _send_and_get_error(graph) for _ in range(2)] == [0, 131056]


async def test_messages_across_recipients_are_rate_limited(
    graph: httpx2.AsyncClient, clock: FakeClock
) -> None:
    messages = [TEMPLATE | {"to": f"2327600000{item}"} for item in range(6)]
    assert [await _send_and_get_error(graph, entry) for entry in messages] == [
        0,
        0,
        0,
        0,
        0,
        130429,
    ]
    clock.advance(seconds=1)
    assert await _send_and_get_error(graph, messages[5]) == 0


async def test_planned_failures_are_returned_and_a_departed_user_is_unreachable(
    graph: httpx2.AsyncClient,
) -> None:
    await _send_user_message(graph, text="hi")
    await graph.post("/_fake/fail", json={"code": 131000, "times": 2})
    assert [await _send_and_get_error(graph) for _ in range(3)] == [131000, 131000, 0]
    await graph.post(f"/_fake/users/{PHONE}/leave")
    assert await _send_and_get_error(graph) == 131026


def _build_interactive(kind: str, action: dict[str, Any], body: str = "?") -> dict[str, Any]:
    return TEXT | {
        "type": "interactive",
        "interactive": {"type": kind, "body": {"text": body}, "action": action},
    }


def _build_buttons(*replies: tuple[str, str]) -> dict[str, Any]:
    return {
        "buttons": [{"type": "reply", "reply": {"id": id, "title": title}} for id, title in replies]
    }


def _build_list(*rows: dict[str, str], button: str = "Menu") -> dict[str, Any]:
    return {"button": button, "sections": [{"rows": list(rows)}]}


def _build_options(count: int) -> list[dict[str, str]]:
    return [{"id": str(item), "title": str(item)} for item in range(count)]


FLOW_PARAMETERS = {
    "flow_message_version": "3",
    "flow_token": "t",
    "flow_name": "pin",
    "flow_cta": "PIN",
    "flow_action": "data_exchange",
}


MESSAGES_AND_ERROR_CODES: list[tuple[Any, int]] = [
    ([], 131009),
    (TEXT | {"messaging_product": "sms"}, 100),
    (TEXT | {"recipient_type": "business_scoped_user_id"}, 100),
    (TEXT | {"to": None}, 131008),
    (TEXT | {"to": "nobody"}, 131009),
    (TEXT | {"to": None, "recipient": "nobody"}, 131009),
    (TEXT | {"type": "hologram"}, 131051),
    (TEXT | {"text": None}, 131008),
    (TEXT | {"text": {"body": ""}}, 131009),
    (TEXT | {"text": {"body": "x" * 4097}}, 131009),
    (TEXT | {"type": "document", "document": {"link": "ftp://example.com"}}, 131009),
    (TEMPLATE | {"template": {"name": "receipt"}}, 131008),
    (TEMPLATE | {"template": {"name": "none", "language": {"code": "en"}}}, 132001),
    (
        TEMPLATE
        | {
            "template": {
                "name": "receipt",
                "language": {"code": "en"},
                "components": [{"type": "body", "parameters": [{"type": "text", "text": "1"}]}],
            }
        },
        132000,
    ),
    (_build_interactive("hologram", {}), 131009),
    (_build_interactive("button", _build_buttons(("a", "A"))), 0),
    (_build_interactive("button", _build_buttons(("a", "A")), "x" * 1025), 131009),
    (_build_interactive("button", _build_buttons()), 131009),
    (_build_interactive("button", _build_buttons(*((one, one) for one in "abcd"))), 131009),
    (_build_interactive("button", _build_buttons(("a", "A"), ("b", "A"))), 131009),
    (_build_interactive("button", _build_buttons(("a", "A"), ("a", "B"))), 131009),
    (_build_interactive("button", _build_buttons(("a", "x" * 21))), 131009),
    (_build_interactive("button", _build_buttons(("x" * 257, "A"))), 131009),
    (_build_interactive("list", _build_list(*_build_options(10))), 0),
    (_build_interactive("list", _build_list(*_build_options(11))), 131009),
    (_build_interactive("list", _build_list({"id": "1", "title": "x" * 25})), 131009),
    (_build_interactive("list", _build_list({"id": "x" * 201, "title": "1"})), 131009),
    (
        _build_interactive("list", _build_list({"id": "1", "title": "1", "description": "x" * 73})),
        131009,
    ),
    (_build_interactive("list", _build_list(*_build_options(1), button="x" * 21)), 131009),
    (_build_interactive("list", _build_list(*_build_options(1), *_build_options(1))), 131009),
    (_build_interactive("flow", {"name": "flow", "parameters": FLOW_PARAMETERS}), 0),
    (
        _build_interactive(
            "flow", {"name": "flow", "parameters": FLOW_PARAMETERS | {"flow_id": "1"}}
        ),
        131009,
    ),
    (
        _build_interactive("flow", {"name": "flow", "parameters": FLOW_PARAMETERS | {"mode": "?"}}),
        131009,
    ),
    (
        _build_interactive(
            "flow", {"name": "flow", "parameters": FLOW_PARAMETERS | {"flow_token": ""}}
        ),
        131009,
    ),
]


async def test_message_format_and_limits_are_validated(
    graph: httpx2.AsyncClient, clock: FakeClock
) -> None:
    await _send_user_message(graph, text="hi")
    for message, code in MESSAGES_AND_ERROR_CODES:
        clock.advance(seconds=6)
        assert (message, await _send_and_get_error(graph, message)) == (message, code)


async def test_deliveries_are_signed_and_repeated_until_acknowledged(
    graph: httpx2.AsyncClient, webhook: ProviderWebhookServer
) -> None:
    webhook.statuses = [500]
    message_id = await _send_user_message(graph, text="hi", copies=2)
    async with asyncio.timeout(30):
        while len(webhook.received) < 3:
            await asyncio.sleep(0.01)
    assert {message.message_id for message in _parse_messages(webhook)} == {message_id}
    for body, signature in webhook.received:
        assert signature.startswith("sha256=")
        assert signing.verify_webhook(GRAPH_APP_SECRET.encode(), signature, body)


async def test_held_messages_are_delivered_together_in_reverse_order(
    graph: httpx2.AsyncClient, webhook: ProviderWebhookServer
) -> None:
    message_ids = [
        await _send_user_message(graph, text=text, hold=True) for text in ("one", "two", "three")
    ]
    assert webhook.received == []
    response = await graph.post("/_fake/deliver", json={"order": "reversed", "together": True})
    assert response.json() == {"delivered": 3}
    assert len(webhook.received) == 1
    assert [message.message_id for message in _parse_messages(webhook)] == message_ids[::-1]


async def test_user_actions_are_delivered_as_messages(
    graph: httpx2.AsyncClient, webhook: ProviderWebhookServer
) -> None:
    uploaded = await graph.post(
        "/_fake/media", content=b"a picture", headers={"Content-Type": "image/png"}
    )
    media_id = uploaded.json()["id"]
    await _send_user_message(graph, text="hi")
    await _send_user_message(graph, tap="menu:send")
    await _send_user_message(graph, button="stop")
    await _send_user_message(graph, flow={"flow_token": "t1"})
    await _send_user_message(graph, image=media_id)
    await graph.post(f"/_fake/users/{PHONE}/change-number", json={"to": "23276000000"})
    messages = _parse_messages(webhook)
    assert {message.address for message in messages} == {f"+{PHONE}"}
    image = messages[4].content
    assert isinstance(image, ImageFile)
    assert (image.media_id, image.mime_type) == (media_id, "image/png")
    assert [sent.content for sent in messages if sent.content != image] == [
        TextContent(body="hi"),
        OptionChosen(id="menu:send"),
        OptionChosen(id="stop"),
        FormClosed(),
        NumberChanged(),
    ]


async def test_user_without_a_phone_number_is_addressed_by_user_id(
    graph: httpx2.AsyncClient, webhook: ProviderWebhookServer
) -> None:
    await graph.post("/_fake/users/SL.77/say", json={"text": "hi"})
    (received,) = _parse_messages(webhook)
    assert (received.address, received.user_id) == ("user:SL.77", "SL.77")
    message = {key: value for key, value in TEXT.items() if key != "to"} | {"recipient": "SL.77"}
    assert await _send_and_get_error(graph, message) == 0


async def test_media_url_requires_the_token_and_expires(
    graph: httpx2.AsyncClient, clock: FakeClock
) -> None:
    uploaded = await graph.post("/_fake/media", content=b"a picture")
    found = (await graph.get(f"/{uploaded.json()['id']}")).json()
    assert (await graph.get(found["url"])).content == b"a picture"
    without = await graph.get(found["url"], headers={"Authorization": ""})
    assert without.status_code == 401
    clock.advance(minutes=5)
    assert (await graph.get(found["url"])).status_code == 404
    assert (await graph.get("/123")).status_code == 400


async def test_malformed_request_is_rejected(graph: httpx2.AsyncClient) -> None:
    response = await graph.post(f"/{PHONE_NUMBER_ID}/messages", content=b"{nonsense")
    assert (response.status_code, response.json()["error"]["code"]) == (400, 100)
    assert (await graph.post("/_fake/nothing")).status_code == 404
    assert (await graph.post(f"/_fake/users/{PHONE}/say", json={"txt": "hi"})).status_code == 400


async def test_fake_provider_runs_as_a_standalone_process() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tapgate_sandbox.fake_provider", "--port", "0", "--access-token", ACCESS_TOKEN),
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        async with open_graph_client(line.split()[-1].rstrip(".")) as client:
            assert (await client.get("/_fake/sent")).json() == {"data": []}
    finally:
        process.terminate()
        await process.communicate()


async def test_malformed_request_returns_400(provider: Provider) -> None:
    async with serve(provider) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
        writer.write(b"not HTTP\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        writer.close()
