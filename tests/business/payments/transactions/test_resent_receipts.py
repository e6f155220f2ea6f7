"""Receipts that staff send again."""

from typing import Any

import httpx2

from builders.payments import PosDriver, submit_and_get_id, submit_command
from harness import BearerAuth, Harness, parse_error
from tapgate.ledger import chart


async def resend(
    harness: Harness, transaction_id: str, auth: BearerAuth, **body: Any
) -> httpx2.Response:
    url = f"/api/v1/transactions/{transaction_id}/send-receipt"
    return await harness.post(url, json=body, auth=auth)


async def test_receipt_is_sent_again_to_one_or_both_customers(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber(language="fr")
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10")
    await harness.database.execute("DELETE FROM notices")
    harness.advance_clock(days=30)
    support = await harness.create_admin("S")
    both = await resend(harness, sent, support)
    assert both.status_code == 200, both.text
    assert both.json()["recipients"] == ["sender", "receiver"]
    one = await resend(harness, sent, support, party="receiver")
    assert one.json()["recipients"] == ["receiver"]
    paid = await harness.list_pending_messages(sender["phone_number"], "payment_made")
    received = await harness.list_pending_messages(receiver["phone_number"], "money_received")
    assert [row[0] for row in paid] == ["10.00 SLE"]
    assert [row[0] for row in received] == ["10,00\u00a0SLE"] * 2
    assert paid[0][2] == sent
    entries = await harness.list_audit_entries(sent, "transaction.receipt_resent")
    assert [entry["changes"]["recipients"][1] for entry in entries] == [
        ["sender", "receiver"],
        ["receiver"],
    ]


async def test_companies_and_declined_transactions_get_no_receipt(harness: Harness) -> None:
    pos, support = await PosDriver.create(harness), await harness.create_admin("S")
    paid = (await pos.pay("100")).json()["transaction_id"]
    assert (await resend(harness, paid, support)).json()["recipients"] == ["sender"]
    error = await resend(harness, paid, support, party="receiver")
    assert parse_error(error) == (422, "VALIDATION_FAILED")
    assert "party" in error.json()["details"]["fields"]
    other = await harness.create_subscriber()
    await submit_command(harness, chart.TRANSFER_P2P, other, pos.customer, "100")
    failed = (await harness.get("/api/v1/transactions?status=failed", auth=support)).json()["data"]
    assert parse_error(await resend(harness, failed[0]["id"], support)) == (
        422,
        "VALIDATION_FAILED",
    )


async def test_restricted_customer_requires_a_code(harness: Harness) -> None:
    sender = await harness.create_restricted_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10")
    support = await harness.create_admin("S")
    assert parse_error(await resend(harness, sent, support)) == (403, "OTP_REQUIRED")
