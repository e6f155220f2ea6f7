"""Refunds: partial, capped at the payment, and only by the processor that was paid."""

import pytest

from builders.payments import PosDriver
from harness import PIN, Harness, parse_error
from tapgate_client import ids


async def test_partial_refunds_add_up_to_the_payment(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("100")).json()["transaction_id"]
    first = await pos.refund(paid, "30")
    assert first.status_code == 200, first.text
    receipt = first.json()
    assert receipt.pop("transaction_id").startswith("txn_")
    assert receipt == {
        "success": True,
        "message": "Refund completed",
        "status": "completed",
        "original_transaction_id": paid,
        "amount": "30.00 SLE",
        "refundable_amount": "70.00 SLE",
        "fee_refunded": "0.00 SLE",
    }
    assert parse_error(await pos.refund(paid, "70.01")) == (422, "REFUND_EXCEEDS_REMAINING")
    rest = (await pos.refund(paid)).json()
    assert (rest["amount"], rest["fee_refunded"]) == ("70.00 SLE", "1.00 SLE")
    assert parse_error(await pos.refund(paid)) == (409, "ALREADY_REFUNDED")
    assert await pos.get_balance() == 1000_00


async def test_any_key_of_the_processor_can_refund(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("100")).json()["transaction_id"]
    other_key = await harness.create_second_key(pos.merchant_auth)
    pos.merchant_auth = other_key
    assert (await pos.refund(paid, url="/payment/refund")).status_code == 200


async def test_declined_payment_of_an_unlinked_card_is_not_refundable_after_linking(
    harness: Harness,
) -> None:
    pos = await PosDriver.create(harness)
    not_linked = dict.fromkeys(("type", "account_id", "pin_holder_id", "linked_at"))
    serial = await harness.create_card(pos.customer["id"], status="UNASSIGNED", **not_linked)
    declined = await pos.pay("10", card_serial=serial, request_id="too early")
    assert parse_error(declined) == (403, "CARD_NOT_ACTIVE")
    failed = ids.encode(
        ids.TRANSACTION,
        await harness.database.fetchval(
            "SELECT id FROM transactions WHERE request_id = 'too early'"
        ),
    )
    assert parse_error(await pos.refund(failed)) == (409, "NOT_REFUNDABLE")
    linked = await harness.post(
        "/api/v1/cards/link",
        json={"subscriber_id": pos.customer["id"], "card_serial": serial, "pin": PIN},
        auth=await harness.create_admin(),
    )
    assert linked.status_code == 200, linked.text
    assert parse_error(await pos.refund(failed)) == (409, "NOT_REFUNDABLE")
    assert harness.services.ledger.batch_stats.retries == 0


@pytest.mark.parametrize(
    ("action", "expected_error"), [("block", None), ("close", (409, "NOT_REFUNDABLE"))]
)
async def test_refund_is_allowed_to_a_blocked_payer_but_not_to_a_closed_one(
    harness: Harness, action: str, expected_error: tuple[int, str] | None
) -> None:
    pos = await PosDriver.create(harness, balance="100")
    paid = (await pos.pay("100")).json()["transaction_id"]
    status_change = await harness.post(
        f"/api/v1/subscribers/{pos.customer['id']}/{action}",
        json={"reason": "asked for"},
        auth=await harness.create_admin(),
    )
    assert status_change.status_code == 200, status_change.text
    response = await pos.refund(paid)
    assert (None if response.status_code == 200 else parse_error(response)) == expected_error


async def test_refund_requires_a_reason_and_a_request_id(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("100")).json()["transaction_id"]
    assert parse_error(await pos.refund(paid, reason=None)) == (400, "INVALID_REQUEST")
    assert parse_error(await pos.refund(paid, request_id=None)) == (400, "INVALID_REQUEST")


async def test_refunds_are_recorded_in_the_audit_log_of_the_payment(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("100")).json()["transaction_id"]
    for request_id in ("one", "one", "two"):  # the second request is a replay
        await pos.refund(paid, "50", request_id=request_id)
    entries = await harness.list_audit_entries(paid, "transaction.refunded")
    assert [entry["changes"] for entry in entries] == [
        {"status": ["completed", "partially_refunded"], "refunded_amount": ["0.00", "50.00"]},
        {"status": ["partially_refunded", "refunded"], "refunded_amount": ["50.00", "100.00"]},
    ]
    assert {entry["reason"] for entry in entries} == {"returned goods"}
    assert {entry["actor"]["id"] for entry in entries} == {pos.merchant_auth.id}
