"""What the messenger reports about messages, and what staff see of it."""

import asyncio
from typing import Any

import httpx2
import pytest

from tapgate import ids
from world import World

REPORT = "/api/v1/messages/statuses"
PHONE = "+23276000001"


@pytest.fixture
async def record(world: World) -> dict[str, Any]:
    return await world.subscriber()


async def request_code(world: World, record: dict[str, Any]) -> str:
    """Send a code; its message's id."""
    url = f"/api/v1/subscribers/{record['id']}/reset-pin"
    assert (await world.client.post(url, auth=world.service())).status_code == 200
    number = await world.services.database.fetchval(
        "SELECT max(id) FROM messages WHERE recipient = $1", record["phone_number"]
    )
    return ids.encode(ids.MESSAGE, number)


async def report(world: World, *reports: dict[str, Any], auth: Any = None) -> httpx2.Response:
    return await world.client.post(
        REPORT, json={"data": list(reports)}, auth=auth or world.service()
    )


async def messages(
    world: World, record: dict[str, Any], auth: Any = None, **query: str
) -> list[dict[str, Any]]:
    answer = await world.client.get(
        f"/api/v1/subscribers/{record['id']}/messages",
        params=query,
        auth=auth or await world.admin("S"),
    )
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def test_support_staff_see_that_a_code_failed(world: World, record: dict[str, Any]) -> None:
    message_id = await request_code(world, record)
    (shown,) = await messages(world, record)
    assert shown.pop("created_at").endswith("Z")
    assert shown == {
        "message_id": message_id,
        "template": "one_time_code",
        "language": "en",
        "status": "queued",
        "error_code": None,
        "updated_at": None,
    }
    answer = await report(
        world, {"message_id": message_id, "status": "failed", "error_code": "131026"}
    )
    assert (answer.status_code, answer.json()) == (200, {"updated": 1})
    (shown,) = await messages(world, record)
    assert (shown["status"], shown["error_code"]) == ("failed", "131026")
    assert shown["updated_at"].endswith("Z")


async def test_a_status_never_moves_backward(world: World, record: dict[str, Any]) -> None:
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
        answer = await report(world, {"message_id": message_id, "status": status})
        assert answer.json() == {"updated": updated}
        assert (await messages(world, record))[0]["status"] == shown
    assert (await messages(world, record))[0]["error_code"] is None


async def test_parallel_and_repeated_reports(world: World, record: dict[str, Any]) -> None:
    first = await request_code(world, record)
    world.forward(minutes=1)
    second = await request_code(world, record)
    reports = [
        {"message_id": message_id, "status": status}
        for status in ("read", "sent", "failed", "delivered")
        for message_id in (first, second)
    ]
    answers = await asyncio.gather(
        *(report(world, *part) for part in (reports, reports[::-1]) for _ in range(4))
    )
    assert sum(answer.json()["updated"] for answer in answers) == 2
    assert [one["status"] for one in await messages(world, record)] == ["read", "read"]


async def test_unknown_messages_are_skipped(world: World) -> None:
    answer = await report(world, {"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"})
    assert (answer.status_code, answer.json()) == (200, {"updated": 0})


async def test_a_message_that_never_reached_the_messenger_failed(
    world: World, record: dict[str, Any]
) -> None:
    await request_code(world, record)
    await world.services.database.execute(
        "UPDATE messages SET status = 'expired', parameters = NULL"
    )
    (shown,) = await messages(world, record)
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
async def test_a_malformed_report_is_refused(
    world: World, body: dict[str, Any], status: int, field: str
) -> None:
    answer = await world.client.post(REPORT, json=body, auth=world.service())
    assert answer.status_code == status
    assert list(answer.json()["details"]["fields"]) == [field]


async def test_only_services_report(world: World) -> None:
    for auth in (await world.admin(), await world.api_key("subscribers:write")):
        answer = await report(
            world, {"message_id": ids.encode(ids.MESSAGE, 1), "status": "read"}, auth=auth
        )
        assert answer.status_code == 403


async def test_messages_are_filtered_by_template(world: World, record: dict[str, Any]) -> None:
    await request_code(world, record)
    assert len(await messages(world, record, template="one_time_code")) == 1
    assert await messages(world, record, template="money_received") == []


async def test_messages_to_the_previous_owner_of_a_number_are_not_listed(
    world: World, record: dict[str, Any]
) -> None:
    await request_code(world, record)
    number, admin = record["phone_number"], await world.admin("C")

    async def move(subscriber: dict[str, Any], phone_number: str) -> None:
        url = f"/api/v1/subscribers/{subscriber['id']}"
        change = {"phone_number": phone_number}
        answer = await world.client.put(url, json=change, auth=admin)
        assert answer.status_code == 200, answer.text

    existing = await world.subscriber()
    await move(record, world.phone())
    registered = await world.subscriber(phone_number=number)
    assert await messages(world, registered) == []
    world.forward(minutes=1)
    message_id = await request_code(world, registered)
    assert [one["message_id"] for one in await messages(world, registered)] == [message_id]
    await move(registered, world.phone())
    await move(existing, number)
    assert await messages(world, existing) == []
    world.forward(minutes=1)
    message_id = await request_code(world, existing | {"phone_number": number})
    await world.client.put(
        f"/api/v1/subscribers/{existing['id']}", json={"first_name": "Fatu"}, auth=admin
    )
    assert [one["message_id"] for one in await messages(world, existing)] == [message_id]


async def test_of_a_restricted_subscriber_only_codes_are_listed(world: World) -> None:
    record = await world.restricted_subscriber()
    admin = await world.admin("S")
    await world.services.database.execute(
        """INSERT INTO messages (id, recipient, template, language, status, next_attempt_at,
                                 expires_at, created_at)
           VALUES (1, $1, 'money_received', 'en', 'delivered', now(), now(), now())""",
        record["phone_number"],
    )
    url = f"/api/v1/subscribers/{record['id']}/restricted-access"
    await world.client.post(url, auth=admin)
    assert [one["template"] for one in await messages(world, record, admin)] == ["one_time_code"]
    assert await messages(world, record, admin, template="money_received") == []
    code = await world.code_sent_to(record["phone_number"])
    await world.client.post(f"{url}/verify", json={"otp": code}, auth=admin)
    assert [one["template"] for one in await messages(world, record, admin)] == [
        "one_time_code",
        "money_received",
    ]


async def test_new_statuses_are_counted(world: World, record: dict[str, Any]) -> None:
    message_id = await request_code(world, record)
    for status in ("sent", "failed", "failed"):
        await report(world, {"message_id": message_id, "status": status})
    metrics = (await world.client.get("/metrics")).text
    assert 'tapgate_message_statuses_total{status="failed"} 1.0' in metrics
    assert 'tapgate_message_statuses_total{status="sent"} 1.0' in metrics
    assert 'tapgate_message_statuses_total{status="read"} 0.0' in metrics
