"""Support requests: opening, appending, replying, assigning, closing and retention."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.payments import list_events, subscribe_to_events
from builders.retention import delete_expired
from cases import each
from harness import Harness
from tapgate.business.support.operations import REPLY_TEMPLATE
from tapgate.events.notifications.notification_messages import list_pending
from tapgate_client import ids
from tapgate_client.schemas.support import MAX_CUSTOMER_TEXT_LENGTH, MAX_MESSAGES, MAX_REPLY_LENGTH

URL = "/api/v1/support/requests"
PHONE = "+23276555001"


async def send_message(
    harness: Harness, text: str = "My card was charged twice.", **fields: Any
) -> httpx2.Response:
    body = {"phone_number": PHONE, "text": text, **fields}
    return await harness.post(URL, json=body, auth=harness.get_service_auth())


async def post_as_staff(
    harness: Harness, path: str, body: Any = None, role: str = "S"
) -> httpx2.Response:
    return await harness.post(f"{URL}/{path}", json=body, auth=await harness.create_admin(role))


async def list_requests(harness: Harness, **filters: str) -> list[dict[str, Any]]:
    response = await harness.get(URL, params=filters, auth=await harness.create_admin("S"))
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


def get_texts(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["from"], message["text"]) for message in request["messages"]]


async def test_first_message_opens_a_request(harness: Harness) -> None:
    await subscribe_to_events(harness)
    response = await send_message(harness)
    assert response.status_code == 201
    request = response.json()
    assert request["id"].startswith("req_")
    assert request == {
        "id": request["id"],
        "subscriber_id": None,
        "subscriber_name": None,
        "phone_number": PHONE,
        "language": "en",
        "status": "open",
        "priority": "normal",
        "messages": [
            {
                "from": "customer",
                "text": "My card was charged twice.",
                "at": request["messages"][0]["at"],
            }
        ],
        "assignee": None,
        "assignee_name": None,
        "created_at": request["created_at"],
        "updated_at": request["created_at"],
    }
    fetched = await harness.get(f"{URL}/{request['id']}", auth=await harness.create_admin("A"))
    assert fetched.json() == request
    (entry,) = await harness.list_audit_entries(request["id"], "support.requested")
    assert entry["changes"] == {"status": [None, "open"]}
    unpublished = ("language", "messages", "subscriber_name")
    event = {name: value for name, value in request.items() if name not in unpublished}
    assert await list_events(harness, "support.requested") == [event]


async def test_repeated_message_is_stored_once(harness: Harness) -> None:
    await subscribe_to_events(harness)
    responses = await asyncio.gather(
        *(send_message(harness, "Charged twice", message_id="chat:1") for _ in range(5))
    )
    assert [response.status_code for response in responses] == [201] * 5
    later = [await send_message(harness, "At noon", message_id="chat:2") for _ in range(2)]
    assert [response.status_code for response in later] == [200, 200]
    (request,) = await list_requests(harness)
    assert get_texts(request) == [("customer", "Charged twice"), ("customer", "At noon")]
    assert len(await list_events(harness, "support.requested")) == 1


async def test_repeated_message_does_not_reopen_an_answered_or_closed_request(
    harness: Harness,
) -> None:
    request_id = (await send_message(harness, message_id="chat:1")).json()["id"]
    await post_as_staff(harness, f"{request_id}/reply", {"text": "Which day?"})
    assert (await send_message(harness, message_id="chat:1")).json()["status"] == "answered"
    await post_as_staff(harness, f"{request_id}/close")
    assert (await send_message(harness, message_id="chat:1")).json()["status"] == "closed"
    assert len(await list_requests(harness)) == 1


async def test_message_id_belongs_to_a_phone_number(harness: Harness) -> None:
    await send_message(harness, message_id="chat:1")
    response = await send_message(harness, message_id="chat:1", phone_number="+23276555002")
    assert response.status_code == 201
    assert len(await list_requests(harness)) == 2


async def test_later_messages_are_appended_and_reopen_an_answered_request(harness: Harness) -> None:
    await subscribe_to_events(harness)
    subscriber = await harness.create_subscriber(phone_number=PHONE)
    first = (await send_message(harness)).json()
    assert first["subscriber_id"] == subscriber["id"]
    answered = await post_as_staff(harness, f"{first['id']}/reply", {"text": "Which day?"})
    assert (answered.status_code, answered.json()["status"]) == (200, "answered")
    second = await send_message(harness, "On Monday")
    assert (second.status_code, second.json()["id"]) == (200, first["id"])
    assert second.json()["status"] == "open"
    assert get_texts(second.json()) == [
        ("customer", "My card was charged twice."),
        ("staff", "Which day?"),
        ("customer", "On Monday"),
    ]
    (entry,) = await harness.list_audit_entries(first["id"], "support.message_received")
    assert entry["changes"] == {"status": ["answered", "open"]}
    assert len(await list_events(harness, "support.requested")) == 1


async def test_parallel_messages_open_one_request(harness: Harness) -> None:
    responses = await asyncio.gather(*(send_message(harness, f"Text {n}") for n in range(20)))
    assert sorted(response.status_code for response in responses) == [200] * 19 + [201]
    (request,) = await list_requests(harness)
    response = await harness.get(f"{URL}/{request['id']}", auth=await harness.create_admin("S"))
    assert {text for _, text in get_texts(response.json())} == {f"Text {n}" for n in range(20)}


async def test_messages_during_a_close_are_never_lost(harness: Harness) -> None:
    request = (await send_message(harness, "Text 0")).json()
    responses = await asyncio.gather(
        *(send_message(harness, f"Text {n}") for n in range(1, 6)),
        post_as_staff(harness, f"{request['id']}/close"),
        *(send_message(harness, f"Text {n}") for n in range(6, 11)),
    )
    assert {response.status_code for response in responses} <= {200, 201}
    requests = await list_requests(harness)
    assert [each["status"] for each in requests].count("closed") == 1
    count = "SELECT count(*) FROM support_messages"
    assert await harness.database.fetchval(count) == 11


async def test_append_only_never_opens_a_request(harness: Harness) -> None:
    response = await send_message(harness, append_only=True)
    assert (response.status_code, response.json()["code"]) == (404, "REQUEST_NOT_FOUND")
    request = (await send_message(harness)).json()
    assert (await send_message(harness, "More", append_only=True)).status_code == 200
    await post_as_staff(harness, f"{request['id']}/close")
    assert (await send_message(harness, "Even more", append_only=True)).status_code == 404
    assert len(await list_requests(harness)) == 1


async def test_reply_is_sent_to_the_phone_and_assigns_the_request(harness: Harness) -> None:
    request = (await send_message(harness)).json()
    staff = await harness.create_admin("S")
    response = await harness.post(
        f"{URL}/{request['id']}/reply", json={"text": "We refunded it."}, auth=staff
    )
    record = response.json()
    assert get_texts(record)[-1] == ("staff", "We refunded it.")
    assert record["assignee"] == staff.id and record["assignee_name"]
    assert await harness.list_pending_messages(PHONE, REPLY_TEMPLATE) == [["We refunded it."]]
    second = (await post_as_staff(harness, f"{request['id']}/reply", {"text": "Done."}, "A")).json()
    assert second["assignee"] == staff.id
    (entry, _) = await harness.list_audit_entries(request["id"], "support.replied")
    assert "We refunded it." not in str(entry)


async def test_reply_is_sent_in_the_language_of_the_customer(harness: Harness) -> None:
    await harness.create_subscriber(phone_number=PHONE, language="fr")
    request = (await send_message(harness)).json()
    await post_as_staff(harness, f"{request['id']}/reply", {"text": "Quel jour ?"})
    sent = "SELECT language FROM messages WHERE template = $1"
    assert await harness.database.fetchval(sent, REPLY_TEMPLATE) == "fr"


async def test_admins_assign_requests_to_themselves(harness: Harness) -> None:
    request = (await send_message(harness)).json()
    for role in ("S", "A"):
        admin = await harness.create_admin(role)
        response = await harness.post(f"{URL}/{request['id']}/assign", auth=admin)
        assert response.json()["assignee"] == admin.id
        assert [r["id"] for r in await list_requests(harness, assignee=admin.id)] == [request["id"]]
    assert response.json()["status"] == "open"


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_closing_tells_the_customer_once_in_their_language(
    harness: Harness, language: str
) -> None:
    customer = await harness.create_subscriber(language=language)
    phone_number = customer["phone_number"]
    request = (await send_message(harness, phone_number=phone_number)).json()
    assert (await post_as_staff(harness, f"{request['id']}/close")).status_code == 200
    assert (await post_as_staff(harness, f"{request['id']}/close")).status_code == 409
    pending = await list_pending(harness.database, harness.services.vault, phone_number)
    expected = [("support_closed", language, [])]
    assert [(each.template, each.language, each.parameters) for each in pending] == expected


async def test_closed_request_rejects_changes_and_the_next_message_opens_a_new_one(
    harness: Harness,
) -> None:
    request = (await send_message(harness)).json()
    closed = await post_as_staff(harness, f"{request['id']}/close")
    assert (closed.status_code, closed.json()["status"]) == (200, "closed")
    for path, body in (("close", None), ("assign", None), ("reply", {"text": "Hello"})):
        response = await post_as_staff(harness, f"{request['id']}/{path}", body)
        assert (response.status_code, response.json()["code"]) == (409, "ALREADY_RESOLVED")
    assert await harness.list_pending_messages(PHONE, REPLY_TEMPLATE) == []
    second = await send_message(harness)
    assert second.status_code == 201 and second.json()["id"] != request["id"]
    assert [r["id"] for r in await list_requests(harness, status="closed")] == [request["id"]]
    assert [r["id"] for r in await list_requests(harness, phone_number=PHONE)] == [
        second.json()["id"],
        request["id"],
    ]


async def test_messages_per_side_are_limited(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tapgate.business.support.operations.MAX_MESSAGES", 2)
    request = (await send_message(harness)).json()
    assert (await send_message(harness)).status_code == 200
    response = await send_message(harness)
    assert (response.status_code, response.json()["code"]) == (429, "RATE_LIMITED")
    assert response.json()["details"] == {"limit": 2}
    assert int(response.headers["retry-after"]) > 0
    for status in (200, 200, 429):
        reply = await post_as_staff(harness, f"{request['id']}/reply", {"text": "Hello"})
        assert reply.status_code == status
    assert len(await harness.list_pending_messages(PHONE, REPLY_TEMPLATE)) == 2
    assert MAX_MESSAGES == 100


@each(
    "fields, field",
    [
        ({"text": ""}, "text"),
        ({"text": " "}, "text"),
        ({"text": "x" * (MAX_CUSTOMER_TEXT_LENGTH + 1)}, "text"),
        ({"phone_number": "user:ada"}, "phone_number"),
    ],
)
async def test_invalid_message_is_rejected(
    harness: Harness, fields: dict[str, str], field: str
) -> None:
    response = await send_message(harness, **{"text": "Hello", **fields})
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == [field]


async def test_reply_must_fit_into_a_template(harness: Harness) -> None:
    request = (await send_message(harness)).json()
    for length, status in ((MAX_REPLY_LENGTH, 200), (MAX_REPLY_LENGTH + 1, 422)):
        response = await post_as_staff(harness, f"{request['id']}/reply", {"text": "x" * length})
        assert response.status_code == status


async def test_requests_of_restricted_subscribers_are_masked_until_a_code_is_verified(
    harness: Harness,
) -> None:
    subscriber = await harness.create_restricted_subscriber(phone_number=PHONE)
    request = (await send_message(harness)).json()
    staff = await harness.create_admin("S")

    async def get() -> dict[str, Any]:
        record: dict[str, Any] = (await harness.get(f"{URL}/{request['id']}", auth=staff)).json()
        return record

    hidden = {"subscriber_name": None, "phone_number": None, "messages": [], "masked": True}
    visible = {name: value for name, value in request.items() if name != "language"}
    assert await get() == visible | hidden
    response = await harness.get(URL, auth=staff)
    assert response.json()["data"] == [visible | hidden] and response.json()["masked"]
    response = await harness.get(URL, params={"phone_number": PHONE}, auth=staff)
    assert response.json()["data"] == []
    reply = await harness.post(f"{URL}/{request['id']}/reply", json={"text": "Hello"}, auth=staff)
    assert (reply.status_code, reply.json()["code"]) == (403, "OTP_REQUIRED")
    access = f"/api/v1/subscribers/{subscriber['id']}/restricted-access"
    assert (await harness.post(access, auth=staff)).is_success
    code = await harness.get_pending_code(PHONE)
    assert (await harness.post(f"{access}/verify", json={"otp": code}, auth=staff)).is_success
    assert await get() == request
    response = await harness.get(URL, params={"phone_number": PHONE}, auth=staff)
    assert response.json()["data"] == [request]
    reply = await harness.post(f"{URL}/{request['id']}/reply", json={"text": "Hello"}, auth=staff)
    assert reply.status_code == 200


async def test_request_becomes_masked_when_its_phone_number_belongs_to_a_restricted_subscriber(
    harness: Harness,
) -> None:
    request = (await send_message(harness)).json()
    await harness.create_restricted_subscriber(phone_number=PHONE)
    (masked,) = await list_requests(harness)
    assert (masked["id"], masked["messages"]) == (request["id"], [])


async def test_request_stays_with_its_subscriber_when_the_phone_number_moves(
    harness: Harness,
) -> None:
    subscriber = await harness.create_subscriber(phone_number=PHONE)
    request = (await send_message(harness)).json()
    update = await harness.put(
        f"/api/v1/subscribers/{subscriber['id']}",
        json={"phone_number": "+23276555002"},
        auth=await harness.create_admin("A"),
    )
    assert update.status_code == 200, update.text
    await post_as_staff(harness, f"{request['id']}/reply", {"text": "We refunded it."})
    assert await harness.list_pending_messages(PHONE, REPLY_TEMPLATE) == []
    sent = await harness.list_pending_messages("+23276555002", REPLY_TEMPLATE)
    assert sent == [["We refunded it."]]
    assert (await send_message(harness, "Who is this?", append_only=True)).status_code == 404
    other = await harness.create_subscriber(phone_number=PHONE)
    response = await send_message(harness, "My PIN is locked.")
    assert response.status_code == 201
    assert response.json()["subscriber_id"] == other["id"]
    assert get_texts(response.json()) == [("customer", "My PIN is locked.")]
    (earlier,) = await list_requests(harness, subscriber_id=subscriber["id"])
    assert (earlier["id"], earlier["status"]) == (request["id"], "closed")


async def test_texts_are_sealed_at_rest(harness: Harness) -> None:
    request = (await send_message(harness, "Sealed words")).json()
    await post_as_staff(harness, f"{request['id']}/reply", {"text": "Sealed reply"})
    for table in ("support_requests", "support_messages", "audit_entries", "messages", "events"):
        rows = await harness.database.fetch(f"SELECT t::text FROM {table} t")
        assert rows or table == "events"
        assert not any("Sealed" in row["t"] or b"Sealed".hex() in row["t"] for row in rows)


async def test_requests_that_wait_for_no_one_are_removed_after_the_retention_period(
    harness: Harness,
) -> None:
    closed, answered, waiting = [
        (await send_message(harness, phone_number=f"{PHONE[:-1]}{n}")).json()["id"]
        for n in (1, 2, 3)
    ]
    await post_as_staff(harness, f"{closed}/close")
    await post_as_staff(harness, f"{answered}/reply", {"text": "Hello"})
    harness.advance_clock(days=90, seconds=1)
    await delete_expired(harness.database, harness.services.clock, "support_requests")
    assert [request["id"] for request in await list_requests(harness)] == [waiting]
    remaining = await harness.database.fetch("SELECT DISTINCT request_id FROM support_messages")
    assert [ids.encode(ids.SUPPORT_REQUEST, row["request_id"]) for row in remaining] == [waiting]
