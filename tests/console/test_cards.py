"""Card pages: block reasons, status changes, and cards of restricted subscribers."""

from builders.participants import create_card, link_child_card
from drivers.console import ConsoleClient
from harness import Harness
from tapgate.cards.model import BLOCK_REASON_TEXTS
from tapgate.console.pages.cards import ACTIONS

XSS_PAYLOAD = "<script>alert(1)</script>"


def test_every_block_reason_is_offered_and_permanent_ones_are_labeled() -> None:
    actions = {action.name: action for action in ACTIONS}
    (block_reasons,) = actions["card.block"].fields
    (permanent_reasons,) = actions["card.lose"].fields
    assert {value for value, _ in block_reasons.options} == set(BLOCK_REASON_TEXTS)
    assert {value for value, _ in permanent_reasons.options} == {"lost", "stolen", "damaged"}
    labeled = {value for value, label in block_reasons.options if label.endswith("(permanent)")}
    assert labeled == {"lost", "stolen", "damaged"}


async def test_card_can_be_blocked_unblocked_and_blocked_permanently(
    ada: ConsoleClient, harness: Harness
) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    page = f"/console/cards/{serial}"
    text = await ada.get_page_text(page)
    assert f'href="/console/subscribers/{holder["id"]}"' in text
    assert "card.block" in text and "card.unblock" not in text
    await ada.submit_action("card.block", {"reason": "fraud"}, serial=serial)
    text = await ada.get_page_text(page)
    assert "Card blocked." in text and "card.unblock" in text and "card.lose" in text
    await ada.submit_action("card.unblock", {}, serial=serial)
    await ada.submit_action("card.block", {"reason": "stolen"}, serial=serial)
    text = await ada.get_page_text(page)
    assert "permanently blocked (stolen)" in text
    assert "card.unblock" not in text and "card.block" not in text
    rejected = await ada.submit_action("card.unblock", {}, serial=serial)
    assert "Card is permanently blocked" in rejected.text


async def test_child_card_shows_its_spending_and_escapes_the_name(
    ada: ConsoleClient, harness: Harness
) -> None:
    parent, serial = await harness.create_subscriber(), await create_card(harness)
    await link_child_card(harness, serial, parent["id"], child_name=XSS_PAYLOAD)
    response = await ada.get(f"/console/cards/{serial}")
    assert 'max="100.00" aria-label="Spent with this card"' in response.text
    assert "&lt;script&gt;" in response.text and XSS_PAYLOAD not in response.text
    assert XSS_PAYLOAD not in (await ada.get("/console/cards")).text


async def test_unassigned_card_can_be_linked_from_its_page(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial = await create_card(harness)
    text = await ada.get_page_text(f"/console/cards/{serial}")
    assert f"/console/actions/card.link?card_serial={serial}" in text
    form = await ada.get_partial(f"/console/actions/card.link?card_serial={serial}")
    assert f'value="{serial}"' in form.text


async def test_invalid_filters_are_reported_and_ignored(
    ada: ConsoleClient, harness: Harness
) -> None:
    serial = await create_card(harness)
    text = await ada.get_page_text("/console/cards?subscriber_id=nobody&search=NEW")
    assert "Customer must be" in text and serial in text
    partial = (await ada.get_partial("/console/cards?status=NONSENSE")).text
    assert 'id="filter-errors" role="alert" hx-swap-oob="true"><p' in partial and serial in partial
    partial = (await ada.get_partial("/console/cards?search=NEW")).text
    assert 'hx-swap-oob="true"></div>' in partial, "the previous error is cleared"


async def test_card_of_a_restricted_subscriber_is_masked_and_can_be_blocked(
    ada: ConsoleClient, harness: Harness
) -> None:
    hidden = await harness.create_restricted_subscriber()
    serial = await harness.create_card(hidden["id"])
    text = await ada.get_page_text(f"/console/cards/{serial}")
    assert "Card of a restricted customer" in text and "card.block" in text
    assert "Aminata" not in text and hidden["id"] not in text
    assert (
        await ada.submit_action("card.block", {"reason": "lost"}, serial=serial)
    ).status_code == 200
    assert serial not in await ada.get_page_text("/console/cards")
