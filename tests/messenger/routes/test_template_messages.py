"""Templates sent by internal services, and the outbox that lists them in development."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
import pytest

from builders.messenger import (
    CODE_BODY,
    OUTBOX_PATH,
    PHONE,
    TEMPLATE_PATH,
    MessengerApp,
    build_error,
    run_messenger_app,
)
from harness import PRODUCTION_ENVIRON
from tapgate_client import ids, signing


async def send_template(
    messenger: MessengerApp, key: str | None = None, **fields: Any
) -> httpx2.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await messenger.client.post(
        TEMPLATE_PATH, json=CODE_BODY | fields, headers=headers, auth=messenger.get_service_auth()
    )


async def list_outbox(messenger: MessengerApp, to: str = PHONE) -> list[dict[str, Any]]:
    response = await messenger.client.get(
        OUTBOX_PATH, params={"to": to}, auth=messenger.get_service_auth("messenger")
    )
    assert response.status_code == 200, response.text
    body = response.json()
    assert body.keys() == {"data"}
    messages: list[dict[str, Any]] = body["data"]
    return messages


async def test_template_is_accepted_and_listed_in_the_outbox(messenger: MessengerApp) -> None:
    responses = [await send_template(messenger, parameters=[word]) for word in ("first", "second")]
    assert [response.status_code for response in responses] == [202, 202]
    message_ids = [response.json()["message_id"] for response in responses]
    assert all(response.json().keys() == {"message_id"} for response in responses)
    assert all(ids.decode(ids.MESSAGE, message_id) is not None for message_id in message_ids)
    messages = await list_outbox(messenger)
    assert [message.pop("message_id") for message in messages] == message_ids[::-1]
    assert all(message.pop("created_at").endswith("Z") for message in messages)
    assert [message.pop("payloads")[0]["type"] for message in messages] == ["template", "template"]
    common = {
        "to": PHONE,
        "template": "one_time_code",
        "language": "en",
        "status": "queued",
        "channel": "chat",
    }
    assert messages == [common | {"parameters": ["second"]}, common | {"parameters": ["first"]}]
    assert await list_outbox(messenger, "+23276999999") == []


async def test_replayed_idempotency_key_returns_the_original_message(
    messenger: MessengerApp,
) -> None:
    first, again = await send_template(messenger, "msg_1"), await send_template(messenger, "msg_1")
    assert (again.status_code, again.json()) == (202, first.json())
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert (await send_template(messenger, "msg_2")).json() != first.json()
    assert len(await list_outbox(messenger)) == 2


async def test_idempotency_keys_are_scoped_to_the_caller(messenger: MessengerApp) -> None:
    first = await send_template(messenger, "msg_1")
    second = await messenger.client.post(
        TEMPLATE_PATH,
        json=CODE_BODY,
        headers={"Idempotency-Key": "msg_1"},
        auth=messenger.get_service_auth("messenger"),
    )
    assert first.json() != second.json()


@pytest.mark.parametrize("field", ["to", "template", "parameters"])
@pytest.mark.parametrize("is_null", [True, False])
async def test_missing_field_is_named_in_the_error(
    offline_messenger: MessengerApp, field: str, is_null: bool
) -> None:
    body: dict[str, Any] = {name: value for name, value in CODE_BODY.items() if name != field}
    if is_null:
        body[field] = None
    response = await offline_messenger.client.post(
        TEMPLATE_PATH, json=body, auth=offline_messenger.get_service_auth()
    )
    assert (response.status_code, response.json()) == (400, build_error(f"{field} is required"))


E164_ERROR = "must be a phone number in E.164 format, such as +23276123456"
TEMPLATE_ERROR = "template must be 1 to 64 lowercase letters, digits or underscores"
LANGUAGE_ERROR = "language must be a code such as en or en_US"
PARAMETERS_ERROR = "each parameter must have at most 1024 characters and no NUL"


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"to": 1}, 400, "to must be a string"),
        ({"template": []}, 400, "template must be a string"),
        ({"language": 1}, 400, "language must be a string"),
        ({"parameters": "918273"}, 400, "parameters must be an array"),
        ({"parameters": ["1", 918273]}, 400, "parameters[1] must be a string"),
        ({"parameters": [None]}, 400, "parameters[0] must be a string"),
        ({"to": ""}, 422, f"to {E164_ERROR}"),
        ({"to": "918273"}, 422, f"to {E164_ERROR}"),
        ({"template": ""}, 422, TEMPLATE_ERROR),
        ({"template": "One-Time"}, 422, TEMPLATE_ERROR),
        ({"template": "one_time\n"}, 422, TEMPLATE_ERROR),
        ({"template": "x" * 65}, 422, TEMPLATE_ERROR),
        ({"language": ""}, 422, LANGUAGE_ERROR),
        ({"language": "english"}, 422, LANGUAGE_ERROR),
        ({"language": "en-US"}, 422, LANGUAGE_ERROR),
        ({"parameters": ["1"] * 21}, 422, "parameters must have at most 20 items"),
        ({"parameters": ["918273" * 200]}, 422, PARAMETERS_ERROR),
        ({"parameters": ["9182\0"]}, 422, PARAMETERS_ERROR),
    ],
)
async def test_invalid_field_is_named_in_the_error(
    offline_messenger: MessengerApp, fields: dict[str, Any], status: int, message: str
) -> None:
    response = await send_template(offline_messenger, **fields)
    assert (response.status_code, response.json()) == (status, build_error(message))


@pytest.mark.parametrize("language", ["en", "fr", "en_US", "fil"])
async def test_language_code_with_or_without_a_region_is_accepted(
    messenger: MessengerApp, language: str
) -> None:
    assert (await send_template(messenger, language=language)).status_code == 202


@pytest.mark.parametrize("key", ["", "x" * 65, "with space"])
async def test_invalid_idempotency_key_is_rejected(
    offline_messenger: MessengerApp, key: str
) -> None:
    response = await send_template(offline_messenger, key)
    message = "Idempotency-Key must be 1 to 64 ASCII characters without spaces"
    assert (response.status_code, response.json()) == (422, build_error(message))


async def test_service_signature_covers_the_query(messenger: MessengerApp) -> None:
    timestamp = str(int(messenger.services.clock().timestamp()))
    secret = messenger.services.settings.service_secrets["gateway"].encode()
    for query, status in ((b"to=%2B23276123456", 200), (b"to=%2B23276999999", 401)):
        signature = signing.sign_service(secret, "GET", OUTBOX_PATH, query, timestamp)
        headers = {
            "X-Service-Name": "gateway",
            "X-Service-Timestamp": timestamp,
            "X-Service-Signature": signature,
        }
        response = await messenger.client.get(f"{OUTBOX_PATH}?to={quote(PHONE)}", headers=headers)
        assert response.status_code == status


@pytest.mark.parametrize("encoded", ["%2B23276123456", "+23276123456", "%2023276123456"])
async def test_plus_sign_in_the_query_is_accepted_in_any_encoding(
    messenger: MessengerApp, encoded: str
) -> None:
    await send_template(messenger)
    response = await messenger.client.get(
        f"{OUTBOX_PATH}?to={encoded}", auth=messenger.get_service_auth()
    )
    assert len(response.json()["data"]) == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "to is required"),
        ("?to=", "to is required"),
        ("?to=23276123456", f"to {E164_ERROR}"),
        ("?to=%00", f"to {E164_ERROR}"),
        ("?to=%ff", f"to {E164_ERROR}"),
        ("?to=%2B99912345678", "to must start with a valid country code"),
    ],
)
async def test_invalid_outbox_recipient_is_rejected(
    offline_messenger: MessengerApp, query: str, message: str
) -> None:
    response = await offline_messenger.client.get(
        OUTBOX_PATH + query, auth=offline_messenger.get_service_auth()
    )
    assert (response.status_code, response.json()) == (400, build_error(message))


async def test_outbox_does_not_exist_in_production(tmp_path: Path, database_url: str) -> None:
    async with run_messenger_app(tmp_path, database_url, **PRODUCTION_ENVIRON) as messenger:
        assert (await send_template(messenger)).status_code == 202
        for auth in (None, messenger.get_service_auth()):
            response = await messenger.client.get(f"{OUTBOX_PATH}?to={quote(PHONE)}", auth=auth)
            assert (response.status_code, response.json()) == (404, build_error("Not found"))
        paths = (await messenger.client.get("/openapi.json")).json()["paths"]
        assert OUTBOX_PATH not in paths
        assert TEMPLATE_PATH in paths


async def test_template_parameters_are_stored_sealed(messenger: MessengerApp) -> None:
    code = "918273" * 3  # six digits could occur in an id or a timestamp by chance
    await send_template(messenger, parameters=[code])
    row = await messenger.services.database.fetchrow("SELECT * FROM messenger.outbox")
    assert row is not None
    assert code not in str(msgspec.to_builtins(dict(row), enc_hook=str))
