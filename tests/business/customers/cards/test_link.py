"""Linking cards: PIN checks, eligible cards, child cards and concurrent requests."""

import asyncio
import re
from datetime import timedelta

from builders.card_proofs import confirm, create_signing_card, list_clone_alerts, tap
from builders.participants import (
    CARDS_URL,
    CHILD_PIN,
    create_card,
    create_webhook_endpoint,
    get_card,
    link_card,
    link_child_card,
    list_events,
    pay_by_card,
)
from cases import each
from harness import PIN, WRONG_PIN, Harness, parse_error
from tapgate.business.customers.cards.model import get_child_card_error
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.core.records import require_id
from tapgate_client import ids
from tapgate_client.errors import Code

CARD_FIELDS = (
    "serial mac_address type status status_reason subscriber_id holder_name parent_subscriber_id "
    "child_relationship daily_limit spent_today currency authenticity keyset_id last_counter "
    "expires_at linked_at created_at updated_at"
).split()


async def test_linked_card_belongs_to_the_subscriber_and_can_pay(harness: Harness) -> None:
    holder = await harness.create_subscriber(balance="500.00")
    serial = await create_card(harness, uid="04:A2:B3:C4:D5:E6:F7")
    before = await get_card(harness, serial)
    assert list(before) == CARD_FIELDS
    assert {field for field, value in before.items() if value is not None} == {
        "serial", "mac_address", "status", "currency", "authenticity", "created_at", "updated_at",
    }  # fmt: skip
    response = await link_card(harness, serial, holder["id"])
    assert response.status_code == 200
    assert list(response.json()) == ["success", "message", "card"]
    record = response.json()["card"]
    assert record == await get_card(harness, serial)
    assert record["linked_at"] == record["updated_at"] > record["created_at"]
    assert record == before | {
        "type": "PARENT",
        "status": "ACTIVE",
        "subscriber_id": holder["id"],
        "holder_name": "Aminata Kamara",
        "linked_at": record["linked_at"],
        "updated_at": record["updated_at"],
    }
    (await pay_by_card(harness, serial, "10.00", PIN)).require_accepted()
    response = await harness.get(
        f"/api/v1/subscribers/{holder['id']}", auth=harness.get_service_auth()
    )
    assert response.json()["cards_count"] == 1


async def test_proof_of_a_tap_names_the_card_to_link_and_is_not_consumed(harness: Harness) -> None:
    serial = await create_card(harness, uid="04:A2:B3:C4:D5:E6:F7")
    other = await create_card(harness, uid="04:A2:B3:C4:D5:E6:F8")
    chip = await create_signing_card(harness, serial)
    used, proof = tap(chip), tap(chip)
    forged = {**proof, "cmac": "0" * 16}
    holder = await harness.create_subscriber(balance="50")

    async def link(**fields: object) -> tuple[int, str]:
        body = {"subscriber_id": holder["id"], "pin": PIN, **fields}
        response = await harness.post(
            f"{CARDS_URL}/link", json=body, auth=harness.get_service_auth()
        )
        return response.status_code, response.text

    assert (await link())[0] == 400
    assert (await link(card_proof=proof, card_serial=other))[0] == 422
    await confirm(harness, serial, used)
    assert "CARD_PROOF_USED" in (await link(card_proof=used, pin=WRONG_PIN))[1]
    assert await list_clone_alerts(harness) == [], "people paste old links"
    assert "CARD_NOT_GENUINE" in (await link(card_proof=forged, pin=WRONG_PIN))[1]
    assert len(await list_clone_alerts(harness)) == 1
    unknown = {"picc_data": "0" * 32, "cmac": "0" * 16}
    assert "CARD_NOT_GENUINE" in (await link(card_proof=unknown))[1]
    assert (await link(card_proof=proof))[0] == 200
    card = await get_card(harness, serial)
    assert (card["subscriber_id"], card["last_counter"]) == (holder["id"], 2)


async def test_child_card_has_its_own_pin_and_daily_limit(harness: Harness) -> None:
    holder = await harness.create_subscriber(balance="500.00")
    serial = await create_card(harness)
    response = await link_child_card(harness, serial, holder["id"], child_relationship="son")
    assert response.status_code == 201
    assert list(response.json()) == ["success", "message", "card"]
    record = response.json()["card"]
    assert record == await get_card(harness, serial)
    assert (record["type"], record["status"]) == ("CHILD", "ACTIVE")
    assert record["subscriber_id"] == record["parent_subscriber_id"] == holder["id"]
    assert (record["holder_name"], record["child_relationship"]) == ("Ibrahim Kamara", "son")
    assert (record["daily_limit"], record["spent_today"]) == ("100.00", "0.00")
    assert (await pay_by_card(harness, serial, "10.00", PIN)).code == "INVALID_PIN"
    (await pay_by_card(harness, serial, "40.00", CHILD_PIN)).require_accepted()
    assert (await pay_by_card(harness, serial, "60.01", CHILD_PIN)).code == "CARD_LIMIT_EXCEEDED"
    assert (await get_card(harness, serial))["spent_today"] == "40.00"
    harness.advance_clock(days=1)
    assert (await get_card(harness, serial))["spent_today"] == "0.00"
    assert not re.search(rf"\b{CHILD_PIN}\b", response.text), "the PIN is in the response"


async def test_parent_card_holder_name_follows_the_subscriber(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    own_card, child_card = await create_card(harness), await create_card(harness)
    await link_card(harness, own_card, holder["id"])
    await link_child_card(harness, child_card, holder["id"])
    await harness.put(
        f"/api/v1/subscribers/{holder['id']}",
        json={"last_name": "Sesay"},
        auth=await harness.create_admin(),
    )
    assert (await get_card(harness, own_card))["holder_name"] == "Aminata Sesay"
    assert (await get_card(harness, child_card))["holder_name"] == "Ibrahim Kamara"


async def test_subscriber_can_have_several_cards(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    for _ in range(6):
        response = await link_card(harness, await create_card(harness), holder["id"])
        assert response.status_code == 200


@each("verb", ["link", "child"])
async def test_unknown_subscriber_or_card_is_not_found(harness: Harness, verb: str) -> None:
    holder = await harness.create_subscriber()
    serial = await create_card(harness)
    link = link_card if verb == "link" else link_child_card
    for unknown in ("sub_0000000000000", "sub_", "x", serial):
        assert parse_error(await link(harness, serial, unknown)) == (404, "SUBSCRIBER_NOT_FOUND")
    response = await link(harness, "NEW-NOT-THERE", holder["id"])
    assert parse_error(response) == (404, "CARD_NOT_FOUND")


async def create_unlinkable_card(harness: Harness, state: str) -> str:
    """Create a card that cannot be linked and return its serial."""
    if state == "EXPIRED":
        return await create_card(harness, expires_at=harness.services.clock())
    return await harness.create_card((await harness.create_subscriber())["id"], status=state)


@each(
    "state, expected",
    [
        ("ACTIVE", (409, "CARD_ALREADY_LINKED")),
        ("BLOCKED", (409, "CARD_ALREADY_LINKED")),
        ("LOST", (403, "CARD_NOT_ACTIVE")),
        ("EXPIRED", (403, "CARD_NOT_ACTIVE")),
    ],
)
async def test_only_unassigned_cards_can_be_linked(
    harness: Harness, state: str, expected: tuple[int, str]
) -> None:
    holder = await harness.create_subscriber()
    serial = await create_unlinkable_card(harness, state)
    before = await get_card(harness, serial)
    assert before["status"] == state
    assert parse_error(await link_card(harness, serial, holder["id"])) == expected
    assert parse_error(await link_child_card(harness, serial, holder["id"])) == expected
    assert await get_card(harness, serial) == before


async def test_blocked_or_closed_subscriber_cannot_link_a_card(harness: Harness) -> None:
    serial, admin = await create_card(harness), await harness.create_admin()
    for verb, expected in (
        ("block", (403, "SUBSCRIBER_BLOCKED")),
        ("close", (409, "NOT_CLOSABLE")),
    ):
        holder = await harness.create_subscriber()
        url = f"/api/v1/subscribers/{holder['id']}/{verb}"
        await harness.post(url, json={"reason": "r"}, auth=admin)
        assert parse_error(await link_card(harness, serial, holder["id"])) == expected
        assert parse_error(await link_child_card(harness, serial, holder["id"])) == expected
    assert (await get_card(harness, serial))["status"] == "UNASSIGNED"


async def test_wrong_pins_are_counted_and_reported_before_the_card_status(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    linked_card = await create_unlinkable_card(harness, "ACTIVE")
    for remaining, link in ((2, link_card), (1, None), (0, link_card)):
        response = await (
            link(harness, linked_card, holder["id"], pin=WRONG_PIN)
            if link
            else link_child_card(harness, linked_card, holder["id"], parent_pin=WRONG_PIN)
        )
        assert parse_error(response) == (400, "INVALID_PIN")
        assert response.json()["details"] == {"attempts_remaining": remaining}
    for response in (
        await link_card(harness, linked_card, holder["id"]),
        await link_child_card(harness, linked_card, holder["id"]),
    ):
        assert parse_error(response) == (403, "ACCOUNT_LOCKED")
        assert response.json()["details"]["locked_until"].endswith("Z")
    entries = await harness.list_audit_entries(holder["id"], "subscriber.pin_verified")
    assert [entry["reason"] for entry in entries] == ["INVALID_PIN"] * 3 + ["ACCOUNT_LOCKED"] * 2


async def test_correct_pin_resets_the_count_even_when_the_card_is_rejected(
    harness: Harness,
) -> None:
    holder = await harness.create_subscriber()
    linked_card = await create_unlinkable_card(harness, "ACTIVE")
    for _ in range(2):
        await link_card(harness, linked_card, holder["id"], pin=WRONG_PIN)
        await link_card(harness, linked_card, holder["id"], pin=WRONG_PIN)
        assert parse_error(await link_card(harness, linked_card, holder["id"])) == (
            409,
            "CARD_ALREADY_LINKED",
        )


async def test_subscriber_category_determines_the_maximum_number_of_child_cards(
    harness: Harness,
) -> None:
    for category, allowed in (("standard", 4), ("vip", 10), ("corporate", None)):
        record = await harness.create_subscriber(category=category)
        assert record["max_child_cards"] == allowed
        holder = await subscribers.get(harness.database, require_id(ids.SUBSCRIBER, record["id"]))
        assert get_child_card_error(holder, 3 if allowed is None else allowed - 1) is None
        error = get_child_card_error(holder, allowed or 1000)
        assert (error and error.code) == (allowed and Code.MAX_CHILD_CARDS)


async def test_concurrent_child_links_do_not_exceed_the_maximum(harness: Harness) -> None:
    holder, admin = await harness.create_subscriber(), await harness.create_admin()
    serials = [await create_card(harness) for _ in range(12)]
    responses = await asyncio.gather(
        *(link_child_card(harness, serial, holder["id"], caller=admin) for serial in serials)
    )
    linked = [response for response in responses if response.status_code == 201]
    assert len(linked) == 4
    expected = {(400, "MAX_CHILD_CARDS")}
    assert {parse_error(response) for response in responses if response not in linked} == expected


async def test_lost_and_expired_child_cards_do_not_count_toward_the_maximum(
    harness: Harness,
) -> None:
    holder, admin = await harness.create_subscriber(), await harness.create_admin()
    expired = harness.services.clock() + timedelta(hours=1)
    serials = [await create_card(harness), await create_card(harness, expires_at=expired)]
    serials += [await create_card(harness) for _ in range(5)]
    for serial in serials[:4]:
        await link_child_card(harness, serial, holder["id"], caller=admin)
    for position, status in ((4, "lost"), (5, "expired"), (6, "blocked")):
        if status == "expired":
            harness.advance_clock(hours=2)
        else:
            reason = "lost" if status == "lost" else "fraud"
            url = f"{CARDS_URL}/{serials[0 if status == 'lost' else 2]}/block"
            response = await harness.post(url, json={"reason": reason}, auth=admin)
            assert response.status_code == 200
        response = await link_child_card(harness, serials[position], holder["id"], caller=admin)
        assert response.status_code == (400 if status == "blocked" else 201), status


async def test_weak_child_pin_is_rejected(harness: Harness) -> None:
    holder, serial = await harness.create_subscriber(), await create_card(harness)
    response = await link_child_card(harness, serial, holder["id"], child_pin="1234")
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["child_pin"]
    response = await link_child_card(harness, serial, holder["id"])
    assert response.status_code == 201


async def test_link_is_audited_and_published(harness: Harness) -> None:
    holder = await harness.create_subscriber()
    own_card = await create_card(harness)
    child_card = await create_card(harness)
    admin = await harness.create_admin("S")
    await create_webhook_endpoint(harness)
    first = (await link_card(harness, own_card, holder["id"], caller=admin)).json()["card"]
    second = (await link_child_card(harness, child_card, holder["id"], caller=admin)).json()["card"]
    assert await list_events(harness) == [("card.linked", first), ("card.linked", second)]
    (entry,) = await harness.list_audit_entries(own_card, "card.linked")
    assert entry["actor"]["id"] == admin.id
    assert entry["changes"] == {
        "type": [None, "PARENT"],
        "status": ["UNASSIGNED", "ACTIVE"],
        "subscriber_id": [None, holder["id"]],
        "holder_name": [None, "Aminata Kamara"],
        "linked_at": [None, first["linked_at"]],
    }
    (entry,) = await harness.list_audit_entries(child_card, "card.linked")
    assert entry["changes"]["daily_limit"] == [None, "100.00"]
