"""Changes to child cards."""

from typing import Any

import httpx2

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.participants import (
    CARDS_URL,
    CHILD_PIN,
    block_card,
    create_card,
    create_child_card,
    create_webhook_endpoint,
    get_card,
    link_card,
    list_events,
    pay_by_card,
)
from cases import each
from harness import Harness, parse_error


async def update_card(
    harness: Harness, serial: str, *, caller: Any = None, **fields: Any
) -> httpx2.Response:
    return await harness.client.put(
        f"{CARDS_URL}/{serial}", json=fields, auth=caller or await harness.create_admin("S")
    )


async def test_update_changes_the_given_fields_and_is_audited(harness: Harness) -> None:
    serial, _ = await create_child_card(harness, child_relationship="son")
    before = await get_card(harness, serial)
    await create_webhook_endpoint(harness)
    harness.advance_clock(seconds=1)
    key = await harness.create_api_key("cards:write")
    response = await update_card(
        harness, serial, caller=key, child_name="Sia Kamara", daily_limit="250"
    )
    assert response.status_code == 200
    record = response.json()
    changes = {"holder_name": "Sia Kamara", "daily_limit": "250.00"}
    assert record == before | changes | {"updated_at": record["updated_at"]}
    assert record["updated_at"] > before["updated_at"]
    assert await get_card(harness, serial) == record
    response = await update_card(harness, serial, child_relationship="daughter")
    assert response.json()["child_relationship"] == "daughter"
    first, second = await harness.list_audit_entries(serial, "card.updated")
    assert first["changes"] == {name: [before[name], value] for name, value in changes.items()}
    assert second["changes"] == {"child_relationship": ["son", "daughter"]}
    assert await list_events(harness) == []


async def test_new_daily_limit_applies_to_the_next_payment(harness: Harness) -> None:
    serial, _ = await create_child_card(harness, balance="500")
    (await pay_by_card(harness, serial, "80.00", CHILD_PIN)).require_accepted()
    await update_card(harness, serial, daily_limit="90.00")
    assert (await pay_by_card(harness, serial, "10.01", CHILD_PIN)).code == "CARD_LIMIT_EXCEEDED"
    await update_card(harness, serial, daily_limit="50.00")
    assert (await get_card(harness, serial))["spent_today"] == "80.00"
    assert (await pay_by_card(harness, serial, "1.00", CHILD_PIN)).code == "CARD_LIMIT_EXCEEDED"
    await update_card(harness, serial, daily_limit="200.00")
    (await pay_by_card(harness, serial, "120.00", CHILD_PIN)).require_accepted()


async def test_raising_a_limit_needs_an_approval_and_lowering_does_not(harness: Harness) -> None:
    serial, parent = await create_child_card(harness, balance="500")
    await set_rules(harness, build_rule("card_limits"))
    key = await harness.create_api_key("cards:write")
    staff = await harness.create_admin("S")
    for limit, caller in (("200.00", staff), ("100.01", key)):
        held = require_held(await update_card(harness, serial, caller=caller, daily_limit=limit))
        assert held["resource_id"] == parent["id"]
        assert held["changes"]["daily_limit"] == ["100.00", limit]
    assert (await pay_by_card(harness, serial, "100.01", CHILD_PIN)).code == "CARD_LIMIT_EXCEEDED"
    for fields in ({"daily_limit": "99"}, {"child_name": "Eve"}):
        assert (await update_card(harness, serial, **fields)).status_code == 200
    approved = await approve(
        harness, require_held(await update_card(harness, serial, daily_limit="99.50"))
    )
    assert approved["status"] == "executed"
    assert (await get_card(harness, serial))["daily_limit"] == "99.50"


async def test_parent_is_told_about_each_new_limit(harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    await harness.database.execute("DELETE FROM messages")
    for fields in (
        {"daily_limit": "250"},
        {"daily_limit": "250.00"},
        {"child_name": "Eve"},
        {"daily_limit": "50"},
    ):
        assert (await update_card(harness, serial, **fields)).status_code == 200
    sent = await harness.list_pending_messages(parent["phone_number"], "card_changed")
    assert sorted(text for _, _, text in sent) == [
        "has a new daily limit: 250.00 SLE",
        "has a new daily limit: 50.00 SLE",
    ]


async def test_update_without_changes_is_not_audited(harness: Harness) -> None:
    serial, _ = await create_child_card(harness)
    before = await get_card(harness, serial)
    for fields in ({}, {"daily_limit": "100"}, {"child_relationship": None}):
        response = await update_card(harness, serial, **fields)
        assert (response.status_code, response.json()) == (200, before)
    assert await harness.list_audit_entries(serial, "card.updated") == []


@each(
    "fields, status, field",
    [
        ({"daily_limit": "0"}, 422, "daily_limit"),
        ({"daily_limit": "1.005"}, 422, "daily_limit"),
        ({"daily_limit": 10}, 400, "daily_limit"),
        ({"child_name": ""}, 422, "child_name"),
        ({"child_relationship": "x" * 256}, 422, "child_relationship"),
    ],
)
async def test_invalid_field_is_rejected(
    harness: Harness, fields: dict[str, Any], status: int, field: str
) -> None:
    serial, _ = await create_child_card(harness)
    response = await update_card(harness, serial, **fields)
    assert response.status_code == status
    assert list(response.json()["details"]["fields"]) == [field]


async def test_only_child_cards_can_be_changed(harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    own_card, unassigned = await create_card(harness), await create_card(harness)
    await link_card(harness, own_card, parent["id"])
    response = await update_card(harness, own_card, daily_limit="10")
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["serial"]
    assert parse_error(await update_card(harness, unassigned, daily_limit="10")) == (
        409,
        "CARD_NOT_LINKED",
    )
    await block_card(harness, serial)
    assert (await update_card(harness, serial, daily_limit="10")).status_code == 200
    await block_card(harness, serial, "stolen")
    assert parse_error(await update_card(harness, serial, daily_limit="20")) == (
        400,
        "PERMANENT_BLOCK",
    )
    assert parse_error(await update_card(harness, "NONE")) == (404, "CARD_NOT_FOUND")


async def test_card_of_a_restricted_parent_requires_a_verified_code(harness: Harness) -> None:
    serial, parent = await create_child_card(harness)
    await harness.client.put(
        f"/api/v1/subscribers/{parent['id']}",
        json={"restricted": True},
        auth=await harness.create_admin("C"),
    )
    for caller in (await harness.create_admin("S"), await harness.create_api_key("cards:write")):
        response = await update_card(harness, serial, caller=caller, child_name="Eve")
        assert parse_error(response) == (403, "OTP_REQUIRED")
