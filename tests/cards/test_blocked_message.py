"""Message to the wallet owner when a card is blocked, enqueued with the status change."""

import asyncio
from datetime import timedelta

import pytest

from cards import builders
from cards.builders import block_card, create_card, link_child_card, parse_error, unblock_card
from harness import Harness
from tapgate.cards import model, queries

REASON_TEXTS = {
    "lost": "it was reported lost",
    "stolen": "it was reported stolen",
    "damaged": "it was reported damaged",
    "fraud": "possible fraud",
    "customer_request": "you requested it",
    "compliance": "a compliance check",
}


def test_every_block_reason_has_a_text() -> None:
    assert REASON_TEXTS == model.BLOCK_REASON_TEXTS
    assert REASON_TEXTS.keys() == model._TRANSITIONS_BY_REASON.keys()


@pytest.mark.parametrize("reason", REASON_TEXTS)
async def test_block_message_names_the_card_and_the_reason(world: Harness, reason: str) -> None:
    holder = await world.create_subscriber()
    serial = await world.create_card(holder["id"])
    assert (await block_card(world, serial, reason)).status_code == 200
    sent = await world.list_pending_messages(holder["phone_number"], "card_blocked")
    assert sent == [[f"••••{serial[-4:]}", REASON_TEXTS[reason]]]


async def test_block_message_expires_after_a_day(world: Harness) -> None:
    before = world.services.clock()
    await block_card(world, await world.create_card((await world.create_subscriber())["id"]))
    until = await world.services.database.fetchval("SELECT expires_at FROM messages")
    day = timedelta(hours=24)
    assert before + day <= until <= world.services.clock() + day


async def test_block_message_is_sent_for_every_kind_of_caller(world: Harness) -> None:
    holder = await world.create_restricted_subscriber()
    for caller in (
        await world.create_admin("S"),
        await world.create_api_key("cards:write"),
        world.get_service_auth(),
    ):
        serial = await world.create_card(holder["id"])
        answer = await block_card(world, serial, caller=caller)
        assert answer.status_code == 200, answer.text
    assert len(await world.list_pending_messages(holder["phone_number"], "card_blocked")) == 3


async def test_block_message_for_a_child_card_goes_to_the_parent(world: Harness) -> None:
    parent = await world.create_subscriber()
    serial = await create_card(world)
    assert (await link_child_card(world, serial, parent["id"])).status_code in (200, 201)
    await block_card(world, serial, "stolen")
    assert len(await world.list_pending_messages(parent["phone_number"], "card_blocked")) == 1


async def test_blocked_card_reported_lost_sends_another_message(world: Harness) -> None:
    holder = await world.create_subscriber()
    serial = await world.create_card(holder["id"])
    await block_card(world, serial, "fraud")
    assert parse_error(await block_card(world, serial, "compliance")) == (409, "ALREADY_BLOCKED")
    await block_card(world, serial, "lost")
    sent = await world.list_pending_messages(holder["phone_number"], "card_blocked")
    assert [words for _, words in sent] == [REASON_TEXTS["lost"], REASON_TEXTS["fraud"]]


async def test_rejected_block_and_unblock_send_no_message(world: Harness) -> None:
    holder = await world.create_subscriber()
    lost = await world.create_card(holder["id"], status="LOST")
    assert parse_error(await block_card(world, lost)) == (409, "ALREADY_BLOCKED")
    assert parse_error(await block_card(world, await create_card(world))) == (
        409,
        "CARD_NOT_LINKED",
    )
    blocked = await world.create_card(holder["id"], status="BLOCKED")
    assert (await unblock_card(world, blocked)).status_code == 200
    assert await world.services.database.fetchval("SELECT count(*) FROM messages") == 0


async def test_concurrent_blocks_send_one_message(world: Harness) -> None:
    holder = await world.create_subscriber()
    serial = await world.create_card(holder["id"])
    await asyncio.gather(*(block_card(world, serial) for _ in range(5)))
    assert len(await world.list_pending_messages(holder["phone_number"], "card_blocked")) == 1


async def test_failed_block_sends_no_message(
    world: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await world.create_subscriber()
    serial = await world.create_card(holder["id"])

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(queries, "save", broken)
        assert (await block_card(world, serial)).status_code == 500
    assert (await builders.get_card(world, serial))["status"] == "ACTIVE"
    assert await world.list_pending_messages(holder["phone_number"], "card_blocked") == []
