"""Cards on pages: what is asked before one is blocked, whose card is closed to whom."""

import pytest

from cards.stage import link_to_child, new_card
from console.visitor import Visitor, Visitors
from tapgate.cards.model import BLOCK_REASON_TEXTS
from tapgate.console.pages.cards import ACTIONS
from world import World

HOSTILE = "<script>alert(1)</script>"


def test_every_reason_can_be_chosen_and_those_for_good_say_so() -> None:
    acts = {act.name: act for act in ACTIONS}
    (offered,), (for_good,) = acts["card.block"].fields, acts["card.lose"].fields
    assert {value for value, _ in offered.options} == set(BLOCK_REASON_TEXTS)
    assert {value for value, _ in for_good.options} == {"lost", "stolen", "damaged"}
    said = {value for value, label in offered.options if label.endswith("for good")}
    assert said == {"lost", "stolen", "damaged"}


async def test_the_life_of_a_card(ada: Visitor, world: World) -> None:
    holder = await world.subscriber()
    serial = await world.card(holder["id"])
    page = f"/console/cards/{serial}"
    shown = await ada.page(page)
    assert f'href="/console/subscribers/{holder["id"]}"' in shown
    assert "card.block" in shown and "card.unblock" not in shown
    await ada.act("card.block", {"reason": "fraud"}, serial=serial)
    shown = await ada.page(page)
    assert "The card is blocked." in shown and "card.unblock" in shown and "card.lose" in shown
    await ada.act("card.unblock", {}, serial=serial)
    await ada.act("card.block", {"reason": "stolen"}, serial=serial)
    shown = await ada.page(page)
    assert "blocked for good (stolen)" in shown
    assert "card.unblock" not in shown and "card.block" not in shown
    refused = await ada.act("card.unblock", {}, serial=serial)
    assert "This card is blocked for good" in refused.text


async def test_a_childs_card_has_a_meter_and_text_stays_text(ada: Visitor, world: World) -> None:
    parent, serial = await world.subscriber(), await new_card(world)
    await link_to_child(world, serial, parent["id"], child_name=HOSTILE)
    answer = await ada.get(f"/console/cards/{serial}")
    assert 'max="100.00" aria-label="Spent with this card"' in answer.text
    assert "&lt;script&gt;" in answer.text and HOSTILE not in answer.text
    assert HOSTILE not in (await ada.get("/console/cards")).text


async def test_a_new_card_can_be_linked_from_its_page(ada: Visitor, world: World) -> None:
    serial = await new_card(world)
    shown = await ada.page(f"/console/cards/{serial}")
    assert f"/console/acts/card.link?card_serial={serial}" in shown
    form = await ada.part(f"/console/acts/card.link?card_serial={serial}")
    assert f'value="{serial}"' in form.text


async def test_filters_that_are_none_are_said_and_left_out(ada: Visitor, world: World) -> None:
    serial = await new_card(world)
    shown = await ada.page("/console/cards?subscriber_id=nobody&search=NEW")
    assert "Subscriber must be" in shown and serial in shown
    part = (await ada.part("/console/cards?status=NONSENSE")).text
    assert 'id="wrong-filters" role="alert" hx-swap-oob="true"><p' in part and serial in part
    part = (await ada.part("/console/cards?search=NEW")).text
    assert 'hx-swap-oob="true"></div>' in part, "what was said before is taken back"


async def test_who_is_restricted_is_asked_but_the_card_can_be_blocked(
    ada: Visitor, world: World
) -> None:
    hidden = await world.restricted_subscriber()
    serial = await world.card(hidden["id"])
    shown = await ada.page(f"/console/cards/{serial}")
    assert "Card of a restricted subscriber" in shown and "card.block" in shown
    assert "Aminata" not in shown and hidden["id"] not in shown
    assert (await ada.act("card.block", {"reason": "lost"}, serial=serial)).status_code == 200
    assert serial not in await ada.page("/console/cards")


@pytest.mark.parametrize(
    ("role", "acts", "audit"),
    [("C", {"block"}, True), ("S", {"block"}, False), ("F", set(), False)],
)
async def test_roles_see_what_they_may(
    visitors: Visitors, world: World, role: str, acts: set[str], audit: bool
) -> None:
    visitor = await visitors.of(role)
    serial = await world.card((await world.subscriber())["id"])
    shown = await visitor.page(f"/console/cards/{serial}")
    assert ("card.block" in shown) == ("block" in acts)
    assert ('id="audit"' in shown) == audit
    assert "/console/cards/upload" not in await visitor.page("/console/cards")


async def test_there_is_no_page_of_no_card(ada: Visitor) -> None:
    for serial in ("NOBODY-1", "%3Cscript%3E", "a%2Fb"):
        answer = await ada.get(f"/console/cards/{serial}")
        assert answer.status_code == 404 and "<script>" not in answer.text
