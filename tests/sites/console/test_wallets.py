"""Console actions on a subscriber's money, PIN, documents and alerts."""

import base64
import io
import re

from PIL import Image

from drivers.console import ConsoleClient, ConsoleClients, contains_digits, parse_request_id
from harness import PIN, WRONG_PIN, Harness
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate.sites.console.console import ACTIONS

#: Endpoints that the console offers outside actions, and where.
_COVERED_ELSEWHERE = {
    "POST /api/v1/bank-statements": "the import page",
    "POST /api/v1/cards/upload-csv": "the upload page",
    "PUT /api/v1/batches/{id}/lines": "the page of a draft",
    "POST /api/v1/cards/{serial}/personalize": "the personalization page",
    "PUT /api/v1/fee-rules/{type}": "the fee form of each type",
    "PUT /api/v1/fee-rules": "the fee form of each type",
    "PUT /api/v1/commission-rules": "the commission form",
    "PUT /api/v1/ledger/gl-codes": "the form of GL codes",
    "POST /api/v1/admin/logout": "the sign-out button",
    "PUT /api/v1/admin/approval-rules": "the form of approval rules",
    "POST /api/v1/admin/me/step-up/oidc/start": "the page to verify your identity",
    "POST /api/v1/admin/me/step-up/oidc": "the page to verify your identity",
}
#: Endpoints that the console does not offer: the person enters the code and the new PIN in chat.
_NOT_OFFERED = {
    *(
        f"POST /api/v1/{resource}/reset-pin/confirm"
        for resource in ("subscribers/{id}", "cards/{serial}", "agents/{id}")
    ),
    # The portal offers statements to the owners themselves.
    "POST /api/v1/statements",
}


def test_every_state_changing_admin_endpoint_is_available_in_the_console() -> None:
    endpoints = [endpoint for group in ENDPOINT_GROUPS for endpoint in group]
    changing = {
        endpoint.name
        for endpoint in endpoints
        if endpoint.access.roles and endpoint.method != "GET"
    }
    offered = {action.endpoint for action in ACTIONS} | set(_COVERED_ELSEWHERE)
    assert not offered & _NOT_OFFERED
    assert changing == offered | _NOT_OFFERED


def _build_photo() -> str:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 120, 40)).save(file, "JPEG")
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


async def test_p2p_transfer_requires_the_senders_pin(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    finance = await console_clients.create_signed_in("F")
    sender = await harness.create_subscriber(balance="500")
    receiver = await harness.create_subscriber()
    form = {
        "sender_id": sender["id"],
        "recipient_card_serial": await harness.create_card(receiver["id"]),
        "amount": "20",
    }
    rejected = await finance.submit_action("wallet.send", {**form, "pin": WRONG_PIN})
    assert "Invalid PIN" in rejected.text and not contains_digits(rejected.text, WRONG_PIN)
    sent = await finance.submit_action("wallet.send", {**form, "pin": PIN})
    assert "HX-Redirect" in sent.headers, sent.text
    assert "20.00 SLE" in await finance.get_page_text(f"/console/subscribers/{receiver['id']}")


async def test_declined_transfer_can_be_corrected_and_resubmitted(
    ada: ConsoleClient, harness: Harness
) -> None:
    sender = await harness.create_subscriber(balance="10")
    receiver = await harness.create_subscriber()
    accounts = {"from_account_id": sender["account_id"], "to_account_id": receiver["account_id"]}
    form = {**accounts, "amount": "500", "pin": PIN}
    declined = await ada.submit_action("wallet.transfer", form)
    assert "Insufficient funds" in declined.text
    corrected = {**form, "amount": "5", "request_id": parse_request_id(declined.text)}
    response = await ada.post_partial("/console/actions/wallet.transfer", corrected)
    assert "HX-Redirect" in response.headers, response.text


async def test_statement_can_be_created_and_downloaded(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    support = await console_clients.create_signed_in("S")
    person = await harness.create_subscriber(balance="500")
    day = harness.services.clock().date().isoformat()
    form = {"subscriber_id": person["id"], "from_date": day, "to_date": day, "format": "csv"}
    response = await support.submit_action("wallet.statement", form)
    link = re.search(r'href="(/api/v1/statements/[^"]+)"', response.text)
    assert link is not None, response.text
    file = await support.client.get(link[1])
    assert file.headers["Content-Type"].startswith("text/csv")


async def test_quote_shows_the_total_and_the_expected_outcome(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    finance = await console_clients.create_signed_in("F")
    person = await harness.create_subscriber(balance="10")
    form = {"sender_id": person["id"], "type": "transfer_p2p", "amount": "100"}
    response = await finance.submit_action("wallet.quote", form)
    assert "Total" in response.text and "No: insufficient funds" in response.text
    assert "Declined" in response.text
    response = await finance.submit_action("wallet.quote", form | {"amount": "5"})
    assert "Allowed</span>" in response.text and "Active" not in response.text
    assert "<dt>PIN</dt><dd>Required" in response.text
    assert "<dt>Left today</dt><dd>100,000.00 SLE" in response.text
    card = await harness.create_card(person["id"])
    form |= {"type": "pos_payment", "amount": "5", "card_serial": card}
    response = await finance.submit_action("wallet.quote", form)
    assert "<dt>PIN</dt><dd>Not required" in response.text
    response = await finance.submit_action("wallet.quote", form | {"type": "transfer_p2p"})
    assert "must not be given for this type" in response.text


async def test_money_is_sent_to_a_phone_number(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    finance = await console_clients.create_signed_in("F")
    sender, friend = (
        await harness.create_subscriber(balance="50"),
        await harness.create_subscriber(),
    )
    form = {"sender_id": sender["id"], "amount": "20", "pin": PIN, "request_id": "one"}
    response = await finance.submit_action("wallet.send", form)
    assert "Identify the recipient by either a card or a phone number." in response.text
    form["recipient_phone_number"] = friend["phone_number"]
    await finance.submit_action("wallet.send", form)
    page = await finance.get_page_text(f"/console/subscribers/{friend['id']}")
    assert "20.00 SLE" in page


async def test_support_sends_a_reset_code_and_the_customer_sets_the_pin_in_chat(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    support = await console_clients.create_signed_in("S")
    person = await harness.create_subscriber()
    page = f"/console/subscribers/{person['id']}"
    text = await support.get_page_text(page)
    assert "subscriber.reset_pin" in text and "reset-pin/confirm" not in text
    form = await support.get_partial(f"/console/actions/subscriber.reset_pin?id={person['id']}")
    assert "enters the code and a new PIN in chat" in form.text and 'name="otp"' not in form.text
    await support.submit_action("subscriber.reset_pin", id=person["id"])
    code = await harness.get_pending_code(person["phone_number"])
    text = await support.get_page_text(page)
    assert "The customer sets the new PIN in chat." in text and not contains_digits(text, code)
    await harness.client.post(
        f"/api/v1/subscribers/{person['id']}/reset-pin/confirm",
        json={"otp": code, "new_pin": "8352"},
        auth=harness.get_service_auth(),
    )
    for pin, expected in (("8352", 200), (PIN, 400)):
        response = await support.submit_action(
            "subscriber.verify_pin", {"pin": pin}, id=person["id"]
        )
        assert ("HX-Redirect" in response.headers) == (expected == 200)
    change = {"old_pin": "8352", "new_pin": "6027"}
    changed = await support.submit_action("subscriber.change_pin", change, id=person["id"])
    assert "HX-Redirect" in changed.headers, changed.text


async def test_document_can_be_added_and_viewed(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    compliance = await console_clients.create_signed_in("C")
    support = await console_clients.create_signed_in("S")
    person = await harness.create_subscriber()
    form = {"document_type": "id_front", "image": _build_photo()}
    added = await support.submit_action("subscriber.document", form, id=person["id"])
    assert "HX-Redirect" in added.headers, added.text
    page = await compliance.get_page_text(f"/console/subscribers/{person['id']}")
    image = re.search(r'src="(/console/subscribers/[^"]+/documents/[^"]+)"', page)
    assert image is not None
    response = await compliance.get(image[1])
    assert response.headers["Content-Type"] == "image/jpeg"
    assert "ID front" in await support.get_page_text(f"/console/subscribers/{person['id']}")
    rejected = await support.submit_action(
        "subscriber.document", {**form, "image": "no picture"}, id=person["id"]
    )
    assert "data URI" in rejected.text


async def test_alert_can_be_raised_manually(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    compliance = await console_clients.create_signed_in("C")
    person = await harness.create_subscriber()
    form = {
        "subscriber_id": person["id"],
        "alert_type": "stolen phone",
        "severity": "HIGH",
        "details.note": "<b>Called at noon</b>",
    }
    raised = await compliance.submit_action("subscriber.alert", form)
    assert "HX-Redirect" in raised.headers, raised.text
    assert "Stolen phone" in await compliance.get_page_text(f"/console/subscribers/{person['id']}")


async def test_registration_redirects_to_the_new_subscriber(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    support = await console_clients.create_signed_in("S")
    form = {
        "first_name": "Isatu",
        "last_name": "Bangura",
        "phone_number": harness.new_phone_number(),
    }
    response = await support.submit_action(
        "subscriber.register", {**form, "category": "standard", "pin": PIN}
    )
    assert "Isatu Bangura" in await support.get_page_text(response.headers["HX-Redirect"])
