"""Chat turns, reported by the messenger and kept for the timeline."""

import asyncio
from typing import Any

import httpx2

from builders.timeline import build_turn, get_page
from cases import each
from harness import Harness

TURNS_URL = "/api/v1/chat/turns"


async def report(harness: Harness, *turns: dict[str, Any], auth: Any = None) -> httpx2.Response:
    return await harness.post(
        TURNS_URL, json={"data": list(turns)}, auth=auth or harness.get_service_auth()
    )


async def list_turns(harness: Harness, record: dict[str, Any]) -> list[str]:
    page = await get_page(harness, record, kind="chat")
    return [item["resource_id"] for item in page["data"]]


async def test_turn_is_part_of_the_timeline(harness: Harness) -> None:
    record = await harness.create_subscriber()
    turn = build_turn(
        harness,
        record["phone_number"],
        command="send",
        input="form",
        outcome="declined",
        error_code="INSUFFICIENT_FUNDS",
        replies=2,
    )
    response = await report(harness, turn)
    assert (response.status_code, response.json()) == (200, {"stored": 1})
    (item,) = (await get_page(harness, record, kind="chat"))["data"]
    assert item.pop("at").endswith("Z")
    assert {name: value for name, value in item.items() if value is not None} == {
        "kind": "chat",
        "event": "send",
        "resource_id": turn["turn_id"],
        "status": "declined",
        "failure_code": "INSUFFICIENT_FUNDS",
        "channel": "messaging",
        "input": "form",
        "replies": 2,
    }


async def test_repeated_reports_store_a_turn_once(harness: Harness) -> None:
    record = await harness.create_subscriber()
    turns = [build_turn(harness, record["phone_number"]) for _ in range(3)]
    responses = await asyncio.gather(
        *(report(harness, *part, *part) for part in (turns, turns[::-1]) for _ in range(3))
    )
    assert sum(response.json()["stored"] for response in responses) == 3
    assert await list_turns(harness, record) == [turn["turn_id"] for turn in turns[::-1]]


async def test_turn_of_an_unknown_number_is_skipped(harness: Harness) -> None:
    response = await report(harness, build_turn(harness, harness.new_phone_number()))
    assert (response.status_code, response.json()) == (200, {"stored": 0})


async def test_turns_of_the_previous_owner_of_a_number_are_not_attributed(harness: Harness) -> None:
    record = await harness.create_subscriber()
    number, admin = record["phone_number"], await harness.create_admin("C")
    earlier, late = build_turn(harness, number), build_turn(harness, number)
    await report(harness, earlier)
    harness.advance_clock(minutes=1)
    change = {"phone_number": harness.new_phone_number()}
    url = f"/api/v1/subscribers/{record['id']}"
    assert (await harness.put(url, json=change, auth=admin)).status_code == 200
    new_owner = await harness.create_subscriber(phone_number=number)
    assert (await report(harness, late)).json() == {"stored": 0}
    assert await list_turns(harness, new_owner) == []
    assert await list_turns(harness, record) == [earlier["turn_id"]]


@each(
    "fields, field",
    [
        ({"turn_id": "cht_x"}, "turn_id"),
        ({"phone_number": "x"}, "phone_number"),
        ({"channel": "pigeon"}, "channel"),
        ({"input": "4826"}, "input"),
        ({"command": "send 50 to Fatu"}, "command"),
        ({"command": "4826"}, "command"),
        ({"command": "Balance"}, "command"),
        ({"command": "a" * 41}, "command"),
        ({"command": "balance\n"}, "command"),
        ({"error_code": "PIN 4826"}, "error_code"),
        ({"outcome": "paid"}, "outcome"),
        ({"replies": -1}, "replies"),
        ({"replies": 1001}, "replies"),
    ],
)
async def test_turn_cannot_contain_texts_or_numbers(
    harness: Harness, fields: dict[str, Any], field: str
) -> None:
    turn = build_turn(harness, harness.new_phone_number()) | fields
    response = await report(harness, turn)
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == [f"data[0].{field}"]


async def test_only_services_can_report_turns(harness: Harness) -> None:
    turn = build_turn(harness, harness.new_phone_number())
    for auth in (await harness.create_admin(), await harness.create_api_key("subscribers:write")):
        assert (await report(harness, turn, auth=auth)).status_code == 403
