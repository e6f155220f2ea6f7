"""Channel webhook: handshake, signed deliveries, and flow data exchange."""

import asyncio
import itertools
from collections import Counter
from datetime import timedelta
from pathlib import Path

import httpx2
import msgspec
import pytest

from builders.messenger import (
    FLOWS_PATH,
    WEBHOOK_PATH,
    MessengerApp,
    build_delivery,
    build_error,
    run_messenger_app,
)
from harness import PRODUCTION_ENVIRON
from tapgate_client.clock import system_clock

SECRET = "the secret of the app"


async def send_handshake(messenger: MessengerApp, **query: str) -> httpx2.Response:
    return await messenger.client.get(
        WEBHOOK_PATH, params={f"hub.{name}": value for name, value in query.items()}
    )


async def list_received_ids(messenger: MessengerApp) -> list[str]:
    rows = await messenger.services.database.fetch(
        "SELECT message_id FROM messenger.received ORDER BY message_id"
    )
    return [row["message_id"] for row in rows]


@pytest.mark.parametrize("challenge", ["1158201444", "<script>alert(1)</script>", "a b+é"])
async def test_handshake_returns_the_challenge_unchanged(
    offline_messenger: MessengerApp, challenge: str
) -> None:
    response = await send_handshake(
        offline_messenger, mode="subscribe", verify_token="dev-verify-token", challenge=challenge
    )
    assert (response.status_code, response.text) == (200, challenge)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_handshake_with_a_missing_or_oversized_challenge_returns_400(
    offline_messenger: MessengerApp,
) -> None:
    right = {"mode": "subscribe", "verify_token": "dev-verify-token"}
    missing = await send_handshake(offline_messenger, **right)
    assert (missing.status_code, missing.json()) == (400, build_error("hub.challenge is required"))
    endless = await send_handshake(offline_messenger, **right, challenge="1" * 1025)
    message = "hub.challenge must have at most 1024 characters"
    assert (endless.status_code, endless.json()) == (400, build_error(message))


async def test_delivery_is_stored_once_and_acknowledged(messenger: MessengerApp) -> None:
    body = msgspec.json.encode(build_delivery("wamid.1"))
    for _ in range(2):
        response = await messenger.deliver(body)
        assert (response.status_code, response.json()) == (200, {"status": "success"})
    assert await list_received_ids(messenger) == ["wamid.1"]


@pytest.mark.parametrize("body", [b"{}", b'{"entry": []}', b'{"entry": 7}', b'{"entry": [{}]}'])
async def test_delivery_without_messages_is_acknowledged(
    offline_messenger: MessengerApp, body: bytes
) -> None:
    response = await offline_messenger.deliver(body)
    assert (response.status_code, response.json()) == (200, {"status": "success"})


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"null", b"[" * 100_000])
async def test_malformed_delivery_returns_400(offline_messenger: MessengerApp, body: bytes) -> None:
    response = await offline_messenger.deliver(body)
    message = "The body must be a JSON object"
    assert (response.status_code, response.json()) == (400, build_error(message))


async def test_message_above_the_rate_limit_is_acknowledged_but_throttled(
    tmp_path: Path, database_url: str
) -> None:
    """The webhook and the compatibility endpoint share the limit, and one notice is sent."""
    async with run_messenger_app(tmp_path, database_url, TAPGATE_MESSENGER_RATE="2") as messenger:
        assert (await messenger.post_message()).status_code == 200
        for number in range(4):
            body = msgspec.json.encode(build_delivery(f"wamid.{number}"))
            response = await messenger.deliver(body)
            assert (response.status_code, response.json()) == (200, {"status": "success"})
        assert (await messenger.post_message()).status_code == 429
        database = messenger.services.database
        rows = await database.fetch("SELECT status FROM messenger.received ORDER BY message_id")
        assert [row["status"] for row in rows] == ["waiting"] + ["throttled"] * 3
        assert await database.fetchval("SELECT count(*) FROM messenger.outbox") == 1


async def test_delivery_that_cannot_be_stored_returns_503(offline_messenger: MessengerApp) -> None:
    response = await offline_messenger.deliver(msgspec.json.encode(build_delivery("wamid.1")))
    assert response.status_code == 503
    expected = build_error("The messenger is temporarily unavailable. Try again in a few seconds.")
    assert response.json() == expected
    assert response.headers["retry-after"] == "1"


async def test_signed_delivery_is_accepted_in_production(tmp_path: Path, database_url: str) -> None:
    async with run_messenger_app(
        tmp_path, database_url, **PRODUCTION_ENVIRON, TAPGATE_MESSENGER_APP_SECRET=SECRET
    ) as messenger:
        response = await messenger.deliver(msgspec.json.encode(build_delivery("wamid.1")), SECRET)
    assert response.status_code == 200


async def test_flow_with_an_invalid_signature_returns_432(
    tmp_path: Path, database_url: str
) -> None:
    async with run_messenger_app(
        tmp_path, database_url, TAPGATE_MESSENGER_APP_SECRET=SECRET
    ) as messenger:
        missing = await messenger.client.post(FLOWS_PATH, content=b"{}")
        assert missing.status_code == 432
        assert missing.json() == build_error("X-Hub-Signature-256 is missing")
        headers = {"X-Hub-Signature-256": "sha256=" + "0" * 64}
        wrong = await messenger.client.post(FLOWS_PATH, content=b"{}", headers=headers)
        assert (wrong.status_code, wrong.json()) == (
            432,
            build_error("X-Hub-Signature-256 is invalid"),
        )


async def test_flow_that_cannot_be_decrypted_returns_421(offline_messenger: MessengerApp) -> None:
    for body in (b"", b"{}", b"[]", b"\xff", b'{"encrypted_flow_data": 1}'):
        response = await offline_messenger.client.post(FLOWS_PATH, content=body)
        assert response.status_code == 421, body
        assert response.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("kind", ["reaction", "edit", "revoke", "deleted"])
async def test_reactions_edits_and_deletions_are_acknowledged_and_ignored(
    messenger: MessengerApp, kind: str
) -> None:
    body = build_delivery("wamid.1")
    message = body["entry"][0]["changes"][0]["value"]["messages"][0]
    message |= {"type": kind, kind: {"message_id": "wamid.0", "emoji": "👍"}}
    response = await messenger.deliver(msgspec.json.encode(body))
    assert (response.status_code, response.json()) == (200, {"status": "success"})
    assert await list_received_ids(messenger) == []
    count = await messenger.services.database.fetchval("SELECT count(*) FROM messenger.outbox")
    assert count == 0


async def test_messages_to_another_number_are_acknowledged_and_ignored(
    tmp_path: Path, database_url: str
) -> None:
    own = {"TAPGATE_MESSENGER_PHONE_NUMBER_ID": "1065"}
    async with run_messenger_app(tmp_path, database_url, **own) as messenger:
        for number in ("1065", "9999"):
            body = build_delivery(f"wamid.{number}")
            value = body["entry"][0]["changes"][0]["value"]
            value["metadata"] = {"phone_number_id": number}
            value["statuses"] = [{"id": f"sent.{number}", "status": "read"}]
            response = await messenger.deliver(msgspec.json.encode(body))
            assert response.status_code == 200
        assert await list_received_ids(messenger) == ["wamid.1065"]
        rows = await messenger.services.database.fetch("SELECT * FROM messenger.statuses")
        assert [row["channel_message_id"] for row in rows] == ["sent.1065"]


async def test_parallel_deliveries_do_not_exceed_the_rate_limit_of_a_phone(
    messenger: MessengerApp,
) -> None:
    """Simulates processes whose clocks differ by up to 60 milliseconds."""
    now, readings = system_clock(), itertools.count()
    messenger.services.clock = lambda: now - timedelta(milliseconds=next(readings) * 37 % 60)
    bodies = [msgspec.json.encode(build_delivery(f"wamid.{number}")) for number in range(60)]
    responses = await asyncio.gather(*(messenger.deliver(body) for body in bodies))
    assert {response.status_code for response in responses} == {200}
    rows = await messenger.services.database.fetch("SELECT status FROM messenger.received")
    assert Counter(row["status"] for row in rows) == {"waiting": 30, "throttled": 30}
    count = await messenger.services.database.fetchval("SELECT count(*) FROM messenger.outbox")
    assert count == 1  # a single rate limit notice
