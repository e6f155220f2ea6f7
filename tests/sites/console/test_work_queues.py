"""Work queues in the console: counters, assignment, and the next item after a decision."""

from builders.alerts import create_alert
from builders.held_transfers import DECISION, create_held_transfer
from builders.kyc_documents import upload_document
from builders.support import send_message
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness

ALERTS_PAGE = "/console/compliance"


async def test_navigation_counts_what_waits_in_the_queues_of_the_role(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await upload_document(harness, await harness.create_subscriber())
    await create_alert(harness)
    officer = await console_clients.create_signed_in("C")
    text = await officer.get_page_text("/console/work")
    assert "KYC <span" in text and "Alerts <span" in text
    assert "/console/support" not in text and "/console/work?queue=failing_webhooks" not in text
    # The pages of both queues, in the closed entry with their sum, and all work.
    assert text.count('1<span class="visually-hidden"> waiting</span>') == 2
    assert text.count('2<span class="visually-hidden"> waiting</span>') == 2


async def test_resolved_alert_opens_the_next_alert(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    officer = await console_clients.create_signed_in("C")
    first, second, third = [await create_alert(harness) for _ in range(3)]
    colleague = await console_clients.create_signed_in("C")
    await colleague.submit_action("alert.assign", id=second["id"])
    page = await officer.get_page_text(f"{ALERTS_PAGE}/alerts/{first['id']}")
    assert f"{ALERTS_PAGE}/next?status=open&after={first['id']}" in page
    response = await officer.submit_action("alert.resolve", DECISION, id=first["id"])
    assert response.headers["HX-Redirect"] == f"{ALERTS_PAGE}/next"
    response = await officer.get(f"{ALERTS_PAGE}/next")
    assert response.headers["Location"] == f"{ALERTS_PAGE}/alerts/{third['id']}"
    response = await officer.get(f"{ALERTS_PAGE}/next?after={third['id']}")
    assert response.headers["Location"] == ALERTS_PAGE


async def test_released_payment_opens_the_next_held_payment(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    officer = await console_clients.create_signed_in("C")
    await create_alert(harness)
    payer, payee = (
        await harness.create_subscriber(balance="500"),
        await harness.create_subscriber(),
    )
    alert = await create_held_transfer(harness, payer, payee)
    text = await officer.get_page_text(f"{ALERTS_PAGE}?status=held")
    assert text.count("/console/compliance/alerts/") == 1 and alert in text
    next_page = f"{ALERTS_PAGE}/next?status=held"
    response = await officer.get(next_page)
    assert response.headers["Location"] == f"{ALERTS_PAGE}/alerts/{alert}"
    form = DECISION | {"transaction_decision": "release"}
    response = await officer.submit_action("alert.release", form, id=alert)
    assert response.headers["HX-Redirect"] == next_page
    response = await officer.get(next_page)
    assert response.headers["Location"] == f"{ALERTS_PAGE}?status=held"


async def test_alert_is_assigned_and_unassigned(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    officer = await console_clients.create_signed_in("C")
    alert = await create_alert(harness)
    page = f"{ALERTS_PAGE}/alerts/{alert['id']}"
    assert "Assign to me" in await officer.get_page_text(page)
    await officer.submit_action("alert.assign", id=alert["id"])
    text = await officer.get_page_text(page)
    assert "Unassign" in text and "Assign to me" not in text
    assert alert["id"] not in await officer.get_page_text(f"{ALERTS_PAGE}?assignee=none")
    await officer.submit_action("alert.unassign", id=alert["id"])
    assert alert["id"] in await officer.get_page_text(f"{ALERTS_PAGE}?assignee=none")


async def test_next_review_skips_customers_of_colleagues(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    officer = await console_clients.create_signed_in("C")
    colleague = await console_clients.create_signed_in("C")
    first, second = [await harness.create_subscriber(first_name=name) for name in ("One", "Two")]
    await upload_document(harness, first)
    await upload_document(harness, second)
    await colleague.submit_action("kyc.assign", id=first["id"])
    response = await officer.get("/console/kyc/next")
    assert response.headers["Location"] == f"/console/kyc/{second['id']}"
    response = await colleague.get("/console/kyc/next")
    assert response.headers["Location"] == f"/console/kyc/{first['id']}"
    text = await colleague.get_page_text(f"/console/kyc/{first['id']}")
    assert "Unassign" in text and "Next customer" in text


async def test_closed_request_opens_the_next_request(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    support = await console_clients.create_signed_in("S")
    first, second = (
        await send_message(harness, "First"),
        await send_message(harness, "Second", "+23276555003"),
    )
    text = await support.get_page_text("/console/support")
    assert text.index(first["id"]) < text.index(second["id"]), "the oldest comes first"
    text = await support.get_page_text(f"/console/support/{first['id']}")
    assert f"/console/support/next?after={first['id']}" in text
    response = await support.submit_action("support.close", id=first["id"])
    assert response.headers["HX-Redirect"] == "/console/support/next"
    response = await support.get("/console/support/next")
    assert response.headers["Location"] == f"/console/support/{second['id']}"


async def test_failing_webhooks_and_low_floats_are_filtered(
    ada: ConsoleClient, harness: Harness
) -> None:
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at, failing_since)
           VALUES (1, 'http://failing.example/', '{*}', '\\x00', now(), now()),
                  (2, 'http://working.example/', '{*}', '\\x00', now(), NULL)"""
    )
    text = await ada.get_page_text("/console/webhooks?failing=true")
    assert "failing.example" in text and "working.example" not in text
    text = await ada.get_page_text("/console/agents?low_float=true")
    assert "No agents match" in text
