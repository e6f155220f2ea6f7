"""Console pages reveal no personal data about a restricted subscriber."""

import html
import re

from builders.participants import create_card
from builders.payments import create_processor, submit_and_get_id, submit_refund
from drivers.console import ConsoleClient, ConsoleClients
from harness import PIN, Harness
from tapgate.ledger import chart

_LINK = re.compile(r'(?:href|hx-get|src)="(/(?:console|simulator)[^"#]*)')
#: All test records are from today, so longer periods have no others.
_LONGER_PERIOD = re.compile(r"[?&]period=(?!day|today)")
_EXCLUDED_PATHS = ("/console/assets/", "/simulator/assets/", "/console/sign-in")
_PERSONAL_DATA = {
    "first_name": "Secretive",
    "last_name": "Unseenova",
    "email": "unseenova@example.com",
}


async def _crawl(console: ConsoleClient, *start_paths: str) -> dict[str, str]:
    """Return the text of every page and form reachable by following links, by path."""
    seen: dict[str, str] = {}
    queue = [*start_paths]
    while queue:
        path = queue.pop()
        if path in seen or path.startswith(_EXCLUDED_PATHS) or _LONGER_PERIOD.search(path):
            continue
        response = await console.get(path)
        assert response.status_code < 500, path
        seen[path] = html.unescape(response.text)
        queue += map(html.unescape, _LINK.findall(response.text))
    return seen


async def _create_restricted_subscriber(harness: Harness) -> tuple[dict[str, str], str]:
    """Create a restricted subscriber with a card, an alert, transactions and audit entries.

    Returns the subscriber and the card's serial.
    """
    person = await harness.create_subscriber(balance="900", **_PERSONAL_DATA)
    other = await harness.create_subscriber()
    admin, url = await harness.create_admin(), f"/api/v1/subscribers/{person['id']}"
    card = await create_card(harness)
    details = {"asked_by": person["phone_number"], "note": "Unseenova called"}
    alert = {"alert_type": "odd", "subscriber_id": person["id"], "details": details}
    card_link = {"subscriber_id": person["id"], "card_serial": card, "pin": PIN}
    for path, body, credential in (
        ("compliance/alerts", alert, harness.get_service_auth()),
        ("cards/link", card_link, admin),
        (f"subscribers/{person['id']}/block", {"reason": "Unseenova lost the phone"}, admin),
        (f"subscribers/{person['id']}/unblock", {"reason": "Unseenova found it"}, admin),
    ):
        response = await harness.post(f"/api/v1/{path}", json=body, auth=credential)
        assert response.is_success, response.text
    processor_id = await create_processor(harness)
    payment_id = await submit_and_get_id(harness, chart.POS_PAYMENT, card, processor_id, "100")
    await submit_refund(harness, payment_id, processor_id, "30")
    await submit_and_get_id(harness, chart.TRANSFER_P2P, person, other, "77")
    await harness.put(url, json={"restricted": True, "address": "5 Road"}, auth=admin)
    return person, card


async def test_no_reachable_page_reveals_personal_data_to_any_role(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    person, card = await _create_restricted_subscriber(harness)
    url = f"/api/v1/subscribers/{person['id']}"
    balance = (await harness.get(url, auth=harness.get_service_auth())).json()["balance"]
    secrets = ("Secretive", "Unseenova", "unseenova", "5 Road", person["phone_number"], balance)
    for role in "ACSF":
        console = await console_clients.create_signed_in(role)
        seen = await _crawl(
            console,
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
        leaks = [path for path, text in seen.items() if any(item in text for item in secrets)]
        assert leaks == [], role


async def test_audit_log_is_unmasked_after_the_access_code_is_entered(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    person, _ = await _create_restricted_subscriber(harness)
    officer = await console_clients.create_signed_in("C")
    page = f"/console/audit?resource_id={person['id']}"
    assert "<ins>***</ins>" in await officer.get_page_text(page)
    await officer.submit_action("subscriber.ask_code", id=person["id"])
    code = await harness.get_pending_code(person["phone_number"])
    await officer.submit_action("subscriber.enter_code", {"otp": code}, id=person["id"])
    text = await officer.get_page_text(page)
    assert "5 Road" in text and "Unseenova lost the phone" in text
