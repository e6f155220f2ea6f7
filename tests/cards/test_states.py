"""Blocking and unblocking cards: at once, by reason, and for good where it is for good."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from cards.stage import (
    URL,
    block,
    card,
    link_to_child,
    listen,
    new_card,
    refusal,
    told,
    unblock,
)
from world import PIN, World

FOR_GOOD = ["lost", "stolen", "damaged"]
FOR_NOW = ["fraud", "customer_request", "compliance"]


async def holders_card(world: World, **fields: Any) -> str:
    return await world.card((await world.subscriber())["id"], **fields)


async def expired_card(world: World, **fields: Any) -> str:
    yesterday = world.services.clock() - timedelta(days=1)
    return await holders_card(world, expires_at=yesterday, **fields)


@pytest.mark.parametrize("reason", FOR_GOOD + FOR_NOW)
async def test_the_reason_decides_whether_it_is_for_good(world: World, reason: str) -> None:
    serial = await holders_card(world)
    answer = await block(world, serial, reason)
    assert answer.status_code == 200
    assert list(answer.json()) == ["success", "message", "card"]
    record = answer.json()["card"]
    assert record == await card(world, serial)
    assert record["status_reason"] == reason
    answer = await unblock(world, serial)
    if reason in FOR_GOOD:
        assert record["status"] == "LOST"
        assert refusal(answer) == (400, "PERMANENT_BLOCK")
    else:
        assert record["status"] == "BLOCKED"
        assert answer.status_code == 200
        assert (answer.json()["card"]["status"], answer.json()["card"]["status_reason"]) == (
            "ACTIVE",
            None,
        )


async def test_a_blocked_card_may_turn_out_to_be_lost(world: World) -> None:
    serial = await holders_card(world, status="BLOCKED", status_reason="fraud")
    for reason in FOR_NOW:
        assert refusal(await block(world, serial, reason)) == (409, "ALREADY_BLOCKED")
    assert (await card(world, serial))["status_reason"] == "fraud"
    answer = await block(world, serial, "lost")
    assert answer.json()["card"]["status"] == "LOST"


async def test_moves_that_are_not_there_are_refused_by_name(world: World) -> None:
    for reason in FOR_GOOD + FOR_NOW:
        serial = await holders_card(world, status="LOST")
        assert refusal(await block(world, serial, reason)) == (409, "ALREADY_BLOCKED")
        serial = await expired_card(world)
        assert refusal(await block(world, serial, reason)) == (409, "ALREADY_BLOCKED")
        serial = await new_card(world)
        assert refusal(await block(world, serial, reason)) == (409, "CARD_NOT_LINKED")
    assert refusal(await unblock(world, await new_card(world))) == (409, "CARD_NOT_LINKED")
    assert refusal(await unblock(world, await holders_card(world))) == (409, "NOT_BLOCKED")
    for status in ("ACTIVE", "BLOCKED"):
        serial = await expired_card(world, status=status)
        assert refusal(await unblock(world, serial)) == (400, "PERMANENT_BLOCK")
    serial = await new_card(world, expires_at=world.services.clock())
    assert refusal(await unblock(world, serial)) == (400, "PERMANENT_BLOCK")


async def test_a_card_expires_by_itself(world: World) -> None:
    expires_at = world.services.clock() + timedelta(hours=1)
    serial = await holders_card(world, expires_at=expires_at)
    lost = await holders_card(world, expires_at=expires_at, status="LOST")
    assert (await card(world, serial))["status"] == "ACTIVE"
    world.forward(hours=2)
    assert (await card(world, serial))["status"] == "EXPIRED"
    assert (await card(world, lost))["status"] == "LOST"


async def test_the_reason_is_one_of_six(world: World) -> None:
    serial, admin = await holders_card(world), await world.admin()
    bodies: list[tuple[Any, int]] = [
        (None, 400),
        ({}, 400),
        ({"reason": None}, 400),
        ({"reason": 5}, 400),
        ({"reason": ""}, 422),
        ({"reason": "LOST"}, 422),
        ({"reason": "eaten by a dog"}, 422),
    ]
    for body, status in bodies:
        answer = await world.client.post(f"{URL}/{serial}/block", json=body, auth=admin)
        assert answer.status_code == status, body
        assert "dog" not in answer.text
    assert (await card(world, serial))["status"] == "ACTIVE"


async def test_why_it_was_unblocked_is_kept(world: World) -> None:
    serial, admin = await holders_card(world, status="BLOCKED"), await world.admin("C")
    answer = await world.client.post(
        f"{URL}/{serial}/unblock", json={"reason": "Found again"}, auth=admin
    )
    assert answer.json()["card"]["status_reason"] == "Found again"
    (entry,) = await world.audit(serial, "card.unblocked")
    assert (entry["reason"], entry["actor"]["id"]) == ("Found again", admin.id)


async def test_unknown_cards_are_not_found(world: World) -> None:
    for serial in ("NEW-NOT-THERE", "%20", "x" * 200, "'"):
        assert refusal(await block(world, serial)) == (404, "CARD_NOT_FOUND")
        assert refusal(await unblock(world, serial)) == (404, "CARD_NOT_FOUND")
        answer = await world.client.get(f"{URL}/{serial}", auth=world.service())
        assert refusal(answer) == (404, "CARD_NOT_FOUND")


async def transfer(world: World, sender_id: str, serial: str) -> str | None:
    """Money sent to a card; the code when it is refused."""
    answer = await world.client.post(
        "/api/v1/wallet/transfer-p2p",
        json={
            "sender_id": sender_id,
            "recipient_card_serial": serial,
            "amount": "1.00",
            "pin": PIN,
        },
        auth=world.service(),
    )
    code: str | None = answer.json().get("code")
    return code


async def test_payments_feel_it_at_once(world: World) -> None:
    sender = await world.subscriber(balance="100.00")
    serial = await holders_card(world)
    assert await transfer(world, sender["id"], serial) is None
    await block(world, serial)
    assert await transfer(world, sender["id"], serial) == "CARD_NOT_ACTIVE"
    await unblock(world, serial)
    assert await transfer(world, sender["id"], serial) is None


async def test_no_payment_comes_after_the_block_among_many(world: World) -> None:
    sender = await world.subscriber(balance="100.00")
    serial = await holders_card(world)
    blocked = asyncio.Event()

    async def send() -> tuple[bool, str | None]:
        began_after = blocked.is_set()
        return began_after, await transfer(world, sender["id"], serial)

    async def block_it() -> None:
        assert (await block(world, serial)).status_code == 200
        blocked.set()

    blocking = asyncio.create_task(block_it())
    results = []
    while not blocked.is_set():
        results += await asyncio.gather(*(send() for _ in range(3)))
    results += await asyncio.gather(*(send() for _ in range(3)))
    await blocking
    assert {code for after, code in results if after} == {"CARD_NOT_ACTIVE"}


async def test_one_of_many_blocks(world: World) -> None:
    serial = await holders_card(world)
    answers = await asyncio.gather(*(block(world, serial) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    assert len(await world.audit(serial, "card.blocked")) == 1


async def test_a_child_card_works_on_when_its_parents_card_is_blocked(world: World) -> None:
    holder = await world.subscriber()
    own, childs = await world.card(holder["id"]), await new_card(world)
    await link_to_child(world, childs, holder["id"])
    await block(world, own, "stolen")
    sender = await world.subscriber(balance="100.00")
    assert await transfer(world, sender["id"], childs) is None


async def test_a_blocked_subscribers_cards_are_not_rewritten(world: World) -> None:
    holder = await world.subscriber()
    serial = await world.card(holder["id"])
    before = await card(world, serial)
    url = f"/api/v1/subscribers/{holder['id']}/block"
    await world.client.post(url, json={"reason": "r"}, auth=await world.admin())
    assert await card(world, serial) == before
    assert (await block(world, serial)).status_code == 200
    assert (await unblock(world, serial)).status_code == 200


async def test_cards_of_a_closed_subscriber_can_only_be_blocked(world: World) -> None:
    holder, admin = await world.subscriber(), await world.admin()
    serial = await world.card(holder["id"])
    url = f"/api/v1/subscribers/{holder['id']}/close"
    await world.client.post(url, json={"reason": "r"}, auth=admin)
    assert (await block(world, serial)).status_code == 200
    assert refusal(await unblock(world, serial)) == (409, "NOT_CLOSABLE")


async def test_changes_of_state_are_written_down_and_told(world: World) -> None:
    serial, admin = await holders_card(world), await world.admin("S")
    lost = await holders_card(world, status="LOST")
    await listen(world)
    first = (await block(world, serial, "fraud", caller=admin)).json()["card"]
    second = (await unblock(world, serial, caller=admin)).json()["card"]
    await block(world, lost)
    assert await told(world) == [("card.blocked", first), ("card.unblocked", second)]
    (entry,) = await world.audit(serial, "card.blocked")
    assert (entry["actor"]["id"], entry["result"], entry["reason"]) == (
        admin.id,
        "success",
        "fraud",
    )
    assert entry["changes"] == {"status": ["ACTIVE", "BLOCKED"], "status_reason": [None, "fraud"]}
    (entry,) = await world.audit(serial, "card.unblocked")
    assert entry["changes"]["status"] == ["BLOCKED", "ACTIVE"]


async def test_restricted_subscribers_cards_can_be_blocked_but_not_unblocked(world: World) -> None:
    holder = await world.restricted_subscriber()
    for caller in (await world.api_key("cards:write", "cards:read"), await world.admin("C")):
        serial = await world.card(holder["id"], type="CHILD", holder_name="Sia", daily_limit=500)
        answer = await block(world, serial, reason="fraud", caller=caller)
        assert answer.status_code == 200
        assert answer.json()["card"] == {
            "serial": serial,
            "status": "BLOCKED",
            "status_reason": "fraud",
            "subscriber_id": holder["id"],
            "restricted": True,
        }
        assert refusal(await unblock(world, serial, caller=caller)) == (403, "OTP_REQUIRED")
        assert (await unblock(world, serial)).status_code == 200
