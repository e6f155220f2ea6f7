"""Transaction pages: the filtered list, the detail page and the CSV export."""

import csv
import io

import pytest

from console.console_client import ConsoleClient, ConsoleClients
from harness import Harness
from ledger.builders import build_request_key
from pos.builders import PosDriver
from tapgate.ledger import chart
from transactions.builders import (
    create_processor,
    encode_transaction_id,
    set_kyc_level,
    submit_and_get_id,
    submit_command,
    submit_refund,
)

URL = "/console/transactions"
XSS_PAYLOAD = "<script>alert(1)</script>"


async def test_payment_page_shows_its_entries_and_refunds(
    ada: ConsoleClient, world: Harness
) -> None:
    payer, shop = await world.create_subscriber(balance="1000"), await create_processor(world)
    card = await world.create_card(payer["id"])
    paid = await submit_and_get_id(world, chart.POS_PAYMENT, card, shop, "100")
    back = await submit_refund(world, paid, shop, "30")
    shown = await ada.get_page_text(f"{URL}/{paid}")
    assert "POS payment of 100.00" in shown
    for address in (f"subscribers/{payer['id']}", f"processors/{shop}", f"cards/{card}"):
        assert f'href="/console/{address}"' in shown
    assert "· <strong>Wallet</strong>" in shown and "· <strong>Settlement</strong>" in shown
    assert "Refundable: 70.00 " in shown
    assert f'href="{URL}/{back}"' in shown
    shown = await ada.get_page_text(f"{URL}/{back}")
    assert f'<p>Refund of <a href="{URL}/{paid}"' in shown


async def test_declined_refund_is_not_shown_as_refunded(ada: ConsoleClient, world: Harness) -> None:
    shop, owner = await PosDriver.create(world), await world.create_subscriber()
    paid = (await shop.pay("100.00")).json()["transaction_id"]
    merchant = await world.get_processor_id(shop.merchant_auth)
    await submit_and_get_id(world, chart.PROCESSOR_TRANSFER, merchant, owner["id"], "90")
    assert (await shop.refund(paid)).json()["code"] == "INSUFFICIENT_FUNDS"
    (declined,) = (
        await world.client.get(
            "/api/v1/transactions",
            params={"type": "refund", "status": "failed"},
            auth=await world.create_admin(),
        )
    ).json()["data"]
    text = await ada.get_page_text(f"/console/transactions/{declined['id']}")
    assert "<p>Declined refund of " in text and "<p>Refund of " not in text


async def test_transaction_page_shows_the_sum_of_its_entries(
    ada: ConsoleClient, world: Harness
) -> None:
    sender, receiver = (
        await world.create_subscriber(balance="1000"),
        await world.create_subscriber(),
    )
    sent = await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], receiver["id"], "100")
    entries = (
        await world.client.get(
            f"/api/v1/transactions/{sent}/entries", auth=await world.create_admin()
        )
    ).json()["entries"]
    assert len(entries) == 2, "the amount and a fee"
    total = sum(float(entry["amount"]) for entry in entries)
    shown = await ada.get_page_text(f"{URL}/{sent}")
    footer = shown.partition("<tfoot>")[2].partition("</tfoot>")[0]
    assert f">{total:.2f} " in footer


async def test_declined_transaction_shows_the_reason(ada: ConsoleClient, world: Harness) -> None:
    sender, receiver = await world.create_subscriber(balance="5"), await world.create_subscriber()
    outcome = await submit_command(world, chart.TRANSFER_P2P, sender["id"], receiver["id"], "100")
    assert outcome.result is not None
    shown = await ada.get_page_text(f"{URL}/{encode_transaction_id(outcome.result)}")
    assert "Declined: Insufficient funds." in shown and "INSUFFICIENT_FUNDS" in shown
    assert "Available" in shown and "No ledger entries" in shown


async def test_held_transaction_links_to_its_alert_for_compliance(
    visitors: ConsoleClients, world: Harness
) -> None:
    rich, other = await world.create_subscriber(), await world.create_subscriber()
    for person in (rich, other):
        await set_kyc_level(world, person["id"], 3)
    await world.deposit(rich["id"], "2000000")
    held = await submit_and_get_id(world, chart.TRANSFER_P2P, rich["id"], other["id"], "600000")
    compliance, support = await visitors.create_signed_in("C"), await visitors.create_signed_in("S")
    assert 'href="/console/compliance/alerts/alr_' in await compliance.get_page_text(
        f"{URL}/{held}"
    )
    shown = await support.get_page_text(f"{URL}/{held}")
    assert "Under review: funds are on hold" in shown and "/compliance/alerts" not in shown


async def test_transaction_page_shows_the_number_of_replays(
    ada: ConsoleClient, world: Harness
) -> None:
    sender, receiver = await world.create_subscriber(balance="100"), await world.create_subscriber()
    same = build_request_key("once", "this")
    for _ in range(3):
        sent = await submit_and_get_id(
            world, chart.TRANSFER_P2P, sender["id"], receiver["id"], "10", idempotency_key=same
        )
    assert "<dd>None</dd>" in await ada.get_page_text(f"{URL}/{sent}")
    await world.services.ledger.replay_counter.flush(world.services.database)
    shown = await ada.get_page_text(f"{URL}/{sent}")
    assert "2 retries, last " in shown and "Money moved once" in shown


async def test_subscriber_names_are_escaped(ada: ConsoleClient, world: Harness) -> None:
    sender = await world.create_subscriber(balance="100", first_name=XSS_PAYLOAD)
    receiver = await world.create_subscriber()
    sent = await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], receiver["id"], "10")
    for path in (URL, f"{URL}/{sent}"):
        text = (await ada.get(path)).text
        assert "&lt;script&gt;alert(1)" in text and XSS_PAYLOAD not in text


async def test_transactions_are_filtered_and_invalid_filters_are_reported(
    ada: ConsoleClient, world: Harness
) -> None:
    sender, receiver = await world.create_subscriber(balance="100"), await world.create_subscriber()
    sent = await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], receiver["id"], "10")
    assert sent in await ada.get_page_text(f"{URL}?user_id={receiver['id']}&type=transfer_p2p")
    assert sent not in (await ada.get_partial(f"{URL}?type=pos_payment")).text
    assert sent not in (await ada.get_partial(f"{URL}?to=2000-01-01")).text
    shown = await ada.get_page_text(f"{URL}?user_id=nonsense&from=yesterday&type=transfer_p2p")
    assert "Party ID must be the ID of" in shown and "From must be" in shown
    assert sent in shown, "the list is still there"
    assert 'value="nonsense"' in shown, "what was typed is still there"


async def test_restricted_subscriber_is_masked_and_its_lists_need_an_access_code(
    ada: ConsoleClient, world: Harness
) -> None:
    hidden, other = (
        await world.create_restricted_subscriber(balance="100"),
        await world.create_subscriber(),
    )
    card = await world.create_card(hidden["id"])
    sent = await submit_and_get_id(world, chart.TRANSFER_P2P, hidden["id"], other["id"], "10")
    person = f"/console/subscribers/{hidden['id']}"
    for path in (
        f"{URL}?user_id={hidden['id']}",
        f"{URL}?user_id={hidden['id']}&card_serial={card}",
        f"{URL}/export?user_id={hidden['id']}",
    ):
        answer = await ada.get(path)
        assert (answer.status_code, answer.headers["Location"]) == (303, person), path
        assert (await ada.get_partial(path)).headers["HX-Redirect"] == person
    assert "This customer is restricted. Request an access code" in await ada.get_page_text(person)
    assert "Card belongs to a restricted customer" in await ada.get_page_text(
        f"{URL}?card_serial={card}"
    )
    for path in (URL, f"{URL}/{sent}"):
        shown = await ada.get_page_text(path)
        assert sent in shown and hidden["id"] in shown and "Personal data hidden" in shown
        assert "Aminata" not in shown and "90.00" not in shown and "89.85" not in shown
    file = await ada.get(f"{URL}/export")
    assert sent in file.text and "Aminata" not in file.text
    assert file.headers["X-Masked"] == "true"
    assert (await ada.get(f"{URL}/export?card_serial={card}")).status_code == 403
    await ada.submit_action("subscriber.ask_code", id=hidden["id"])
    code = await world.get_pending_code(hidden["phone_number"])
    await ada.submit_action("subscriber.enter_code", {"otp": code}, id=hidden["id"])
    shown = await ada.get_page_text(f"{URL}/{sent}")
    assert "Aminata" in shown and "Personal data hidden" not in shown


async def test_export_matches_the_api_export(ada: ConsoleClient, world: Harness) -> None:
    sender, receiver = await world.create_subscriber(balance="100"), await world.create_subscriber()
    for _ in range(3):
        await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], receiver["id"], "10")
    query = f"user_id={receiver['id']}&type=transfer_p2p"
    file = await ada.get(f"{URL}/export?{query}")
    same = await world.client.get(
        f"/api/v1/transactions/export?{query}", auth=await world.create_admin("F")
    )
    assert file.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in file.headers["Content-Disposition"]
    assert file.content == same.content and len(list(csv.reader(io.StringIO(file.text)))) == 4
    part = await ada.get(f"{URL}/export?{query}&limit=2")
    cursor = part.headers["X-Next-Cursor"]
    rest = await ada.get(f"{URL}/export?{query}&limit=2&cursor={cursor}")
    assert len(list(csv.reader(io.StringIO(rest.text)))) == 2
    assert "X-Next-Cursor" not in rest.headers
    assert (await ada.get(f"{URL}/export?user_id=nonsense")).status_code == 422


@pytest.mark.parametrize("id", ["x", "txn_x", "txn_0000000000001", "%3Cscript%3E"])
async def test_unknown_transaction_is_404(ada: ConsoleClient, id: str) -> None:
    answer = await ada.get(f"{URL}/{id}")
    assert answer.status_code == 404 and "<script>" not in answer.text
