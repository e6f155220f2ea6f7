"""Builders for card tests: create, link, block and read cards, and list published events."""

import itertools
from typing import Any

import httpx2

from harness import PIN, Harness

CARDS_URL = "/api/v1/cards"
CHILD_PIN = "8350"

_sequence = itertools.count(1)


async def create_card(world: Harness, **fields: Any) -> str:
    """Create an unassigned card and return its serial."""
    number, now = next(_sequence), world.services.clock()
    columns = {
        "id": world.services.new_id(),
        "serial": f"NEW-{number:06d}",
        "status": "UNASSIGNED",
        "created_at": now,
        "updated_at": now,
        **fields,
    }
    marks = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
    await world.services.database.execute(
        f"INSERT INTO cards ({', '.join(columns)}) VALUES ({marks})", *columns.values()
    )
    return str(columns["serial"])


async def link_card(
    world: Harness, serial: str, subscriber_id: str, *, pin: str = PIN, caller: Any = None
) -> httpx2.Response:
    return await world.client.post(
        f"{CARDS_URL}/link",
        json={"subscriber_id": subscriber_id, "card_serial": serial, "pin": pin},
        auth=caller or world.get_service_auth(),
    )


def build_child_link(serial: str, subscriber_id: str, **fields: Any) -> dict[str, Any]:
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
    world: Harness, serial: str, subscriber_id: str, *, caller: Any = None, **fields: Any
) -> httpx2.Response:
    return await world.client.post(
        f"{CARDS_URL}/child",
        json=build_child_link(serial, subscriber_id, **fields),
        auth=caller or await world.create_admin("S"),
    )


async def block_card(
    world: Harness, serial: str, reason: str = "fraud", *, caller: Any = None
) -> httpx2.Response:
    return await world.client.post(
        f"{CARDS_URL}/{serial}/block",
        json={"reason": reason},
        auth=caller or world.get_service_auth(),
    )


async def unblock_card(world: Harness, serial: str, *, caller: Any = None) -> httpx2.Response:
    return await world.client.post(
        f"{CARDS_URL}/{serial}/unblock", auth=caller or world.get_service_auth()
    )


async def get_card(world: Harness, serial: str) -> dict[str, Any]:
    answer = await world.client.get(f"{CARDS_URL}/{serial}", auth=world.get_service_auth())
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


def parse_error(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def subscribe_to_events(world: Harness) -> None:
    """Create a webhook endpoint subscribed to all events."""
    await world.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        world.services.new_id(),
    )


async def list_events(world: Harness) -> list[tuple[str, Any]]:
    """Return the published card and subscriber events in order."""
    rows = await world.services.database.fetch(
        "SELECT type, data FROM events WHERE type NOT LIKE 'transaction.%' ORDER BY id"
    )
    return [(row["type"], row["data"]) for row in rows]
