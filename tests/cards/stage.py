"""Cards as tests need them: new ones, what is done to them, and what was told about it."""

import itertools
from typing import Any

import httpx2

from world import PIN, World

URL = "/api/v1/cards"
CHILD_PIN = "8350"

_numbers = itertools.count(1)


async def new_card(world: World, **fields: Any) -> str:
    """The serial of a card that nobody has."""
    number, now = next(_numbers), world.services.clock()
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


async def link(
    world: World, serial: str, subscriber_id: str, *, pin: str = PIN, caller: Any = None
) -> httpx2.Response:
    return await world.client.post(
        f"{URL}/link",
        json={"subscriber_id": subscriber_id, "card_serial": serial, "pin": pin},
        auth=caller or world.service(),
    )


def child_body(serial: str, subscriber_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "parent_subscriber_id": subscriber_id,
        "card_serial": serial,
        "parent_pin": PIN,
        "child_pin": CHILD_PIN,
        "daily_limit": "100.00",
        "child_name": "Ibrahim Kamara",
        **fields,
    }


async def link_to_child(
    world: World, serial: str, subscriber_id: str, *, caller: Any = None, **fields: Any
) -> httpx2.Response:
    return await world.client.post(
        f"{URL}/child",
        json=child_body(serial, subscriber_id, **fields),
        auth=caller or await world.admin("S"),
    )


async def block(
    world: World, serial: str, reason: str = "fraud", *, caller: Any = None
) -> httpx2.Response:
    return await world.client.post(
        f"{URL}/{serial}/block", json={"reason": reason}, auth=caller or world.service()
    )


async def unblock(world: World, serial: str, *, caller: Any = None) -> httpx2.Response:
    return await world.client.post(f"{URL}/{serial}/unblock", auth=caller or world.service())


async def card(world: World, serial: str) -> dict[str, Any]:
    answer = await world.client.get(f"{URL}/{serial}", auth=world.service())
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def listen(world: World) -> None:
    """Somebody wants to be told everything."""
    await world.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        world.services.new_id(),
    )


async def told(world: World) -> list[tuple[str, Any]]:
    """What listeners are told about cards and subscribers, in order."""
    rows = await world.services.database.fetch(
        "SELECT type, data FROM events WHERE type NOT LIKE 'transaction.%' ORDER BY id"
    )
    return [(row["type"], row["data"]) for row in rows]
