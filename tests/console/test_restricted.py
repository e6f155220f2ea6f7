"""No page tells about a restricted subscriber more than that there is one."""

import html
import re

from cards.stage import new_card
from console.visitor import Visitor, Visitors
from tapgate.ledger import chart
from transactions.movements import move, processor, refund
from world import PIN, World

_LINK = re.compile(r'(?:href|hx-get|src)="(/(?:console|simulator)[^"#]*)')
_NO_PAGES = ("/console/assets/", "/simulator/assets/", "/console/sign-in")
_OWN = {"first_name": "Secretive", "last_name": "Unseenova", "email": "unseenova@example.com"}


async def _reached(visitor: Visitor, *begin: str) -> dict[str, str]:
    """Every page and every form that a person gets to by clicking."""
    seen: dict[str, str] = {}
    waiting = [*begin]
    while waiting:
        path = waiting.pop()
        if path in seen or path.startswith(_NO_PAGES):
            continue
        answer = await visitor.get(path)
        assert answer.status_code < 500, path
        seen[path] = html.unescape(answer.text)
        waiting += map(html.unescape, _LINK.findall(answer.text))
    return seen


async def _busy(world: World) -> tuple[dict[str, str], str]:
    """Somebody about whom there is something in every list, restricted at last; and a card."""
    person, other = await world.subscriber(balance="900", **_OWN), await world.subscriber()
    admin, url = await world.admin(), f"/api/v1/subscribers/{person['id']}"
    card = await new_card(world)
    details = {"asked_by": person["phone_number"], "note": "Unseenova called"}
    alert = {"alert_type": "odd", "subscriber_id": person["id"], "details": details}
    own = {"subscriber_id": person["id"], "card_serial": card, "pin": PIN}
    for path, body, credential in (
        ("compliance/alerts", alert, world.service()),
        ("cards/link", own, admin),
        (f"subscribers/{person['id']}/block", {"reason": "Unseenova lost the phone"}, admin),
        (f"subscribers/{person['id']}/unblock", {"reason": "Unseenova found it"}, admin),
    ):
        done = await world.client.post(f"/api/v1/{path}", json=body, auth=credential)
        assert done.is_success, done.text
    shop = await processor(world)
    paid = await move(world, chart.POS_PAYMENT, card, shop, "100")
    await refund(world, paid, shop, "30")
    await move(world, chart.TRANSFER_P2P, person["id"], other["id"], "77")
    await world.client.put(url, json={"restricted": True, "address": "5 Road"}, auth=admin)
    return person, card


async def test_nothing_is_told_wherever_somebody_clicks(visitors: Visitors, world: World) -> None:
    person, card = await _busy(world)
    url = f"/api/v1/subscribers/{person['id']}"
    balance = (await world.client.get(url, auth=world.service())).json()["balance"]
    secrets = ("Secretive", "Unseenova", "unseenova", "5 Road", person["phone_number"], balance)
    for role in "ACSF":
        visitor = await visitors.of(role)
        seen = await _reached(
            visitor,
            "/console",
            "/console/transactions/export",
            f"/console/cards/{card}",
            f"/console/subscribers/{person['id']}",
            f"/console/audit?resource_id={card}",
            "/simulator/pos/cards",
            f"/simulator/pos/cards?search={card}",
            "/simulator/phone",
        )
        assert len(seen) > 20
        told = [path for path, text in seen.items() if any(one in text for one in secrets)]
        assert told == [], role


async def test_who_was_let_in_sees_what_was_changed(visitors: Visitors, world: World) -> None:
    person, _ = await _busy(world)
    officer, page = await visitors.of("C"), f"/console/audit?resource_id={person['id']}"
    assert "<ins>***</ins>" in await officer.page(page)
    await officer.act("subscriber.ask_code", id=person["id"])
    code = await world.code_sent_to(person["phone_number"])
    await officer.act("subscriber.enter_code", {"otp": code}, id=person["id"])
    shown = await officer.page(page)
    assert "5 Road" in shown and "Unseenova lost the phone" in shown
