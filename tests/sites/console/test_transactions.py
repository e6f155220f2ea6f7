"""Transaction pages: the filtered list, the detail page and the CSV export."""

import re

import pytest

from builders.ledger import build_request_key
from builders.payments import (
    PosDriver,
    create_processor,
    encode_transaction_id,
    set_kyc_level,
    submit_and_get_id,
    submit_command,
    submit_refund,
)
from drivers.console import ConsoleClient, ConsoleClients
from drivers.csv_files import read_rows
from harness import Harness
from tapgate.ledger import chart
from tapgate.sites.console.actions import DECLINE_CODES
from tapgate.sites.console.components.declines import explain_decline
from tapgate.sites.console.components.stories import tell_transaction
from tapgate.sites.console.translation.translator import Language, get_translator
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import TransactionType

URL = "/console/transactions"


async def test_payment_page_shows_entries_parties_and_refunds(
    ada: ConsoleClient, harness: Harness
) -> None:
    payer = await harness.create_subscriber(balance="1000")
    processor_id = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    payment_id = await submit_and_get_id(harness, chart.POS_PAYMENT, card, processor_id, "100")
    refund_id = await submit_refund(harness, payment_id, processor_id, "30")
    text = await ada.get_page_text(f"{URL}/{payment_id}")
    assert "POS payment of 100.00" in text
    for address in (f"subscribers/{payer['id']}", f"processors/{processor_id}", f"cards/{card}"):
        assert f'href="/console/{address}"' in text
    assert "· <strong>Wallet</strong>" in text and "· <strong>Settlement</strong>" in text
    assert "Refundable: 70.00 " in text
    assert f'href="{URL}/{refund_id}"' in text
    text = await ada.get_page_text(f"{URL}/{refund_id}")
    assert f'<p>Refund of <a href="{URL}/{payment_id}"' in text


async def test_payment_page_names_the_terminal(ada: ConsoleClient, harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    url = f"/api/v1/processors/{await harness.get_processor_id(pos.merchant_auth)}/terminals"
    admin = await harness.create_admin()
    added = (await harness.post(url, json={"name": "Till 2"}, auth=admin)).json()
    terminal_id = added["terminal"]["id"]
    payment = (await pos.pay("10.00", terminal_id=terminal_id)).json()
    text = await ada.get_page_text(f"{URL}/{payment['transaction_id']}")
    assert re.search(rf"Till 2<br>\s*<span class=\"copy\"><code>{terminal_id}</code>", text)


async def test_declined_refund_is_not_shown_as_refunded(
    ada: ConsoleClient, harness: Harness
) -> None:
    pos, owner = await PosDriver.create(harness), await harness.create_subscriber()
    payment_id = (await pos.pay("100.00")).json()["transaction_id"]
    merchant = await harness.get_processor_id(pos.merchant_auth)
    await submit_and_get_id(harness, chart.PROCESSOR_TRANSFER, merchant, owner, "90")
    assert (await pos.refund(payment_id)).json()["code"] == "INSUFFICIENT_FUNDS"
    (declined,) = (
        await harness.get(
            "/api/v1/transactions",
            params={"type": "refund", "status": "failed"},
            auth=await harness.create_admin(),
        )
    ).json()["data"]
    text = await ada.get_page_text(f"/console/transactions/{declined['id']}")
    assert "<p>Declined refund of " in text and "<p>Refund of " not in text


async def test_transaction_page_shows_the_sum_of_its_entries(
    ada: ConsoleClient, harness: Harness
) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "100")
    entries = (
        await harness.get(f"/api/v1/transactions/{sent}/entries", auth=await harness.create_admin())
    ).json()["entries"]
    assert len(entries) == 2, "one entry for the amount and one for the fee"
    total = sum(float(entry["amount"]) for entry in entries)
    text = await ada.get_page_text(f"{URL}/{sent}")
    footer = text.partition("<tfoot>")[2].partition("</tfoot>")[0]
    assert footer.count(f">{total:.2f}<") == 2, "debits and credits"
    assert "Debits = credits" in text


async def test_payment_is_refunded_from_its_page(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("100")).json()["transaction_id"]
    finance = await console_clients.create_signed_in("F")
    text = await finance.get_page_text(f"{URL}/{paid}")
    assert "Aminata Kamara paid 100.00 SLE by card at Shop." in text
    assert "/console/actions/transaction.refund?id=" in text
    refund = {"amount": "50", "reason": "half was missing"}
    await finance.submit_action("transaction.refund", refund, id=paid)
    text = await finance.get_page_text(f"{URL}/{paid}")
    assert "Refundable: 50.00 SLE." in text and "half was missing" in text
    support = await console_clients.create_signed_in("S")
    sent = await support.submit_action("transaction.refund", refund, id=paid)
    assert sent.headers["HX-Redirect"].startswith("/console/approvals/apr_")
    compliance = await console_clients.create_signed_in("C")
    assert "transaction.refund" not in await compliance.get_page_text(f"{URL}/{paid}")
    await finance.submit_action("transaction.send_receipt", {}, id=paid)
    assert await harness.list_pending_messages(pos.customer["phone_number"], "payment_made")


@pytest.mark.parametrize("language", Language)
def test_every_transaction_type_has_a_story(language: Language) -> None:
    parties = {"type": "agent", "name": "Kadiatu"}, {"type": "platform", "name": "Platform"}
    for kind in TransactionType:
        for status in ("completed", "failed"):
            record = {
                "type": kind, "status": status, "amount": "1250.00", "currency": "SLE",
                "from": parties[0], "to": parties[1],
            }  # fmt: skip
            translator = get_translator(language)
            story = tell_transaction(translator, record)
            assert translator.numbers.format_amount("1250.00", "SLE") in story
            assert "{" not in story and story.endswith(".")


@pytest.mark.parametrize("code", sorted(DECLINE_CODES))
def test_every_decline_is_explained(code: Code) -> None:
    record = {"failure_code": code, "failure_details": None, "amount": "1.00", "currency": "SLE"}
    explanation = explain_decline(get_translator(Language.EN), record)
    assert explanation.why != "The ledger declined the transaction."


async def test_declined_transaction_shows_the_reason(ada: ConsoleClient, harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="5")
    receiver = await harness.create_subscriber()
    outcome = await submit_command(harness, chart.TRANSFER_P2P, sender, receiver, "100")
    assert outcome.result is not None
    text = await ada.get_page_text(f"{URL}/{encode_transaction_id(outcome.result)}")
    assert "Declined: Insufficient funds." in text and "INSUFFICIENT_FUNDS" in text
    assert "Available" in text and "No ledger entries" in text
    path = f"{URL}/{encode_transaction_id(outcome.result)}/decline"
    assert path in text
    dialog = (await ada.get_partial(path)).text
    assert "101.50 SLE was needed, fee included, but only 5.00 SLE was available." in dialog


async def test_held_transaction_links_to_its_alert_for_compliance(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    rich, other = await harness.create_subscriber(), await harness.create_subscriber()
    for person in (rich, other):
        await set_kyc_level(harness, person["id"], 3)
    await harness.deposit(rich["id"], "2000000")
    held = await submit_and_get_id(harness, chart.TRANSFER_P2P, rich, other, "600000")
    compliance = await console_clients.create_signed_in("C")
    support = await console_clients.create_signed_in("S")
    page_text = await compliance.get_page_text(f"{URL}/{held}")
    assert 'href="/console/compliance/alerts/alr_' in page_text
    text = await support.get_page_text(f"{URL}/{held}")
    assert "Under review: funds are on hold" in text and "/compliance/alerts" not in text


async def test_transaction_page_shows_the_number_of_replays_after_a_flush(
    ada: ConsoleClient, harness: Harness
) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    idempotency_key = build_request_key("once", "this")
    for _ in range(3):
        sent = await submit_and_get_id(
            harness, chart.TRANSFER_P2P, sender, receiver, "10", idempotency_key=idempotency_key
        )
    assert "<dd>None</dd>" in await ada.get_page_text(f"{URL}/{sent}")
    await harness.services.ledger.replay_counter.flush(harness.database)
    text = await ada.get_page_text(f"{URL}/{sent}")
    assert "2 retries, last " in text and "Money moved once" in text


async def test_transactions_are_filtered_and_invalid_filters_are_reported(
    ada: ConsoleClient, harness: Harness
) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10")
    assert sent in await ada.get_page_text(f"{URL}?user_id={receiver['id']}&type=transfer_p2p")
    assert sent not in (await ada.get_partial(f"{URL}?type=pos_payment")).text
    assert sent not in (await ada.get_partial(f"{URL}?to=2000-01-01")).text
    text = await ada.get_page_text(f"{URL}?user_id=nonsense&from=yesterday&type=transfer_p2p")
    assert "Party: No customer, agent, merchant or partner matches." in text
    assert "From must be" in text
    assert sent in text, "the list is still shown"
    assert 'value="nonsense"' in text, "the filter keeps its input"


async def test_restricted_subscriber_is_masked_until_the_access_code_is_entered(
    ada: ConsoleClient, harness: Harness
) -> None:
    hidden = await harness.create_restricted_subscriber(balance="100")
    other = await harness.create_subscriber()
    card = await harness.create_card(hidden["id"])
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, hidden, other, "10")
    person = f"/console/subscribers/{hidden['id']}"
    for path in (
        f"{URL}?user_id={hidden['id']}",
        f"{URL}?user_id={hidden['id']}&card_serial={card}",
        f"{URL}/export?user_id={hidden['id']}",
    ):
        response = await ada.get(path)
        assert (response.status_code, response.headers["Location"]) == (303, person), path
        assert (await ada.get_partial(path)).headers["HX-Redirect"] == person
    assert "This customer is restricted. Request an access code" in await ada.get_page_text(person)
    page_text = await ada.get_page_text(f"{URL}?card_serial={card}")
    assert "Card belongs to a restricted customer" in page_text
    for path in (URL, f"{URL}/{sent}"):
        text = await ada.get_page_text(path)
        assert sent in text and hidden["id"] in text and "Personal data hidden" in text
        assert "Aminata" not in text and "90.00" not in text and "89.85" not in text
    file = await ada.get(f"{URL}/export")
    assert sent in file.text and "Aminata" not in file.text
    assert file.headers["X-Masked"] == "true"
    assert (await ada.get(f"{URL}/export?card_serial={card}")).status_code == 403
    await ada.submit_action("subscriber.ask_code", id=hidden["id"])
    code = await harness.get_pending_code(hidden["phone_number"])
    await ada.submit_action("subscriber.enter_code", {"otp": code}, id=hidden["id"])
    text = await ada.get_page_text(f"{URL}/{sent}")
    assert "Aminata" in text and "Personal data hidden" not in text


async def test_export_matches_the_api_export(ada: ConsoleClient, harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    for _ in range(3):
        await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10")
    query = f"user_id={receiver['id']}&type=transfer_p2p"
    file = await ada.get(f"{URL}/export?{query}")
    api_export = await harness.get(
        f"/api/v1/transactions/export?{query}", auth=await harness.create_admin("F")
    )
    assert file.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in file.headers["Content-Disposition"]
    assert file.content == api_export.content and len(read_rows(file.content)) == 4
    first_part = await ada.get(f"{URL}/export?{query}&limit=2")
    cursor = first_part.headers["X-Next-Cursor"]
    rest = await ada.get(f"{URL}/export?{query}&limit=2&cursor={cursor}")
    assert len(read_rows(rest.content)) == 2
    assert "X-Next-Cursor" not in rest.headers
    assert (await ada.get(f"{URL}/export?user_id=nonsense")).status_code == 422
