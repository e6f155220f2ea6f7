"""Builders for card tests: create, link, block and read cards, and list published events."""

import itertools
from typing import Any

import httpx2

from harness import PIN, Harness

CARDS_URL = "/api/v1/cards"
CHILD_PIN = "8350"

_sequence = itertools.count(1)


async def create_card(harness: Harness, **fields: Any) -> str:
    """Create an unassigned card and return its serial."""
    number, now = next(_sequence), harness.services.clock()
    columns = {
        "id": harness.services.new_id(),
        "serial": f"NEW-{number:06d}",
        "status": "UNASSIGNED",
        "created_at": now,
        "updated_at": now,
        **fields,
    }
    placeholders = ", ".join(f"${position}" for position in range(1, len(columns) + 1))
    await harness.services.database.execute(
        f"INSERT INTO cards ({', '.join(columns)}) VALUES ({placeholders})", *columns.values()
    )
    return str(columns["serial"])


async def link_card(
    harness: Harness, serial: str, subscriber_id: str, *, pin: str = PIN, caller: Any = None
) -> httpx2.Response:
    return await harness.client.post(
        f"{CARDS_URL}/link",
        json={"subscriber_id": subscriber_id, "card_serial": serial, "pin": pin},
        auth=caller or harness.get_service_auth(),
    )


def build_child_link_request(serial: str, subscriber_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "parent_subscriber_id": subscriber_id,
        "card_serial": serial,
        "parent_pin": PIN,
        "child_pin": CHILD_PIN,
        "daily_limit": "100.00",
        "child_name": "Ibrahim Kamara",
        **fields,
    }


async def link_child_card(
    harness: Harness, serial: str, subscriber_id: str, *, caller: Any = None, **fields: Any
) -> httpx2.Response:
    return await harness.client.post(
        f"{CARDS_URL}/child",
        json=build_child_link_request(serial, subscriber_id, **fields),
        auth=caller or await harness.create_admin("S"),
    )


async def block_card(
    harness: Harness, serial: str, reason: str = "fraud", *, caller: Any = None
) -> httpx2.Response:
    return await harness.client.post(
        f"{CARDS_URL}/{serial}/block",
        json={"reason": reason},
        auth=caller or harness.get_service_auth(),
    )


async def unblock_card(harness: Harness, serial: str, *, caller: Any = None) -> httpx2.Response:
    return await harness.client.post(
        f"{CARDS_URL}/{serial}/unblock", auth=caller or harness.get_service_auth()
    )


async def get_card(harness: Harness, serial: str) -> dict[str, Any]:
    response = await harness.client.get(f"{CARDS_URL}/{serial}", auth=harness.get_service_auth())
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def create_webhook_endpoint(harness: Harness) -> None:
    """Create a webhook endpoint for all events, so that events are stored."""
    await harness.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        harness.services.new_id(),
    )


async def list_events(harness: Harness) -> list[tuple[str, Any]]:
    """Return type and data of all stored events except transaction events, in order."""
    rows = await harness.services.database.fetch(
        "SELECT type, data FROM events WHERE type NOT LIKE 'transaction.%' ORDER BY id"
    )
    return [(row["type"], row["data"]) for row in rows]
