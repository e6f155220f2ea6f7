"""Replacing a lost card with a code from the customer's phone."""

import asyncio
from typing import Any

import httpx2
import pytest

from harness import BearerAuth, Harness, parse_error

URL = "/api/v1/cards"


@pytest.fixture
async def support(harness: Harness) -> BearerAuth:
    return await harness.create_admin("S")


async def begin(harness: Harness, serial: str, auth: BearerAuth, **body: str) -> httpx2.Response:
    body = {"reason": "lost", **body}
    return await harness.post(f"{URL}/{serial}/replace", json=body, auth=auth)


async def confirm(
    harness: Harness, serial: str, new_serial: str, otp: str, auth: BearerAuth
) -> httpx2.Response:
    body = {"card_serial": new_serial, "otp": otp}
    return await harness.post(f"{URL}/{serial}/replace/confirm", json=body, auth=auth)


async def create_spare_card(harness: Harness, owner: dict[str, Any]) -> str:
    """Create a card that is not linked to anyone."""
    not_linked = dict.fromkeys(("type", "account_id", "pin_holder_id", "linked_at"))
    return await harness.create_card(owner["id"], status="UNASSIGNED", **not_linked)


async def test_lost_card_is_replaced_with_a_code_instead_of_the_pin(
    harness: Harness, support: BearerAuth
) -> None:
    customer = await harness.create_subscriber(balance="100")
    old = await harness.create_card(customer["id"])
    new = await create_spare_card(harness, customer)
    begun = await begin(harness, old, support, reason="stolen")
    assert begun.status_code == 200, begun.text
    assert (begun.json()["card"]["status"], begun.json()["card"]["status_reason"]) == (
        "LOST",
        "stolen",
    )
    code = await harness.get_pending_code(customer["phone_number"])
    wrong = "000000" if code != "000000" else "111111"
    failed = await confirm(harness, old, new, wrong, support)
    assert parse_error(failed) == (400, "INVALID_OTP")
    assert failed.json()["details"] == {"attempts_remaining": 2}
    other_admin = await harness.create_admin("S")
    assert parse_error(await confirm(harness, old, new, code, other_admin)) == (400, "INVALID_OTP")
    replaced = await confirm(harness, old, new, code, support)
    assert replaced.status_code == 200, replaced.text
    card = replaced.json()["card"]
    assert (card["serial"], card["status"], card["subscriber_id"]) == (
        new,
        "ACTIVE",
        customer["id"],
    )
    assert parse_error(await confirm(harness, old, new, code, support)) == (400, "INVALID_OTP")
    (entry,) = [
        item
        for item in await harness.list_audit_entries(old, "card.replaced")
        if item["result"] == "success"
    ]
    assert entry["changes"] == {"card_serial": [old, new]}


async def test_only_one_of_two_parallel_confirmations_links_a_card(
    harness: Harness, support: BearerAuth
) -> None:
    customer = await harness.create_subscriber()
    old = await harness.create_card(customer["id"])
    spares = [await create_spare_card(harness, customer) for _ in range(2)]
    assert (await begin(harness, old, support)).status_code == 200
    code = await harness.get_pending_code(customer["phone_number"])
    replies = await asyncio.gather(
        *(confirm(harness, old, spare, code, support) for spare in spares)
    )
    assert sorted(reply.status_code for reply in replies) == [200, 400]


async def test_replacement_is_refused_for_cards_that_it_does_not_fit(
    harness: Harness, support: BearerAuth
) -> None:
    customer = await harness.create_subscriber()
    spare = await create_spare_card(harness, customer)
    assert parse_error(await begin(harness, spare, support)) == (409, "CARD_NOT_LINKED")
    child = await harness.create_card(customer["id"], type="CHILD", daily_limit=100)
    assert parse_error(await begin(harness, child, support)) == (409, "CARD_NOT_LINKED")
    active = await harness.create_card(customer["id"])
    answer = await confirm(harness, active, spare, "123456", support)
    assert parse_error(answer) == (409, "NOT_BLOCKED")
    assert parse_error(await begin(harness, active, support, reason="fraud")) == (
        422,
        "VALIDATION_FAILED",
    )
    assert parse_error(await begin(harness, "UNKNOWN-1", support)) == (404, "CARD_NOT_FOUND")


async def test_linked_card_cannot_be_the_new_card(harness: Harness, support: BearerAuth) -> None:
    customer = await harness.create_subscriber()
    old, other = [await harness.create_card(customer["id"]) for _ in range(2)]
    assert (await begin(harness, old, support)).status_code == 200
    code = await harness.get_pending_code(customer["phone_number"])
    assert parse_error(await confirm(harness, old, other, code, support)) == (
        409,
        "CARD_ALREADY_LINKED",
    )


async def test_code_is_not_sent_to_a_phone_number_that_was_just_changed(
    harness: Harness, support: BearerAuth
) -> None:
    customer = await harness.create_subscriber()
    old = await harness.create_card(customer["id"])
    changed = await harness.put(
        f"/api/v1/subscribers/{customer['id']}",
        json={"phone_number": harness.new_phone_number()},
        auth=support,
    )
    assert changed.status_code == 200, changed.text
    assert parse_error(await begin(harness, old, support)) == (403, "FORBIDDEN")
