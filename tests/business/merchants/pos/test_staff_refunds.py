"""Refunds that staff issue for a merchant, with an approval if support asks for them."""

import asyncio

import httpx2
import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.payments import PosDriver, new_request_id, submit_and_get_id
from harness import BearerAuth, Harness, parse_error
from tapgate.ledger import chart


async def refund(
    harness: Harness,
    transaction_id: str,
    auth: BearerAuth,
    amount: str | None = None,
    **fields: str,
) -> httpx2.Response:
    body = {"request_id": new_request_id(), "amount": amount, "reason": "not delivered", **fields}
    return await harness.post(f"/api/v1/transactions/{transaction_id}/refund", json=body, auth=auth)


@pytest.mark.parametrize("role", ["A", "F"])
async def test_staff_refund_in_parts_returns_the_amount_and_the_fee(
    harness: Harness, role: str
) -> None:
    pos, admin = await PosDriver.create(harness), await harness.create_admin(role)
    paid = (await pos.pay("100")).json()["transaction_id"]
    half = await refund(harness, paid, admin, "50")
    assert half.status_code == 200, half.text
    receipt = half.json()
    assert receipt["original_transaction_id"] == paid
    assert (receipt["amount"], receipt["refundable_amount"]) == ("50.00 SLE", "50.00 SLE")
    rest = (await refund(harness, paid, admin)).json()
    assert (rest["amount"], rest["fee_refunded"]) == ("50.00 SLE", "1.00 SLE")
    assert await pos.get_balance() == 1000_00
    record = await harness.get(f"/api/v1/transactions/{rest['transaction_id']}", auth=admin)
    assert (record.json()["channel"], record.json()["memo"]) == ("admin", "not delivered")
    entries = await harness.list_audit_entries(paid, "transaction.refunded")
    assert [entry["actor"]["id"] for entry in entries] == [admin.id, admin.id]


async def test_refund_by_support_waits_for_an_approval(harness: Harness) -> None:
    pos, support = await PosDriver.create(harness), await harness.create_admin("S")
    paid = (await pos.pay("100")).json()["transaction_id"]
    approval = require_held(await refund(harness, paid, support, "40"))
    assert approval["operation"] == "refunds"
    assert approval["summary"] == "Refund 40.00 SLE of a payment of 100.00 SLE to Shop"
    assert await pos.get_balance() == 900_00
    executed = await approve(harness, approval)
    assert executed["status"] == "executed"
    assert await pos.get_balance() == 940_00
    (entry,) = await harness.list_audit_entries(paid, "transaction.refunded")
    assert entry["reason"] == "not delivered"


async def test_stricter_rule_applies_to_support_too(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    await set_rules(harness, build_rule("refunds", approvers=2))
    paid = (await pos.pay("100")).json()["transaction_id"]
    held = require_held(await refund(harness, paid, await harness.create_admin("S"), "40"))
    assert (await approve(harness, held))["status"] == "pending"
    assert (await approve(harness, held))["status"] == "executed"


async def test_refund_requires_a_reason_an_idempotency_key_and_a_payment(harness: Harness) -> None:
    pos, admin = await PosDriver.create(harness), await harness.create_admin()
    paid = (await pos.pay("100")).json()["transaction_id"]
    url = f"/api/v1/transactions/{paid}/refund"
    for body in ({"reason": "x"}, {"request_id": "r"}):
        assert parse_error(await harness.post(url, json=body, auth=admin)) == (
            400,
            "INVALID_REQUEST",
        )
    assert parse_error(await refund(harness, paid, admin, "100.01")) == (
        422,
        "REFUND_EXCEEDS_REMAINING",
    )
    other = await harness.create_subscriber()
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, pos.customer, other, "10")
    for not_payment in (sent, (await refund(harness, paid, admin)).json()["transaction_id"]):
        assert parse_error(await refund(harness, not_payment, admin)) == (409, "NOT_REFUNDABLE")
    assert parse_error(await refund(harness, paid, admin)) == (409, "ALREADY_REFUNDED")
    assert parse_error(await refund(harness, "txn_unknown", admin)) == (
        404,
        "TRANSACTION_NOT_FOUND",
    )


async def test_replayed_refund_moves_money_once(harness: Harness) -> None:
    pos, admin = await PosDriver.create(harness), await harness.create_admin()
    paid = (await pos.pay("100")).json()["transaction_id"]
    replies = await asyncio.gather(
        *(refund(harness, paid, admin, request_id="once") for _ in range(5))
    )
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["transaction_id"] for reply in replies}) == 1
    assert await pos.get_balance() == 1000_00


async def test_parallel_refunds_by_staff_and_the_merchant_never_exceed_the_payment(
    harness: Harness,
) -> None:
    pos, admin = await PosDriver.create(harness), await harness.create_admin("F")
    paid = (await pos.pay("100")).json()["transaction_id"]
    replies = await asyncio.gather(
        *(refund(harness, paid, admin, "60") for _ in range(3)),
        *(pos.refund(paid, "60") for _ in range(3)),
    )
    assert sorted(reply.status_code for reply in replies) == [200] + [422] * 5
    assert await pos.get_balance() == 960_00


async def test_restricted_customer_requires_a_code(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    paid = (await pos.pay("100")).json()["transaction_id"]
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    admin = await harness.create_admin()
    assert parse_error(await refund(harness, paid, admin)) == (403, "OTP_REQUIRED")
