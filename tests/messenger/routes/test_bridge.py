"""Compatibility endpoint: exact error responses and replies."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from builders.messenger import (
    BRIDGE_PATH,
    MESSAGE_BODY,
    PHONE,
    MessengerApp,
    build_error,
    run_messenger_app,
)

OTHER_PHONE = "+23276999999"


def build_image_data_uri(kind: str = "JPEG", prefix: str = "data:image/jpeg;base64,") -> str:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(file, kind)
    return prefix + base64.b64encode(file.getvalue()).decode()


async def test_message_gets_a_reply(messenger: MessengerApp) -> None:
    response = await messenger.post_message(
        message="menu", unknown="ignored", messageType=None, media=None
    )
    assert response.status_code == 200
    body = response.json()
    assert body.keys() == {"answer", "status"}
    assert body["status"] == "success"
    assert body["answer"]


@pytest.mark.parametrize("field", ["event", "from", "phoneE164"])
@pytest.mark.parametrize("value", ["absent", None, ""])
async def test_missing_field_is_named_in_the_error(
    offline_messenger: MessengerApp, field: str, value: str | None
) -> None:
    body = {**MESSAGE_BODY, field: value}
    if value == "absent":
        del body[field]
    response = await offline_messenger.client.post(BRIDGE_PATH, json=body)
    assert (response.status_code, response.json()) == (400, build_error(f"{field} is required"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"event": "status"}, "event must be message"),
        ({"event": 1}, "event must be a string"),
        ({"from": ["x"]}, "from must be a string"),
        ({"from": "x" * 256}, "from must have at most 255 characters"),
        ({"from": "x\0"}, "from must not contain NUL"),
        ({"phoneE164": 23276123456}, "phoneE164 must be a string"),
        ({"message": {"text": "menu"}}, "message must be a string"),
        ({"message": "x" * 4097}, "message must have at most 4096 characters"),
        ({"message": "me\0nu"}, "message must not contain NUL"),
        ({"messageType": 7}, "messageType must be a string"),
        ({"hasMedia": "yes"}, "hasMedia must be true or false"),
        ({"hasMedia": True}, "media.data is required"),
        ({"hasMedia": True, "media": {}}, "media.data is required"),
        ({"hasMedia": True, "media": {"data": None}}, "media.data is required"),
        ({"media": []}, "media must be an object"),
        ({"media": {"data": 1}}, "media.data must be a string"),
        ({"media": {"size": "1"}}, "media.size must be a number"),
        ({"media": {"filename": 1}}, "media.filename must be a string"),
        ({"media": {"mimetype": 1}}, "media.mimetype must be a string"),
        ({"messageType": "image", "message": None}, "media.data is required"),
    ],
)
async def test_invalid_field_is_named_in_the_error(
    offline_messenger: MessengerApp, fields: dict[str, Any], message: str
) -> None:
    response = await offline_messenger.post_message(**fields)
    assert (response.status_code, response.json()) == (400, build_error(message))


@pytest.mark.parametrize(
    ("phone", "problem"),
    [
        *((phone, "must be a phone number in E.164 format, such as +23276123456") for phone in (
            "23276123456", "076123456", "+232 76 123456", "+123456", "+" + "1" * 16,
            "+0123456789", "+2327612345x", "+２３２７６１２３４５６", " ", "+23276123456\n",
        )),
        ("+99912345678", "must start with a valid country code"),
    ],
)  # fmt: skip
async def test_invalid_phone_number_is_rejected(
    offline_messenger: MessengerApp, phone: str, problem: str
) -> None:
    response = await offline_messenger.post_message(phoneE164=phone)
    assert (response.status_code, response.json()) == (400, build_error(f"phoneE164 {problem}"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not JSON"),
        (b"{", "The body is not JSON"),
        (b'{"message": "\\ud800"}', "The body is not JSON"),
        (b"\xff", "The body is not UTF-8"),
        (b'{"unknown": "\xff"}', "The body is not UTF-8"),
        (b'{"unknown": ' + b"[" * 100_000, "The body is nested too deeply"),
        (b"[]", "The body must be a JSON object"),
        (b"null", "The body must be a JSON object"),
    ],
)
async def test_body_that_is_not_a_json_object_is_rejected(
    offline_messenger: MessengerApp, body: bytes, message: str
) -> None:
    response = await offline_messenger.client.post(BRIDGE_PATH, content=body)
    assert (response.status_code, response.json()) == (400, build_error(message))


async def test_image_is_accepted(messenger: MessengerApp) -> None:
    media = {
        "data": build_image_data_uri(),
        "mimetype": "image/jpeg",
        "filename": "me.jpg",
        "size": 600,
    }
    for fields in ({"hasMedia": True}, {}, {"message": None, "messageType": "image"}):
        response = await messenger.post_message(**fields, media=media)
        assert (response.status_code, response.json()["status"]) == (200, "success")


async def test_media_is_ignored_when_has_media_is_false(messenger: MessengerApp) -> None:
    response = await messenger.post_message(hasMedia=False, media={"data": "no picture at all"})
    assert response.status_code == 200


async def test_body_limit_leaves_room_for_a_base64_encoded_image(messenger: MessengerApp) -> None:
    for size, status in ((7 * 1024 * 1024, 400), (9 * 1024 * 1024, 413)):
        response = await messenger.post_message(hasMedia=True, media={"data": "x" * size})
        assert response.status_code == status
    assert response.json() == build_error("Request body too large")


async def test_rate_limit_of_a_phone_is_shared_by_all_processes(
    tmp_path: Path, database_url: str
) -> None:
    """Another phone is not affected."""
    rate = {"TAPGATE_MESSENGER_RATE": "3"}
    async with (
        run_messenger_app(tmp_path, database_url, **rate) as first,
        run_messenger_app(tmp_path, database_url, **rate) as second,
    ):
        responses = [await process.post_message() for process in (first, second, first)]
        assert [response.status_code for response in responses] == [200, 200, 200]
        for process in (first, second):
            throttled = await process.post_message()
            body = throttled.json()
            seconds = body.pop("retryAfter")
            assert (throttled.status_code, body) == (429, build_error("Too many messages"))
            assert isinstance(seconds, int)
            assert 1 <= seconds <= 60
            assert throttled.headers["retry-after"] == str(seconds)
        assert (await second.post_message(phoneE164=OTHER_PHONE)).status_code == 200


async def test_invalid_message_does_not_count_toward_the_rate_limit(
    tmp_path: Path, database_url: str
) -> None:
    async with run_messenger_app(tmp_path, database_url, TAPGATE_MESSENGER_RATE="1") as messenger:
        assert (await messenger.post_message(message="x" * 4097)).status_code == 400
        assert (await messenger.post_message()).status_code == 200
        assert (await messenger.post_message()).status_code == 429


async def test_unreachable_gateway_returns_500_with_a_reply(messenger: MessengerApp) -> None:
    messenger.gateway.is_unreachable = True
    response = await messenger.post_message(message="balance")
    body = response.json()
    assert response.status_code == 500
    assert body.keys() == {"error", "answer", "status"}
    assert (body["error"], body["status"]) == ("Internal error", "error")
    assert body["answer"]


async def test_unavailable_database_returns_500_with_a_reply(
    offline_messenger: MessengerApp,
) -> None:
    response = await offline_messenger.post_message()
    assert response.status_code == 500
    assert response.json() == {
        "error": "Internal error",
        "answer": "Tapgate is unavailable right now. Please try again in a few minutes. If you were"
        " sending money, check your history first.\n\n"
        "Tapgate est momentanément indisponible. Veuillez réessayer dans quelques minutes. Si vous"
        " étiez en train d'envoyer de l'argent, consultez d'abord votre historique.",
        "status": "error",
    }


async def test_each_phone_has_one_conversation(messenger: MessengerApp) -> None:
    for phone in (PHONE, PHONE, OTHER_PHONE):
        assert (await messenger.post_message(phoneE164=phone)).status_code == 200
    body = (await messenger.client.get("/health")).json()
    assert body["activeConversations"] == 2


async def test_number_with_a_trunk_zero_is_the_same_person(messenger: MessengerApp) -> None:
    """The gateway stores the number without its country's trunk zero."""
    for phone in ("+442079460958", "+4402079460958"):
        response = await messenger.post_message(phoneE164=phone)
        assert response.status_code == 200, json.dumps(response.json())
    found = await messenger.services.database.fetch("SELECT address FROM messenger.conversations")
    assert [row["address"] for row in found] == ["+442079460958"]


@pytest.mark.parametrize("kind", ["reaction", "edit", "revoke", "deleted"])
async def test_reactions_edits_and_deletions_get_an_empty_reply(
    messenger: MessengerApp, kind: str
) -> None:
    response = await messenger.post_message(messageType=kind, message="👍")
    assert (response.status_code, response.json()) == (200, {"answer": "", "status": "success"})
    count = "SELECT count(*) FROM messenger.conversations"
    assert await messenger.services.database.fetchval(count) == 0
