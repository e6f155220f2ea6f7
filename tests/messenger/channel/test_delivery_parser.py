"""Parsing of webhook deliveries, including malformed ones."""

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.messenger import DOCUMENTED_DELIVERY, build_message, encode_delivery
from cases import each
from tapgate.messenger.channel.delivery_parser import MalformedDeliveryError, parse_delivery
from tapgate.messenger.model import (
    ContactsShared,
    Content,
    DeliveryStatus,
    FormClosed,
    ImageFile,
    NumberChanged,
    OptionChosen,
    PlaceShared,
    ReceivedMessage,
    SharedContact,
    TextContent,
    UnsupportedMessage,
)

PHONE = "+23276123456"


def parse_messages(body: bytes, **options: Any) -> list[ReceivedMessage]:
    return parse_delivery(body, **options).messages


def _parse_content(kind: str, part: object) -> Content:
    (received,) = parse_messages(encode_delivery(build_message(kind, part)))
    return received.content


def test_documented_delivery_is_parsed() -> None:
    expected = [
        ReceivedMessage(
            message_id="wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTA=",
            address=PHONE,
            user_id=None,
            sent_at=1749416383,
            content=TextContent(body="balance"),
        )
    ]
    assert parse_messages(json.dumps(DOCUMENTED_DELIVERY).encode()) == expected


@each(
    "kind, part, content",
    [
        ("text", {"body": "hello"}, TextContent(body="hello")),
        (
            "location",
            {"latitude": 7.9, "longitude": -11.7, "name": "Market", "address": "Bo, Sierra Leone"},
            PlaceShared(latitude=7.9, longitude=-11.7, address="Bo, Sierra Leone"),
        ),
        ("location", {"latitude": 91, "longitude": 0}, UnsupportedMessage(kind="location")),
        ("location", {"latitude": True, "longitude": 0}, UnsupportedMessage(kind="location")),
        (
            "contacts",
            [
                {
                    "name": {"formatted_name": "Fatu"},
                    "phones": [{"phone": "076 222 222", "wa_id": "23276222222"}, {"phone": "x"}],
                }
            ],
            ContactsShared(contacts=(SharedContact(name="Fatu", phones=("+23276222222", "x")),)),
        ),
        ("contacts", [], UnsupportedMessage(kind="contacts")),
        ("contacts", [{}] * 99, ContactsShared(contacts=(SharedContact(name="", phones=()),) * 10)),
        ("text", {"body": "x" * 5000}, TextContent(body="x" * 4096)),
        ("text", {"body": "a\x00b\ud83dc"}, TextContent(body="abc")),
        ("text", {}, UnsupportedMessage(kind="text")),
        ("text", {"body": 7}, UnsupportedMessage(kind="text")),
        ("text", "hello", UnsupportedMessage(kind="text")),
        (
            "interactive",
            {"type": "list_reply", "list_reply": {"id": "menu:send", "title": "Send"}},
            OptionChosen(id="menu:send"),
        ),
        (
            "interactive",
            {"type": "button_reply", "button_reply": {"id": "yes:4", "title": "No"}},
            OptionChosen(id="yes:4"),
        ),
        (
            "interactive",
            {"list_reply": {"title": "menu:send"}},
            UnsupportedMessage(kind="interactive"),
        ),
        ("interactive", {"list_reply": {"id": "x" * 257}}, UnsupportedMessage(kind="interactive")),
        (
            "interactive",
            {"nfm_reply": {"response_json": '{"flow_token": "t1", "pin": "1234"}'}},
            FormClosed(),
        ),
        ("interactive", {"nfm_reply": None}, FormClosed()),
        ("button", {"payload": "stop", "text": "Stop"}, OptionChosen(id="stop")),
        ("button", {"text": "Stop"}, UnsupportedMessage(kind="button")),
        (
            "image",
            {"id": "m1", "mime_type": "image/jpeg", "sha256": "ab", "caption": "me"},
            ImageFile(media_id="m1", mime_type="image/jpeg", sha256="ab"),
        ),
        ("image", {"id": "m1"}, ImageFile(media_id="m1", mime_type=None, sha256=None)),
        ("image", {"mime_type": "image/jpeg"}, UnsupportedMessage(kind="image")),
        ("system", {"type": "user_changed_number", "wa_id": "23276000000"}, NumberChanged()),
        ("system", None, NumberChanged()),
        ("sticker", {"id": "s"}, UnsupportedMessage(kind="sticker")),
        ("unsupported", None, UnsupportedMessage(kind="unsupported")),
        ("x" * 1000, None, UnsupportedMessage(kind="unknown")),
    ],
)
def test_message_kind_is_parsed_into_its_content(kind: str, part: object, content: Content) -> None:
    assert _parse_content(kind, part) == content


def test_messages_keep_their_order_across_entries_and_changes() -> None:
    def build_entry(*groups: tuple[str, ...]) -> dict[str, Any]:
        return {
            "changes": [
                {
                    "value": {
                        "messages": [
                            build_message("text", {"body": "x"}, id=message_id)
                            for message_id in group
                        ]
                    }
                }
                for group in groups
            ]
        }

    body = json.dumps({"entry": [build_entry(("a", "b"), ("c",)), build_entry(("d",))]}).encode()
    assert [message.message_id for message in parse_messages(body)] == ["a", "b", "c", "d"]


@each(
    "body",
    [
        b"{}",
        b'{"entry": null}',
        b'{"entry": {}}',
        b'{"entry": [null, 1, {"changes": 3}]}',
        b'{"entry": [{"changes": [{}, {"value": []}]}]}',
        b'{"entry": [{"changes": [{"value": {"statuses": [{"id": "1", "status": "read"}]}}]}]}',
        b'{"entry": [{"changes": [{"value": {"messages": {"id": "a"}}}]}]}',
    ],
)
def test_delivery_without_messages_is_empty(body: bytes) -> None:
    assert parse_messages(body) == []


@each(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"entry": [',
        b'{"entry": NaN}',
        b'{"entry": -Infinity}',
        b"[" * 100_000,
        b"1",
    ],
)
def test_body_that_is_not_a_json_object_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedDeliveryError):
        parse_messages(body)


@each("missing", ["id", "from"])
@each("value", [None, "", 7, [], "\x00", "x" * 5000])
def test_message_without_a_valid_id_or_sender_is_skipped(missing: str, value: object) -> None:
    good = build_message("text", {"body": "hi"}, id="good")
    bad = build_message("text", {"body": "hi"}) | {missing: value}
    messages = parse_messages(encode_delivery(bad, good))
    assert [message.message_id for message in messages] == ["good"]


def test_group_messages_and_other_webhook_fields_are_skipped() -> None:
    message = build_message("text", {"body": "hi"}, group_id="g1")
    assert parse_messages(encode_delivery(message)) == []
    change = {"field": "history", "value": {"messages": [build_message("text", {"body": "hi"})]}}
    assert parse_messages(json.dumps({"entry": [{"changes": [change]}]}).encode()) == []


@each(
    "sender, contacts, address, user_id",
    [
        ({"from": "23276123456"}, [], PHONE, None),
        ({"from": "+23276123456"}, [], PHONE, None),
        ({}, [{"wa_id": "23276123456"}], PHONE, None),
        ({"from": "23276123456"}, [{"wa_id": "23276123456", "user_id": "SL.9"}], PHONE, "SL.9"),
        ({"from": "23276123456", "from_user_id": "SL.9"}, [], PHONE, "SL.9"),
        ({"from_user_id": "SL.9"}, [], "user:SL.9", "SL.9"),
        ({"user_id": "SL.9"}, [], "user:SL.9", "SL.9"),
        ({}, [{"user_id": "SL.9"}], "user:SL.9", "SL.9"),
        ({"from": "SL.9"}, [], "user:SL.9", "SL.9"),
        # The message names its sender, so the number of the first contact is not the sender's.
        (
            {"from_user_id": "SL.9"},
            [{"wa_id": "23276000000"}, {"user_id": "SL.9"}],
            "user:SL.9",
            "SL.9",
        ),
    ],
)
def test_sender_address_and_user_id_are_resolved(
    sender: dict[str, str], contacts: list[dict[str, str]], address: str, user_id: str | None
) -> None:
    message = {"id": "1", "timestamp": "1", "type": "text", "text": {"body": "hi"}} | sender
    (received,) = parse_messages(encode_delivery(message, contacts=contacts))
    assert (received.address, received.user_id) == (address, user_id)


@each(
    "timestamp, seconds",
    [
        ("1749416383", 1749416383),
        (1749416383, 1749416383),
        ("", 0),
        ("-1", 0),
        ("1e9", 0),
        ("9" * 12, 0),
        (10**30, 0),
        (True, 0),
        (None, 0),
        ("٣", 0),
        (1.5, 0),
    ],
)
def test_invalid_timestamp_is_parsed_as_zero(timestamp: object, seconds: int) -> None:
    (received,) = parse_messages(
        encode_delivery(build_message("text", {"body": "x"}, timestamp=timestamp))
    )
    assert received.sent_at == seconds


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["entry", "object"]) | st.text(), JSON_VALUES, max_size=3))
def test_any_json_object_is_parsed_without_error(body: dict[str, Any]) -> None:
    parse_messages(json.dumps(body).encode())


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_parsed_or_reported_as_malformed(body: bytes) -> None:
    with contextlib.suppress(MalformedDeliveryError):
        parse_messages(body)


def _list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(len(value)))
    nested = [nested_path for key in keys for nested_path in _list_paths(value[key], (*path, key))]
    return [path, *nested] if path else nested


@given(st.data())
def test_mutated_delivery_yields_only_storable_messages(data: st.DataObject) -> None:
    body = copy.deepcopy(DOCUMENTED_DELIVERY)
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(_list_paths(body)))
        parent: Any = body
        for key in path:
            parent = parent[key]
        parent[last] = data.draw(JSON_VALUES)
    for received in parse_messages(json.dumps(body).encode()):
        stored = json.dumps([received.message_id, received.address], ensure_ascii=False)
        assert "\x00" not in stored
        assert len(stored.encode()) < 2704  # maximum PostgreSQL index entry size
        if isinstance(received.content, TextContent):
            assert received.content.body is not None
            received.content.body.encode()


@each("kind", ["reaction", "edit", "revoke", "deleted"])
def test_reactions_edits_and_deletions_are_skipped(kind: str) -> None:
    part = {"message_id": "wamid.1", "emoji": "👍"}
    text_message = build_message("text", {"body": "hi"}, id="kept")
    found = [
        message.message_id
        for message in parse_messages(encode_delivery(build_message(kind, part), text_message))
    ]
    assert found == ["kept"]


@each(
    "mime_type, content",
    [
        ("image/jpeg", ImageFile(media_id="m1", mime_type="image/jpeg", sha256=None)),
        ("image/png", ImageFile(media_id="m1", mime_type="image/png", sha256=None)),
        ("application/pdf", UnsupportedMessage(kind="document")),
        (None, UnsupportedMessage(kind="document")),
        (["image/png"], UnsupportedMessage(kind="document")),
    ],
)
def test_image_sent_as_a_document_is_parsed_as_an_image(
    mime_type: object, content: Content
) -> None:
    part = {"id": "m1", "mime_type": mime_type, "filename": "passport.jpg"}
    assert _parse_content("document", part) == content


@each(
    "phone_number_id, is_ours", [("1065", True), ("9999", False), (None, True), (["1065"], False)]
)
def test_messages_to_another_number_of_the_account_are_skipped(
    phone_number_id: object, is_ours: bool
) -> None:
    value = {
        "metadata": {"phone_number_id": phone_number_id},
        "messages": [build_message("text", {"body": "hi"})],
        "statuses": [{"id": "wamid.1", "status": "read"}],
    }
    body = json.dumps({"entry": [{"changes": [{"value": value}]}]}).encode()
    delivery = parse_delivery(body, phone_number_id="1065")
    assert (len(delivery.messages), len(delivery.statuses)) == (int(is_ours), int(is_ours))
    assert len(parse_delivery(body).messages) == 1


@each(
    "report, status",
    [
        ({"id": "w", "status": "sent"}, DeliveryStatus(channel_message_id="w", status="sent")),
        (
            {"id": "w", "status": "failed", "errors": [{"code": 131026, "title": "x"}]},
            DeliveryStatus(channel_message_id="w", status="failed", error_code="131026"),
        ),
        *(
            (
                {"id": "w", "status": "failed", "errors": [{"code": code}]},
                DeliveryStatus(channel_message_id="w", status="failed", error_code=parsed_code),
            )
            for code, parsed_code in [
                (" ", None),
                ("\x00 \n", None),
                (" 131026\n", "131026"),
                ("9" * 41, None),
                (int("9" * 4000), None),
            ]
        ),
        (
            {"id": "w", "status": "failed", "errors": [{"code": {}}]},
            DeliveryStatus(channel_message_id="w", status="failed"),
        ),
        (
            {"id": "w", "status": "failed", "errors": "x"},
            DeliveryStatus(channel_message_id="w", status="failed"),
        ),
        ({"id": "w", "status": "warning"}, None),
        ({"id": "w", "status": ["sent"]}, None),
        ({"id": 1, "status": "sent"}, None),
        ({"status": "sent"}, None),
    ],
)
def test_status_report_is_parsed_or_skipped(
    report: dict[str, Any], status: DeliveryStatus | None
) -> None:
    body = json.dumps({"entry": [{"changes": [{"value": {"statuses": [report]}}]}]}).encode()
    assert parse_delivery(body).statuses == ([] if status is None else [status])
