"""Events published about subscribers."""

from typing import Any

import httpx2

from harness import Harness

URL = "/api/v1/subscribers"


async def list_events(world: Harness) -> list[tuple[str, Any]]:
    rows = await world.services.database.fetch("SELECT type, data FROM events ORDER BY id")
    return [(row["type"], row["data"]) for row in rows]


async def test_subscriber_changes_are_published(client: httpx2.AsyncClient, world: Harness) -> None:
    await world.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        world.services.new_id(),
    )
    admin, record = await world.create_admin(), await world.create_subscriber()
    url = f"{URL}/{record['id']}"
    expected = [("subscriber.created", record)]
    changes: list[tuple[str, str, Any, str | None]] = [
        ("POST", "/block", {"reason": "r"}, "subscriber.blocked"),
        ("POST", "/unblock", None, "subscriber.unblocked"),
        ("PUT", "", {"first_name": "Eve"}, None),
        ("PUT", "", {"kyc_level": 2}, "subscriber.kyc_changed"),
        ("PUT", "", {"kyc_level": 2}, None),
        ("PUT", "", {"kyc_status": "VERIFIED", "kyc_level": 3}, "subscriber.kyc_changed"),
        ("POST", "/close", {"reason": "r"}, None),
    ]
    for method, path, body, event in changes:
        answer = await client.request(method, url + path, json=body, auth=admin)
        assert answer.status_code == 200, answer.text
        if event is not None:
            expected.append((event, answer.json().get("subscriber", answer.json())))
    assert await list_events(world) == expected


async def test_rejected_changes_are_not_published(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    record, admin = await world.create_subscriber(), await world.create_admin()
    await world.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        world.services.new_id(),
    )
    await client.post(f"{URL}/{record['id']}/unblock", auth=admin)
    await world.client.post(
        URL,
        json={
            "phone_number": record["phone_number"],
            "first_name": "Eve",
            "last_name": "Kamara",
            "pin": "4071",
        },
        auth=admin,
    )
    assert await list_events(world) == []
