"""Card pages: block reasons, status changes, and cards of restricted subscribers."""

import pytest

from cards.builders import create_card, link_child_card
from console.console_client import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.cards.model import BLOCK_REASON_TEXTS
from tapgate.console.pages.cards import ACTIONS

XSS_PAYLOAD = "<script>alert(1)</script>"


def test_every_block_reason_is_offered_and_permanent_ones_are_labeled() -> None:
    acts = {act.name: act for act in ACTIONS}
    (offered,), (for_good,) = acts["card.block"].fields, acts["card.lose"].fields
    assert {value for value, _ in offered.options} == set(BLOCK_REASON_TEXTS)
    assert {value for value, _ in for_good.options} == {"lost", "stolen", "damaged"}
    said = {value for value, label in offered.options if label.endswith("(permanent)")}
    assert said == {"lost", "stolen", "damaged"}


async def test_card_can_be_blocked_unblocked_and_blocked_permanently(
    ada: ConsoleClient, world: Harness
) -> None:
    holder = await world.create_subscriber()
    serial = await world.create_card(holder["id"])
    page = f"/console/cards/{serial}"
    shown = await ada.get_page_text(page)
    assert f'href="/console/subscribers/{holder["id"]}"' in shown
    assert "card.block" in shown and "card.unblock" not in shown
    await ada.submit_action("card.block", {"reason": "fraud"}, serial=serial)
    shown = await ada.get_page_text(page)
    assert "Card blocked." in shown and "card.unblock" in shown and "card.lose" in shown
    await ada.submit_action("card.unblock", {}, serial=serial)
    await ada.submit_action("card.block", {"reason": "stolen"}, serial=serial)
    shown = await ada.get_page_text(page)
    assert "permanently blocked (stolen)" in shown
    assert "card.unblock" not in shown and "card.block" not in shown
    refused = await ada.submit_action("card.unblock", {}, serial=serial)
    assert "Card is permanently blocked" in refused.text


async def test_child_card_shows_its_spending_and_escapes_the_name(
    ada: ConsoleClient, world: Harness
) -> None:
    parent, serial = await world.create_subscriber(), await create_card(world)
    await link_child_card(world, serial, parent["id"], child_name=XSS_PAYLOAD)
    answer = await ada.get(f"/console/cards/{serial}")
    assert 'max="100.00" aria-label="Spent with this card"' in answer.text
    assert "&lt;script&gt;" in answer.text and XSS_PAYLOAD not in answer.text
    assert XSS_PAYLOAD not in (await ada.get("/console/cards")).text


async def test_unassigned_card_can_be_linked_from_its_page(
    ada: ConsoleClient, world: Harness
) -> None:
    serial = await create_card(world)
    shown = await ada.get_page_text(f"/console/cards/{serial}")
    assert f"/console/actions/card.link?card_serial={serial}" in shown
    form = await ada.get_partial(f"/console/actions/card.link?card_serial={serial}")
    assert f'value="{serial}"' in form.text


async def test_invalid_filters_are_reported_and_ignored(ada: ConsoleClient, world: Harness) -> None:
    serial = await create_card(world)
    shown = await ada.get_page_text("/console/cards?subscriber_id=nobody&search=NEW")
    assert "Customer must be" in shown and serial in shown
    part = (await ada.get_partial("/console/cards?status=NONSENSE")).text
    assert 'id="filter-errors" role="alert" hx-swap-oob="true"><p' in part and serial in part
    part = (await ada.get_partial("/console/cards?search=NEW")).text
    assert 'hx-swap-oob="true"></div>' in part, "what was said before is taken back"


async def test_card_of_a_restricted_subscriber_is_masked_and_can_be_blocked(
    ada: ConsoleClient, world: Harness
) -> None:
    hidden = await world.create_restricted_subscriber()
    serial = await world.create_card(hidden["id"])
    shown = await ada.get_page_text(f"/console/cards/{serial}")
    assert "Card of a restricted customer" in shown and "card.block" in shown
    assert "Aminata" not in shown and hidden["id"] not in shown
    assert (
        await ada.submit_action("card.block", {"reason": "lost"}, serial=serial)
    ).status_code == 200
    assert serial not in await ada.get_page_text("/console/cards")


@pytest.mark.parametrize(
    ("role", "acts", "audit"),
    [("C", {"block"}, True), ("S", {"block"}, False), ("F", set(), False)],
)
async def test_card_actions_and_audit_log_are_shown_by_role(
    visitors: ConsoleClients, world: Harness, role: str, acts: set[str], audit: bool
) -> None:
    visitor = await visitors.create_signed_in(role)
    serial = await world.create_card((await world.create_subscriber())["id"])
    shown = await visitor.get_page_text(f"/console/cards/{serial}")
    assert ("card.block" in shown) == ("block" in acts)
    assert ('id="audit"' in shown) == audit
    assert "/console/cards/upload" not in await visitor.get_page_text("/console/cards")


async def test_unknown_card_is_404(ada: ConsoleClient) -> None:
    for serial in ("NOBODY-1", "%3Cscript%3E", "a%2Fb"):
        answer = await ada.get(f"/console/cards/{serial}")
        assert answer.status_code == 404 and "<script>" not in answer.text
