"""Message statuses, reported by the messenger and shown to support users."""

import asyncio
from typing import Any

import httpx2
import pytest

from cases import each
from harness import Harness
from tapgate_client import ids

STATUSES_URL = "/api/v1/messages/statuses"
PHONE = "+23276000001"


@pytest.fixture
async def record(harness: Harness) -> dict[str, Any]:
    return await harness.create_subscriber()


async def request_code(harness: Harness, record: dict[str, Any]) -> str:
    """Request a PIN reset code and return its message ID."""
    url = f"/api/v1/subscribers/{record['id']}/reset-pin"
    assert (await harness.post(url, auth=harness.get_service_auth())).status_code == 200
    internal_id = await harness.database.fetchval(
        "SELECT max(id) FROM messages WHERE recipient = $1", record["phone_number"]
    )
    return ids.encode(ids.MESSAGE, internal_id)


async def report_statuses(
    harness: Harness, *reports: dict[str, Any], auth: Any = None
) -> httpx2.Response:
    return await harness.post(
        STATUSES_URL, json={"data": list(reports)}, auth=auth or harness.get_service_auth()
    )


async def list_messages(
    harness: Harness, record: dict[str, Any], auth: Any = None, **query: str
) -> list[dict[str, Any]]:
    response = await harness.get(
        f"/api/v1/subscribers/{record['id']}/messages",
        params=query,
        auth=auth or await harness.create_admin("S"),
    )
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


async def test_support_users_can_see_that_a_code_was_not_delivered(
    harness: Harness, record: dict[str, Any]
) -> None:
    message_id = await request_code(harness, record)
    (message,) = await list_messages(harness, record)
    assert message.pop("created_at").endswith("Z")
    assert message == {
        "message_id": message_id,
        "template": "one_time_code",
        "language": "en",
        "status": "queued",
        "channel": "chat",
        "error_code": None,
        "updated_at": None,
    }
    response = await report_statuses(
        harness, {"message_id": message_id, "status": "failed", "error_code": "131026"}
    )
    assert (response.status_code, response.json()) == (200, {"updated": 1})
    (message,) = await list_messages(harness, record)
    assert (message["status"], message["error_code"]) == ("failed", "131026")
    assert message["updated_at"].endswith("Z")


async def test_message_status_never_moves_backward(
    harness: Harness, record: dict[str, Any]
) -> None:
    message_id = await request_code(harness, record)
    for status, updated, expected in (
        ("failed", 1, "failed"),
        ("sent", 0, "failed"),
        ("failed", 0, "failed"),
        ("delivered", 1, "delivered"),
        ("failed", 0, "delivered"),
        ("read", 1, "read"),
        ("delivered", 0, "read"),
    ):
        response = await report_statuses(harness, {"message_id": message_id, "status": status})
        assert response.json() == {"updated": updated}
        assert (await list_messages(harness, record))[0]["status"] == expected
    assert (await list_messages(harness, record))[0]["error_code"] is None


async def test_concurrent_and_repeated_reports_update_each_message_once(
    harness: Harness, record: dict[str, Any]
) -> None:
    first = await request_code(harness, record)
    harness.advance_clock(minutes=1)
    second = await request_code(harness, record)
    reports = [
        {"message_id": message_id, "status": status}
        for status in ("read", "sent", "failed", "delivered")
        for message_id in (first, second)
    ]
    responses = await asyncio.gather(
        *(report_statuses(harness, *part) for part in (reports, reports[::-1]) for _ in range(4))
    )
    assert sum(response.json()["updated"] for response in responses) == 2
    assert [message["status"] for message in await list_messages(harness, record)] == [
        "read",
        "read",
    ]


async def test_report_about_an_unknown_message_is_ignored(harness: Harness) -> None:
    response = await report_statuses(
        harness, {"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"}
    )
    assert (response.status_code, response.json()) == (200, {"updated": 0})


async def test_expired_message_is_shown_as_failed(harness: Harness, record: dict[str, Any]) -> None:
    await request_code(harness, record)
    await harness.database.execute("UPDATE messages SET status = 'expired', parameters = NULL")
    (message,) = await list_messages(harness, record)
    assert (message["status"], message["error_code"]) == ("failed", "expired")


@each(
    "body, status, field",
    [
        ({}, 400, "data"),
        ({"data": []}, 422, "data"),
        ({"data": [{"message_id": "msg_x", "status": "read"}]}, 422, "data[0].message_id"),
        (
            {"data": [{"message_id": ids.encode(ids.MESSAGE, 1), "status": "queued"}]},
            422,
            "data[0].status",
        ),
        (
            {"data": [{"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"}] * 101},
            422,
            "data",
        ),
    ],
)
async def test_malformed_status_report_is_rejected(
    harness: Harness, body: dict[str, Any], status: int, field: str
) -> None:
    response = await harness.post(STATUSES_URL, json=body, auth=harness.get_service_auth())
    assert response.status_code == status
    assert list(response.json()["details"]["fields"]) == [field]


async def test_only_services_can_report_statuses(harness: Harness) -> None:
    for auth in (await harness.create_admin(), await harness.create_api_key("subscribers:write")):
        response = await report_statuses(
            harness, {"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"}, auth=auth
        )
        assert response.status_code == 403


async def test_messages_are_filtered_by_template(harness: Harness, record: dict[str, Any]) -> None:
    await request_code(harness, record)
    assert len(await list_messages(harness, record, template="one_time_code")) == 1
    assert await list_messages(harness, record, template="money_received") == []


async def test_messages_to_the_previous_owner_of_a_number_are_not_listed(
    harness: Harness, record: dict[str, Any]
) -> None:
    await request_code(harness, record)
    number, admin = record["phone_number"], await harness.create_admin("C")

    async def change_phone_number(subscriber: dict[str, Any], phone_number: str) -> None:
        url = f"/api/v1/subscribers/{subscriber['id']}"
        change = {"phone_number": phone_number}
        response = await harness.put(url, json=change, auth=admin)
        assert response.status_code == 200, response.text

    existing = await harness.create_subscriber()
    await change_phone_number(record, harness.new_phone_number())
    registered = await harness.create_subscriber(phone_number=number)
    assert await list_messages(harness, registered) == []
    harness.advance_clock(minutes=1)
    message_id = await request_code(harness, registered)
    found = [message["message_id"] for message in await list_messages(harness, registered)]
    assert found == [message_id]
    await change_phone_number(registered, harness.new_phone_number())
    await change_phone_number(existing, number)
    (notice,) = await list_messages(harness, existing)
    assert notice["template"] == "phone_changed"
    harness.advance_clock(days=1)  # until then, the PIN cannot be reset with the new number
    message_id = await request_code(harness, existing | {"phone_number": number})
    await harness.put(
        f"/api/v1/subscribers/{existing['id']}", json={"first_name": "Fatu"}, auth=admin
    )
    found = [message["message_id"] for message in await list_messages(harness, existing)]
    assert found == [message_id, notice["message_id"]]


async def test_only_codes_are_listed_for_a_restricted_subscriber_without_an_access_code(
    harness: Harness,
) -> None:
    record = await harness.create_restricted_subscriber()
    admin = await harness.create_admin("S")
    await harness.database.execute(
        """INSERT INTO messages (id, recipient, template, language, status, next_attempt_at,
                                 expires_at, created_at)
           VALUES (1, $1, 'money_received', 'en', 'delivered', now(), now(), now())""",
        record["phone_number"],
    )
    url = f"/api/v1/subscribers/{record['id']}/restricted-access"
    await harness.post(url, auth=admin)
    found = [message["template"] for message in await list_messages(harness, record, admin)]
    assert found == ["one_time_code"]
    assert await list_messages(harness, record, admin, template="money_received") == []
    code = await harness.get_pending_code(record["phone_number"])
    await harness.post(f"{url}/verify", json={"otp": code}, auth=admin)
    assert [message["template"] for message in await list_messages(harness, record, admin)] == [
        "record_opened",
        "one_time_code",
        "money_received",
    ]


async def test_metrics_count_each_status_change_once(
    harness: Harness, record: dict[str, Any]
) -> None:
    message_id = await request_code(harness, record)
    for status in ("sent", "failed", "failed"):
        await report_statuses(harness, {"message_id": message_id, "status": status})
    metrics = (await harness.get("/metrics")).text
    assert 'tapgate_message_statuses_total{status="failed"} 1.0' in metrics
    assert 'tapgate_message_statuses_total{status="sent"} 1.0' in metrics
    assert 'tapgate_message_statuses_total{status="read"} 0.0' in metrics
