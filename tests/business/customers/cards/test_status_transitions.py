"""Blocking and unblocking cards: immediate effect, and reasons that make a block permanent."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from builders.participants import (
    CARDS_URL,
    block_card,
    create_card,
    create_webhook_endpoint,
    get_card,
    link_child_card,
    list_events,
    unblock_card,
)
from cases import each
from harness import PIN, Harness, parse_error
from tapgate.business.customers.cards import model
from tapgate.business.customers.cards.model import Card
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.cards import CardStatus

NOW = datetime(2026, 1, 31, tzinfo=UTC)
PERMANENT_REASONS = ["lost", "stolen", "damaged"]
TEMPORARY_REASONS = ["fraud", "customer_request", "compliance"]


async def create_linked_card(harness: Harness, **fields: Any) -> str:
    return await harness.create_card((await harness.create_subscriber())["id"], **fields)


async def create_expired_card(harness: Harness, **fields: Any) -> str:
    yesterday = harness.services.clock() - timedelta(days=1)
    return await create_linked_card(harness, expires_at=yesterday, **fields)


@each("reason", PERMANENT_REASONS + TEMPORARY_REASONS)
async def test_block_reason_determines_whether_the_block_is_permanent(
    harness: Harness, reason: str
) -> None:
    serial = await create_linked_card(harness)
    response = await block_card(harness, serial, reason)
    assert response.status_code == 200
    assert list(response.json()) == ["success", "message", "card"]
    record = response.json()["card"]
    assert record == await get_card(harness, serial)
    assert record["status_reason"] == reason
    response = await unblock_card(harness, serial)
    if reason in PERMANENT_REASONS:
        assert record["status"] == "LOST"
        assert parse_error(response) == (400, "PERMANENT_BLOCK")
    else:
        assert record["status"] == "BLOCKED"
        assert response.status_code == 200
        assert (response.json()["card"]["status"], response.json()["card"]["status_reason"]) == (
            "ACTIVE",
            None,
        )


async def test_card_expires_automatically(harness: Harness) -> None:
    expires_at = harness.services.clock() + timedelta(hours=1)
    serial = await create_linked_card(harness, expires_at=expires_at)
    lost = await create_linked_card(harness, expires_at=expires_at, status="LOST")
    assert (await get_card(harness, serial))["status"] == "ACTIVE"
    harness.advance_clock(hours=2)
    assert (await get_card(harness, serial))["status"] == "EXPIRED"
    assert (await get_card(harness, lost))["status"] == "LOST"


async def test_unblock_reason_is_stored(harness: Harness) -> None:
    serial = await create_linked_card(harness, status="BLOCKED")
    admin = await harness.create_admin("C")
    response = await harness.post(
        f"{CARDS_URL}/{serial}/unblock", json={"reason": "Found again"}, auth=admin
    )
    assert response.json()["card"]["status_reason"] == "Found again"
    (entry,) = await harness.list_audit_entries(serial, "card.unblocked")
    assert (entry["reason"], entry["actor"]["id"]) == ("Found again", admin.id)


async def test_unknown_cards_are_not_found(harness: Harness) -> None:
    for serial in ("NEW-NOT-THERE", "%20", "x" * 200, "'"):
        assert parse_error(await block_card(harness, serial)) == (404, "CARD_NOT_FOUND")
        assert parse_error(await unblock_card(harness, serial)) == (404, "CARD_NOT_FOUND")
        response = await harness.get(f"{CARDS_URL}/{serial}", auth=harness.get_service_auth())
        assert parse_error(response) == (404, "CARD_NOT_FOUND")


async def transfer_to_card(harness: Harness, sender_id: str, serial: str) -> str | None:
    """Transfer money to a card and return the error code, or None on success."""
    response = await harness.post(
        "/api/v1/wallet/transfer-p2p",
        json={
            "sender_id": sender_id,
            "recipient_card_serial": serial,
            "amount": "1.00",
            "pin": PIN,
        },
        auth=harness.get_service_auth(),
    )
    code: str | None = response.json().get("code")
    return code


async def test_block_and_unblock_affect_transfers_to_the_card_immediately(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="100.00")
    serial = await create_linked_card(harness)
    assert await transfer_to_card(harness, sender["id"], serial) is None
    await block_card(harness, serial)
    assert await transfer_to_card(harness, sender["id"], serial) == "CARD_NOT_ACTIVE"
    await unblock_card(harness, serial)
    assert await transfer_to_card(harness, sender["id"], serial) is None


async def test_no_transfer_to_a_card_succeeds_after_it_was_blocked_concurrently(
    harness: Harness,
) -> None:
    sender = await harness.create_subscriber(balance="100.00")
    serial = await create_linked_card(harness)
    blocked = asyncio.Event()

    async def send() -> tuple[bool, str | None]:
        started_after_block = blocked.is_set()
        return started_after_block, await transfer_to_card(harness, sender["id"], serial)

    async def block_and_signal() -> None:
        assert (await block_card(harness, serial)).status_code == 200
        blocked.set()

    blocking = asyncio.create_task(block_and_signal())
    results = []
    while not blocked.is_set():
        results += await asyncio.gather(*(send() for _ in range(3)))
    results += await asyncio.gather(*(send() for _ in range(3)))
    await blocking
    assert {code for after, code in results if after} == {"CARD_NOT_ACTIVE"}


async def test_child_card_can_receive_transfers_when_the_parent_card_is_blocked(
    harness: Harness,
) -> None:
    holder = await harness.create_subscriber()
    own_card, child_card = await harness.create_card(holder["id"]), await create_card(harness)
    await link_child_card(harness, child_card, holder["id"])
    await block_card(harness, own_card, "stolen")
    sender = await harness.create_subscriber(balance="100.00")
    assert await transfer_to_card(harness, sender["id"], child_card) is None


async def test_blocking_a_subscriber_does_not_change_its_cards(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    before = await get_card(harness, serial)
    url = f"/api/v1/subscribers/{holder['id']}/block"
    await harness.post(url, json={"reason": "r"}, auth=await harness.create_admin())
    assert await get_card(harness, serial) == before
    assert (await block_card(harness, serial)).status_code == 200
    assert (await unblock_card(harness, serial)).status_code == 200


async def test_card_of_a_closed_subscriber_can_be_blocked_but_not_unblocked(
    harness: Harness,
) -> None:
    holder, admin = await harness.create_subscriber(), await harness.create_admin()
    serial = await harness.create_card(holder["id"])
    url = f"/api/v1/subscribers/{holder['id']}/close"
    await harness.post(url, json={"reason": "r"}, auth=admin)
    assert (await block_card(harness, serial)).status_code == 200
    assert parse_error(await unblock_card(harness, serial)) == (409, "NOT_CLOSABLE")


async def test_status_changes_are_audited_and_published(harness: Harness) -> None:
    serial, admin = await create_linked_card(harness), await harness.create_admin("S")
    lost = await create_linked_card(harness, status="LOST")
    await create_webhook_endpoint(harness)
    first = (await block_card(harness, serial, "fraud", caller=admin)).json()["card"]
    second = (await unblock_card(harness, serial, caller=admin)).json()["card"]
    await block_card(harness, lost)
    assert await list_events(harness) == [("card.blocked", first), ("card.unblocked", second)]
    (entry,) = await harness.list_audit_entries(serial, "card.blocked")
    assert (entry["actor"]["id"], entry["result"], entry["reason"]) == (
        admin.id,
        "success",
        "fraud",
    )
    assert entry["changes"] == {"status": ["ACTIVE", "BLOCKED"], "status_reason": [None, "fraud"]}
    (entry,) = await harness.list_audit_entries(serial, "card.unblocked")
    assert entry["changes"]["status"] == ["BLOCKED", "ACTIVE"]


async def test_card_of_a_restricted_subscriber_can_be_blocked_but_not_unblocked(
    harness: Harness,
) -> None:
    holder = await harness.create_restricted_subscriber()
    for caller in (
        await harness.create_api_key("cards:write", "cards:read"),
        await harness.create_admin("C"),
    ):
        serial = await harness.create_card(
            holder["id"], type="CHILD", holder_name="Sia", daily_limit=500
        )
        response = await block_card(harness, serial, reason="fraud", caller=caller)
        assert response.status_code == 200
        assert response.json()["card"] == {
            "serial": serial,
            "status": "BLOCKED",
            "status_reason": "fraud",
            "subscriber_id": holder["id"],
            "restricted": True,
        }
        assert parse_error(await unblock_card(harness, serial, caller=caller)) == (
            403,
            "OTP_REQUIRED",
        )
        assert (await unblock_card(harness, serial)).status_code == 200


def build_card(status: str, *, expired: bool = False) -> Card:
    expires_at = NOW if expired else None
    return Card(
        id=1,
        serial="T-1",
        status=CardStatus(status),
        expires_at=expires_at,
        created_at=NOW,
        updated_at=NOW,
    )


def get_result(change: Callable[..., Card], card: Card, reason: str | None) -> Code | CardStatus:
    """Return the new status, or the error code."""
    try:
        return change(card, reason, NOW).status
    except ApiError as error:
        return error.code


def test_block_depends_on_the_status_and_the_reason() -> None:
    for reason in (*PERMANENT_REASONS, *TEMPORARY_REASONS):
        permanent = reason in PERMANENT_REASONS
        results = {
            status: get_result(model.block, build_card(status), reason)
            for status in ("UNASSIGNED", "ACTIVE", "BLOCKED", "LOST")
        }
        assert results == {
            "UNASSIGNED": Code.CARD_NOT_LINKED,
            "ACTIVE": "LOST" if permanent else "BLOCKED",
            "BLOCKED": "LOST" if permanent else Code.ALREADY_BLOCKED,
            "LOST": Code.ALREADY_BLOCKED,
        }
        for status in ("ACTIVE", "BLOCKED"):
            card = build_card(status, expired=True)
            assert get_result(model.block, card, reason) == Code.ALREADY_BLOCKED


def test_only_a_temporarily_blocked_card_can_be_unblocked() -> None:
    for card, expected in (
        (build_card("UNASSIGNED"), Code.CARD_NOT_LINKED),
        (build_card("ACTIVE"), Code.NOT_BLOCKED),
        (build_card("BLOCKED"), CardStatus.ACTIVE),
        (build_card("LOST"), Code.PERMANENT_BLOCK),
        (build_card("UNASSIGNED", expired=True), Code.PERMANENT_BLOCK),
        (build_card("ACTIVE", expired=True), Code.PERMANENT_BLOCK),
        (build_card("BLOCKED", expired=True), Code.PERMANENT_BLOCK),
    ):
        assert get_result(model.unblock, card, None) == expected


async def test_active_card_cannot_be_unblocked(harness: Harness) -> None:
    response = await unblock_card(harness, await create_linked_card(harness))
    assert parse_error(response) == (409, "NOT_BLOCKED")
