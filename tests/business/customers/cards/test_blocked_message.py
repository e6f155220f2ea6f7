"""Notice to the wallet owner when a card is blocked, enqueued with the status change."""

import asyncio
from datetime import timedelta

import pytest

from builders import participants as builders
from builders.participants import block_card, create_card, link_child_card
from cases import each
from harness import Harness, parse_error
from tapgate.business.customers.cards import model, queries
from tapgate_client.schemas.subscribers import SubscriberLanguage

REASON_TEXTS = {
    "lost": "it was reported lost",
    "stolen": "it was reported stolen",
    "damaged": "it was reported damaged",
    "fraud": "possible fraud",
    "customer_request": "you requested it",
    "compliance": "a compliance check",
}


def test_every_block_reason_has_a_text() -> None:
    assert model.BLOCK_REASON_TEXTS["en"] == REASON_TEXTS
    for texts in model.BLOCK_REASON_TEXTS.values():
        assert texts.keys() == model.TRANSITIONS_BY_REASON.keys()
    assert model.BLOCK_REASON_TEXTS.keys() == set(SubscriberLanguage)


@each("reason", REASON_TEXTS)
async def test_block_message_names_the_card_and_the_reason(harness: Harness, reason: str) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    assert (await block_card(harness, serial, reason)).status_code == 200
    sent = await harness.list_pending_messages(holder["phone_number"], "card_changed")
    text = f"was blocked: {REASON_TEXTS[reason]}"
    assert sent == [["Aminata K.", f"••••{serial[-4:]}", text]]


async def test_block_message_uses_the_language_of_the_subscriber(harness: Harness) -> None:
    holder = await harness.create_subscriber(language="fr")
    serial = await harness.create_card(holder["id"])
    await block_card(harness, serial, "lost")
    assert await harness.services.database.fetchval("SELECT language FROM messages") == "fr"
    ((_, _, reason),) = await harness.list_pending_messages(holder["phone_number"], "card_changed")
    assert reason == "a été bloquée : elle a été déclarée perdue"


async def test_block_message_expires_after_a_week(harness: Harness) -> None:
    before = harness.services.clock()
    await block_card(harness, await harness.create_card((await harness.create_subscriber())["id"]))
    expires_at = await harness.database.fetchval("SELECT expires_at FROM messages")
    week = timedelta(days=7)
    assert before + week <= expires_at <= harness.services.clock() + week


async def test_block_message_for_a_child_card_is_sent_to_the_parent(harness: Harness) -> None:
    parent = await harness.create_subscriber()
    serial = await create_card(harness)
    assert (await link_child_card(harness, serial, parent["id"])).status_code in (200, 201)
    await block_card(harness, serial, "stolen")
    sent = await harness.list_pending_messages(parent["phone_number"], "card_changed")
    assert [text for _, _, text in sent] == [
        "was blocked: it was reported stolen",
        "was linked to your wallet",
    ]


async def test_blocked_card_reported_lost_sends_another_message(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    await block_card(harness, serial, "fraud")
    assert parse_error(await block_card(harness, serial, "compliance")) == (409, "ALREADY_BLOCKED")
    await block_card(harness, serial, "lost")
    sent = await harness.list_pending_messages(holder["phone_number"], "card_changed")
    texts = [f"was blocked: {REASON_TEXTS[reason]}" for reason in ("lost", "fraud")]
    assert [text for _, _, text in sent] == texts


async def test_rejected_block_sends_no_message(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    lost = await harness.create_card(holder["id"], status="LOST")
    assert parse_error(await block_card(harness, lost)) == (409, "ALREADY_BLOCKED")
    assert parse_error(await block_card(harness, await create_card(harness))) == (
        409,
        "CARD_NOT_LINKED",
    )
    assert await harness.database.fetchval("SELECT count(*) FROM messages") == 0


async def test_concurrent_blocks_send_one_message(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    await asyncio.gather(*(block_card(harness, serial) for _ in range(5)))
    assert len(await harness.list_pending_messages(holder["phone_number"], "card_changed")) == 1


async def test_block_that_fails_to_save_sends_no_message(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])

    async def fail_to_save(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(queries, "save", fail_to_save)
        assert (await block_card(harness, serial)).status_code == 500
    assert (await builders.get_card(harness, serial))["status"] == "ACTIVE"
    assert await harness.list_pending_messages(holder["phone_number"], "card_changed") == []


async def test_block_message_is_sent_for_every_kind_of_caller(harness: Harness) -> None:
    holder = await harness.create_restricted_subscriber()
    for caller in (
        await harness.create_admin("S"),
        await harness.create_api_key("cards:write"),
        harness.get_service_auth(),
    ):
        serial = await harness.create_card(holder["id"])
        response = await block_card(harness, serial, caller=caller)
        assert response.status_code == 200, response.text
    assert len(await harness.list_pending_messages(holder["phone_number"], "card_changed")) == 3
