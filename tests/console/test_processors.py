"""Processors on pages: secrets are seen once, and only by those who may have them."""

import re

from console.visitor import Visitor, Visitors
from world import World

HOSTILE = "<script>alert(1)</script>"


def _copied(answer: str) -> list[str]:
    """What the buttons beside identifiers and secrets copy."""
    return re.findall(r'data-copy="([^"]+)"', answer)


async def _created(ada: Visitor, world: World, name: str = "Kamara Stores") -> str:
    form = {"name": name, "phone_number": world.phone(), "email": "shop@example.com"}
    made = await ada.act("processor.create", form)
    return _copied(made.text)[0]


async def test_a_new_processor_shows_its_secret_once(ada: Visitor, world: World) -> None:
    form = {"name": "Kamara Stores", "phone_number": world.phone(), "email": "shop@example.com"}
    made = await ada.act("processor.create", form)
    processor, key, secret = _copied(made.text)
    assert processor.startswith("prc_") and key.startswith("key_") and len(secret) > 30
    page = f"/console/processors/{processor}"
    assert f'href="{page}"' in made.text, "where one goes when it is kept"
    shown = await ada.page(page)
    assert key in shown and secret not in shown


async def test_a_terminal_and_its_keys(ada: Visitor, world: World) -> None:
    processor = await _created(ada, world)
    page = f"/console/processors/{processor}"
    added = await ada.act("terminal.add", {"name": "Till 1"}, id=processor)
    terminal, key, _ = _copied(added.text)
    assert terminal.startswith("ter_") and f'href="{page}"' in added.text
    further = await ada.act(
        "terminal.key", {"terminal_id": terminal}, id=processor, terminal_id=terminal
    )
    newest = _copied(further.text)[0]
    shown = await ada.page(page)
    assert newest in shown and shown.count("Till 1") == 3, "the terminal, and both of its keys"
    await ada.act("processor.delete_key", id=processor, api_key_id=key)
    assert key not in await ada.page(page)
    await ada.act("terminal.block", id=processor, terminal_id=terminal)
    shown = await ada.page(page)
    assert "The terminal is blocked." in shown and "terminal.unblock" in shown
    assert "Till 1" in await ada.page(f"{page}/terminals")
    assert newest in await ada.page(f"{page}/keys")


async def test_what_fewer_may_see(visitors: Visitors, ada: Visitor, world: World) -> None:
    page = f"/console/processors/{await _created(ada, world)}"
    for role in "CSF":
        other = await visitors.of(role)
        shown = await other.page(page)
        assert "Kamara Stores" in shown
        assert "Terminals" not in shown and "Signing keys" not in shown
        assert ("processor.suspend" in shown) is (role == "C")
        assert (await other.get(f"{page}/keys")).status_code == 403
        assert (await other.part("/console/acts/processor.key")).status_code == 403


async def test_suspended_with_a_reason(ada: Visitor, world: World) -> None:
    processor = await _created(ada, world)
    page = f"/console/processors/{processor}"
    await ada.page(page)
    await ada.act("processor.suspend", {"reason": "Chargebacks"}, id=processor)
    shown = await ada.page(page)
    assert "Reason: Chargebacks" in shown and "processor.activate" in shown
    found = await ada.part("/console/processors?status=suspended")
    assert found.text.count("<tr>") == 1


async def test_found_by_a_part_of_the_name(ada: Visitor, world: World) -> None:
    await _created(ada, world, "Kamara Stores")
    await _created(ada, world, "Bo Market Cloth")
    found = await ada.part("/console/processors?search=cloth")
    assert found.text.count("<tr>") == 1 and "Bo Market Cloth" in found.text
    found = await ada.part("/console/processors?search=nobody")
    assert "No processor matches" in found.text


async def test_settlement_money_for_a_subscriber(ada: Visitor, world: World) -> None:
    person = await world.subscriber()
    processor = await _created(ada, world)
    order = {"subscriber_id": person["id"], "amount": "10"}
    refused = await ada.act("processor.transfer", order, id=processor)
    assert 'role="alert"' in refused.text and person["id"] in refused.text


async def test_names_are_text(ada: Visitor, world: World) -> None:
    processor = await _created(ada, world, HOSTILE)
    await ada.act("terminal.add", {"name": HOSTILE}, id=processor)
    one = f"/console/processors/{processor}"
    for path in ("/console/processors", one, f"{one}/terminals", f"{one}/keys"):
        answer = await ada.get(path)
        assert "&lt;script&gt;alert(1)" in answer.text and "<script>alert" not in answer.text
