"""Whose card is blocked is told on the phone: by whomever, for whatever reason, with the change."""

import asyncio
from datetime import timedelta

import pytest

from cards import stage
from cards.stage import block, link_to_child, new_card, refusal, unblock
from tapgate.cards import model, queries
from world import World

WORDS = {
    "lost": "it was reported lost",
    "stolen": "it was reported stolen",
    "damaged": "it was reported damaged",
    "fraud": "possible fraud",
    "customer_request": "it was asked for",
    "compliance": "a compliance check",
}


def test_every_reason_has_words() -> None:
    assert WORDS == model.BLOCK_REASON_TEXTS
    assert WORDS.keys() == model._TRANSITIONS_BY_REASON.keys()


@pytest.mark.parametrize("reason", WORDS)
async def test_the_holder_is_told_which_card_and_why(world: World, reason: str) -> None:
    holder = await world.subscriber()
    serial = await world.card(holder["id"])
    assert (await block(world, serial, reason)).status_code == 200
    sent = await world.sent_to(holder["phone_number"], "card_blocked")
    assert sent == [[f"••••{serial[-4:]}", WORDS[reason]]]


async def test_it_is_worth_telling_for_a_day(world: World) -> None:
    before = world.services.clock()
    await block(world, await world.card((await world.subscriber())["id"]))
    until = await world.services.database.fetchval("SELECT expires_at FROM messages")
    day = timedelta(hours=24)
    assert before + day <= until <= world.services.clock() + day


async def test_whoever_blocks_it(world: World) -> None:
    holder = await world.restricted_subscriber()
    for caller in (await world.admin("S"), await world.api_key("cards:write"), world.service()):
        serial = await world.card(holder["id"])
        answer = await block(world, serial, caller=caller)
        assert answer.status_code == 200, answer.text
    assert len(await world.sent_to(holder["phone_number"], "card_blocked")) == 3


async def test_a_childs_card_is_told_to_the_wallets_owner(world: World) -> None:
    parent = await world.subscriber()
    serial = await new_card(world)
    assert (await link_to_child(world, serial, parent["id"])).status_code in (200, 201)
    await block(world, serial, "stolen")
    assert len(await world.sent_to(parent["phone_number"], "card_blocked")) == 1


async def test_a_blocked_card_that_turns_out_to_be_lost_is_told_again(world: World) -> None:
    holder = await world.subscriber()
    serial = await world.card(holder["id"])
    await block(world, serial, "fraud")
    assert refusal(await block(world, serial, "compliance")) == (409, "ALREADY_BLOCKED")
    await block(world, serial, "lost")
    sent = await world.sent_to(holder["phone_number"], "card_blocked")
    assert [words for _, words in sent] == [WORDS["lost"], WORDS["fraud"]]


async def test_refusals_and_unblocking_tell_nothing(world: World) -> None:
    holder = await world.subscriber()
    lost = await world.card(holder["id"], status="LOST")
    assert refusal(await block(world, lost)) == (409, "ALREADY_BLOCKED")
    assert refusal(await block(world, await new_card(world))) == (409, "CARD_NOT_LINKED")
    blocked = await world.card(holder["id"], status="BLOCKED")
    assert (await unblock(world, blocked)).status_code == 200
    assert await world.services.database.fetchval("SELECT count(*) FROM messages") == 0


async def test_blocked_by_many_at_once_it_is_told_once(world: World) -> None:
    holder = await world.subscriber()
    serial = await world.card(holder["id"])
    await asyncio.gather(*(block(world, serial) for _ in range(5)))
    assert len(await world.sent_to(holder["phone_number"], "card_blocked")) == 1


async def test_it_is_told_only_if_it_happened(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await world.subscriber()
    serial = await world.card(holder["id"])

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(queries, "save", broken)
        assert (await block(world, serial)).status_code == 500
    assert (await stage.card(world, serial))["status"] == "ACTIVE"
    assert await world.sent_to(holder["phone_number"], "card_blocked") == []
