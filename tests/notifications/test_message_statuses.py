"""Message statuses reported by the messenger and shown to staff."""

import asyncio
from typing import Any

import httpx2
import pytest

from harness import Harness
from tapgate import ids

STATUSES_URL = "/api/v1/messages/statuses"
PHONE = "+23276000001"


@pytest.fixture
async def record(world: Harness) -> dict[str, Any]:
    return await world.create_subscriber()


async def request_code(world: Harness, record: dict[str, Any]) -> str:
    """Send a code and return the id of its message."""
    url = f"/api/v1/subscribers/{record['id']}/reset-pin"
    assert (await world.client.post(url, auth=world.get_service_auth())).status_code == 200
    number = await world.services.database.fetchval(
        "SELECT max(id) FROM messages WHERE recipient = $1", record["phone_number"]
    )
    return ids.encode(ids.MESSAGE, number)


async def report_statuses(
    world: Harness, *reports: dict[str, Any], auth: Any = None
) -> httpx2.Response:
    return await world.client.post(
        STATUSES_URL, json={"data": list(reports)}, auth=auth or world.get_service_auth()
    )


async def list_messages(
    world: Harness, record: dict[str, Any], auth: Any = None, **query: str
) -> list[dict[str, Any]]:
    answer = await world.client.get(
        f"/api/v1/subscribers/{record['id']}/messages",
        params=query,
        auth=auth or await world.create_admin("S"),
    )
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def test_support_staff_can_see_that_a_code_failed(
    world: Harness, record: dict[str, Any]
) -> None:
    message_id = await request_code(world, record)
    (shown,) = await list_messages(world, record)
    assert shown.pop("created_at").endswith("Z")
    assert shown == {
        "message_id": message_id,
        "template": "one_time_code",
        "language": "en",
        "status": "queued",
        "error_code": None,
        "updated_at": None,
    }
    answer = await report_statuses(
        world, {"message_id": message_id, "status": "failed", "error_code": "131026"}
    )
    assert (answer.status_code, answer.json()) == (200, {"updated": 1})
    (shown,) = await list_messages(world, record)
    assert (shown["status"], shown["error_code"]) == ("failed", "131026")
    assert shown["updated_at"].endswith("Z")


async def test_message_status_never_moves_backward(world: Harness, record: dict[str, Any]) -> None:
    message_id = await request_code(world, record)
    for status, updated, shown in (
        ("failed", 1, "failed"),
        ("sent", 0, "failed"),
        ("failed", 0, "failed"),
        ("delivered", 1, "delivered"),
        ("failed", 0, "delivered"),
        ("read", 1, "read"),
        ("delivered", 0, "read"),
    ):
        answer = await report_statuses(world, {"message_id": message_id, "status": status})
        assert answer.json() == {"updated": updated}
        assert (await list_messages(world, record))[0]["status"] == shown
    assert (await list_messages(world, record))[0]["error_code"] is None


async def test_concurrent_and_repeated_reports_update_each_message_once(
    world: Harness, record: dict[str, Any]
) -> None:
    first = await request_code(world, record)
    world.advance_clock(minutes=1)
    second = await request_code(world, record)
    reports = [
        {"message_id": message_id, "status": status}
        for status in ("read", "sent", "failed", "delivered")
        for message_id in (first, second)
    ]
    answers = await asyncio.gather(
        *(report_statuses(world, *part) for part in (reports, reports[::-1]) for _ in range(4))
    )
    assert sum(answer.json()["updated"] for answer in answers) == 2
    assert [one["status"] for one in await list_messages(world, record)] == ["read", "read"]


async def test_unknown_messages_are_skipped(world: Harness) -> None:
    answer = await report_statuses(
        world, {"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"}
    )
    assert (answer.status_code, answer.json()) == (200, {"updated": 0})


async def test_expired_message_is_shown_as_failed(world: Harness, record: dict[str, Any]) -> None:
    await request_code(world, record)
    await world.services.database.execute(
        "UPDATE messages SET status = 'expired', parameters = NULL"
    )
    (shown,) = await list_messages(world, record)
    assert (shown["status"], shown["error_code"]) == ("failed", "expired")


@pytest.mark.parametrize(
    ("body", "status", "field"),
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
    world: Harness, body: dict[str, Any], status: int, field: str
) -> None:
    answer = await world.client.post(STATUSES_URL, json=body, auth=world.get_service_auth())
    assert answer.status_code == status
    assert list(answer.json()["details"]["fields"]) == [field]


async def test_only_services_can_report_statuses(world: Harness) -> None:
    for auth in (await world.create_admin(), await world.create_api_key("subscribers:write")):
        answer = await report_statuses(
            world, {"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"}, auth=auth
        )
        assert answer.status_code == 403


async def test_messages_are_filtered_by_template(world: Harness, record: dict[str, Any]) -> None:
    await request_code(world, record)
    assert len(await list_messages(world, record, template="one_time_code")) == 1
    assert await list_messages(world, record, template="money_received") == []


async def test_messages_to_the_previous_owner_of_a_number_are_not_listed(
    world: Harness, record: dict[str, Any]
) -> None:
    await request_code(world, record)
    number, admin = record["phone_number"], await world.create_admin("C")

    async def move(subscriber: dict[str, Any], phone_number: str) -> None:
        url = f"/api/v1/subscribers/{subscriber['id']}"
        change = {"phone_number": phone_number}
        answer = await world.client.put(url, json=change, auth=admin)
        assert answer.status_code == 200, answer.text

    existing = await world.create_subscriber()
    await move(record, world.new_phone_number())
    registered = await world.create_subscriber(phone_number=number)
    assert await list_messages(world, registered) == []
    world.advance_clock(minutes=1)
    message_id = await request_code(world, registered)
    assert [one["message_id"] for one in await list_messages(world, registered)] == [message_id]
    await move(registered, world.new_phone_number())
    await move(existing, number)
    assert await list_messages(world, existing) == []
    world.advance_clock(minutes=1)
    message_id = await request_code(world, existing | {"phone_number": number})
    await world.client.put(
        f"/api/v1/subscribers/{existing['id']}", json={"first_name": "Fatu"}, auth=admin
    )
    assert [one["message_id"] for one in await list_messages(world, existing)] == [message_id]


async def test_only_codes_are_listed_for_a_restricted_subscriber(world: Harness) -> None:
    record = await world.create_restricted_subscriber()
    admin = await world.create_admin("S")
    await world.services.database.execute(
        """INSERT INTO messages (id, recipient, template, language, status, next_attempt_at,
                                 expires_at, created_at)
           VALUES (1, $1, 'money_received', 'en', 'delivered', now(), now(), now())""",
        record["phone_number"],
    )
    url = f"/api/v1/subscribers/{record['id']}/restricted-access"
    await world.client.post(url, auth=admin)
    assert [one["template"] for one in await list_messages(world, record, admin)] == [
        "one_time_code"
    ]
    assert await list_messages(world, record, admin, template="money_received") == []
    code = await world.get_pending_code(record["phone_number"])
    await world.client.post(f"{url}/verify", json={"otp": code}, auth=admin)
    assert [one["template"] for one in await list_messages(world, record, admin)] == [
        "one_time_code",
        "money_received",
    ]


async def test_new_statuses_are_counted(world: Harness, record: dict[str, Any]) -> None:
    message_id = await request_code(world, record)
    for status in ("sent", "failed", "failed"):
        await report_statuses(world, {"message_id": message_id, "status": status})
    metrics = (await world.client.get("/metrics")).text
    assert 'tapgate_message_statuses_total{status="failed"} 1.0' in metrics
    assert 'tapgate_message_statuses_total{status="sent"} 1.0' in metrics
    assert 'tapgate_message_statuses_total{status="read"} 0.0' in metrics
