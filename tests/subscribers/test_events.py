"""Events published about subscribers."""

from typing import Any

import httpx2

from harness import Harness

URL = "/api/v1/subscribers"


async def list_events(harness: Harness) -> list[tuple[str, Any]]:
    rows = await harness.services.database.fetch("SELECT type, data FROM events ORDER BY id")
    return [(row["type"], row["data"]) for row in rows]


async def test_registration_blocks_unblocks_and_kyc_changes_are_published(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    await harness.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        harness.services.new_id(),
    )
    admin, record = await harness.create_admin(), await harness.create_subscriber()
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
        response = await client.request(method, url + path, json=body, auth=admin)
        assert response.status_code == 200, response.text
        if event is not None:
            expected.append((event, response.json().get("subscriber", response.json())))
    assert await list_events(harness) == expected


async def test_rejected_changes_are_not_published(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin()
    await harness.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        harness.services.new_id(),
    )
    await client.post(f"{URL}/{record['id']}/unblock", auth=admin)
    await harness.client.post(
        URL,
        json={
            "phone_number": record["phone_number"],
            "first_name": "Eve",
            "last_name": "Kamara",
            "pin": "4071",
        },
        auth=admin,
    )
    assert await list_events(harness) == []
