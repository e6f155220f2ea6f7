"""Refunds: partial, capped at the payment, and only by the processor that was paid."""

import asyncio

import pytest

from harness import PIN, Harness
from pos.builders import PosDriver, parse_error
from tapgate import ids


async def test_partial_refunds_add_up_to_the_payment(world: Harness) -> None:
    shop = await PosDriver.create(world)
    paid = (await shop.pay("100")).json()["transaction_id"]
    first = await shop.refund(paid, "30")
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
    }
    assert parse_error(await shop.refund(paid, "70.01")) == (422, "REFUND_EXCEEDS_REMAINING")
    assert (await shop.refund(paid)).json()["amount"] == "70.00 SLE"
    assert parse_error(await shop.refund(paid)) == (409, "ALREADY_REFUNDED")
    assert await shop.get_balance() == 1000_00


async def test_processor_cannot_refund_another_processors_payment(world: Harness) -> None:
    shop, other = await PosDriver.create(world), await PosDriver.create(world)
    paid = (await shop.pay("100")).json()["transaction_id"]
    assert parse_error(await other.refund(paid)) == (404, "TRANSACTION_NOT_FOUND")
    assert parse_error(await shop.refund("txn_none")) == (404, "TRANSACTION_NOT_FOUND")


async def test_any_key_of_the_processor_can_refund(world: Harness) -> None:
    shop = await PosDriver.create(world)
    paid = (await shop.pay("100")).json()["transaction_id"]
    other_key = await world.create_second_key(shop.merchant_auth)
    shop.merchant_auth = other_key
    assert (await shop.refund(paid, url="/payment/refund")).status_code == 200


async def test_declined_payments_and_refunds_cannot_be_refunded(world: Harness) -> None:
    shop = await PosDriver.create(world, balance="50")
    declined = await shop.pay("100", request_id="too much")
    assert parse_error(declined) == (402, "INSUFFICIENT_FUNDS")
    row = await world.services.database.fetchrow(
        "SELECT id FROM transactions WHERE request_id = 'too much'"
    )
    assert row is not None
    failed = ids.encode(ids.TRANSACTION, row["id"])
    assert parse_error(await shop.refund(failed)) == (409, "NOT_REFUNDABLE")
    paid = (await shop.pay("20")).json()["transaction_id"]
    refunded = (await shop.refund(paid)).json()["transaction_id"]
    assert parse_error(await shop.refund(refunded)) == (409, "NOT_REFUNDABLE")


async def test_declined_payment_of_an_unlinked_card_is_not_refundable_after_linking(
    world: Harness,
) -> None:
    shop = await PosDriver.create(world)
    not_linked = dict.fromkeys(("type", "account_id", "pin_holder_id", "linked_at"))
    serial = await world.create_card(shop.customer["id"], status="UNASSIGNED", **not_linked)
    declined = await shop.pay("10", card_serial=serial, request_id="too early")
    assert parse_error(declined) == (403, "CARD_NOT_ACTIVE")
    failed = ids.encode(
        ids.TRANSACTION,
        await world.services.database.fetchval(
            "SELECT id FROM transactions WHERE request_id = 'too early'"
        ),
    )
    assert parse_error(await shop.refund(failed)) == (409, "NOT_REFUNDABLE")
    linked = await world.client.post(
        "/api/v1/cards/link",
        json={"subscriber_id": shop.customer["id"], "card_serial": serial, "pin": PIN},
        auth=await world.create_admin(),
    )
    assert linked.status_code == 200, linked.text
    assert parse_error(await shop.refund(failed)) == (409, "NOT_REFUNDABLE")
    assert world.services.ledger.batch_stats.retries == 0


@pytest.mark.parametrize(
    ("action", "answered"), [("block", None), ("close", (409, "NOT_REFUNDABLE"))]
)
async def test_refund_is_allowed_to_a_blocked_payer_but_not_to_a_closed_one(
    world: Harness, action: str, answered: tuple[int, str] | None
) -> None:
    shop = await PosDriver.create(world, balance="100")
    paid = (await shop.pay("100")).json()["transaction_id"]
    moved = await world.client.post(
        f"/api/v1/subscribers/{shop.customer['id']}/{action}",
        json={"reason": "asked for"},
        auth=await world.create_admin(),
    )
    assert moved.status_code == 200, moved.text
    answer = await shop.refund(paid)
    assert (None if answer.status_code == 200 else parse_error(answer)) == answered


async def test_refund_requires_a_reason_and_a_request_id(world: Harness) -> None:
    shop = await PosDriver.create(world)
    paid = (await shop.pay("100")).json()["transaction_id"]
    assert parse_error(await shop.refund(paid, reason=None)) == (400, "INVALID_REQUEST")
    assert parse_error(await shop.refund(paid, request_id=None)) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("part", ["10", "7"])
async def test_concurrent_refunds_cannot_exceed_the_payment(world: Harness, part: str) -> None:
    shop = await PosDriver.create(world, balance="100")
    paid = (await shop.pay("100")).json()["transaction_id"]
    await shop.pay("0.01")  # declined: the wallet is empty
    answers = await asyncio.gather(*(shop.refund(paid, part) for _ in range(20)))
    given_back = sum(answer.status_code == 200 for answer in answers)
    assert given_back == 100 // int(part)
    assert {parse_error(answer)[0] for answer in answers if answer.status_code != 200} <= {409, 422}
    assert await shop.get_balance() == given_back * int(part) * 100


async def test_refunds_are_recorded_in_the_audit_log_of_the_payment(world: Harness) -> None:
    shop = await PosDriver.create(world)
    paid = (await shop.pay("100")).json()["transaction_id"]
    for name in ("one", "one", "two"):  # the second request is a replay
        await shop.refund(paid, "50", request_id=name)
    entries = await world.list_audit_entries(paid, "transaction.refunded")
    assert [entry["changes"] for entry in entries] == [
        {"status": ["completed", "partially_refunded"], "refunded_amount": ["0.00", "50.00"]},
        {"status": ["partially_refunded", "refunded"], "refunded_amount": ["50.00", "100.00"]},
    ]
    assert {entry["reason"] for entry in entries} == {"returned goods"}
    assert {entry["actor"]["id"] for entry in entries} == {shop.merchant_auth.id}
