"""A merchant's list adds up: its rows equal the balance change."""

import csv
import io
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.payments import PosDriver, decide_review, update_rule
from examples import limit_examples
from harness import PIN, Harness
from tapgate_client import ids

LIST_URL = "/api/v1/transactions"
EXPORT_URL = "/api/v1/transactions/export"
_NO_CHANGE = ("failed", "under_review")


class Step(NamedTuple):
    kind: str
    amount: int  # in cents
    target: int = 0  # which payment to refund


steps = st.builds(
    Step,
    kind=st.sampled_from(["pay", "pay", "pay", "hold", "refund", "refund_rest", "payout"]),
    amount=st.integers(1, 40_00),
    target=st.integers(0, 5),
)


def get_change(row: dict[str, Any]) -> Decimal:
    """Return what a row changes the merchant's balance by, as docs/guides/refunds.md says."""
    if row["status"] in _NO_CHANGE:
        return Decimal(0)
    amount, fee = Decimal(row["amount"]), Decimal(row["fee_amount"])
    if row["direction"] == "credit":
        return amount - (fee if row["fee_payer"] == "receiver" else 0)
    assert row["direction"] == "debit"
    paid = fee if row["fee_payer"] == "sender" else 0
    return Decimal(row["fee_refunded"]) - amount - paid


class Merchant:
    def __init__(self, pos: PosDriver, processor_id: str, admin: Any) -> None:
        self.pos = pos
        self.id = processor_id
        self.admin = admin
        self.payments: list[str] = []

    async def get_balance(self) -> Decimal:
        balance: int = await self.pos.harness.database.fetchval(
            "SELECT balance FROM accounts WHERE owner_id = $1", ids.decode(ids.PROCESSOR, self.id)
        )
        return Decimal(balance) / 100

    async def run(self, step: Step) -> None:
        amount, pos = str(Decimal(step.amount) / 100), self.pos
        if step.kind == "payout":
            await pos.harness.post(
                f"/api/v1/processors/{self.id}/transfer",
                json={"subscriber_id": pos.customer["id"], "amount": amount, "description": "Pay"},
                auth=self.admin,
            )
        elif step.kind in ("pay", "hold"):
            # The rule holds payments above 40.00 for review.
            amount = str(Decimal(step.amount + 3000) / 100) if step.kind == "hold" else amount
            response = await pos.pay(amount, pin=PIN)
            assert response.status_code == 200, response.text
            payment = response.json()
            self.payments.append(payment["transaction_id"])
            if payment["status"] == "under_review" and step.target < 4:
                await decide_review(
                    pos.harness, payment["transaction_id"], release=step.target % 2 == 0
                )
        elif self.payments:
            payment_id = self.payments[step.target % len(self.payments)]
            await pos.refund(payment_id, amount if step.kind == "refund" else None)

    async def list_rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        query: dict[str, Any] = {"user_id": self.id, "limit": 7}
        while True:
            page = (await self.pos.harness.get(LIST_URL, params=query, auth=self.admin)).json()
            rows += page["data"]
            if page["next_cursor"] is None:
                return rows
            query["cursor"] = page["next_cursor"]

    async def export_rows(self) -> list[dict[str, Any]]:
        response = await self.pos.harness.get(
            EXPORT_URL, params={"user_id": self.id}, auth=self.admin
        )
        rows = list(csv.DictReader(io.StringIO(response.text.lstrip("\ufeff"))))
        return [
            row | {"direction": "credit" if row["to_id"] == self.id else "debit"} for row in rows
        ]


async def create_merchant(harness: Harness) -> Merchant:
    pos = await PosDriver.create(harness, balance="100000")
    processor_id = await harness.get_processor_id(pos.merchant_auth)
    return Merchant(pos, processor_id, await harness.create_admin("F"))


async def hold_payments_above(harness: Harness, threshold: str) -> None:
    """Hold large payments, and remove the limits that random payments would reach."""
    await harness.disable_compliance_rules()
    await harness.database.execute(
        """UPDATE account_rules SET max_balance = 1000000000, daily_limit = 1000000000,
                                    monthly_limit = 1000000000, max_transaction = 1000000000"""
    )
    await update_rule(harness, "Large amount", threshold=threshold, status="active")


@settings(max_examples=limit_examples(25))
@given(st.lists(steps, min_size=1, max_size=12))
async def test_rows_add_up_to_the_balance_change(harness: Harness, actions: list[Step]) -> None:
    await hold_payments_above(harness, "40.00")
    merchant = await create_merchant(harness)
    for step in actions:
        await merchant.run(step)
    balance = await merchant.get_balance()
    assert sum(map(get_change, await merchant.list_rows())) == balance
    assert sum(map(get_change, await merchant.export_rows())) == balance
    summary = (
        await harness.get(f"/api/v1/processors/{merchant.id}/summary", auth=merchant.admin)
    ).json()
    assert Decimal(summary["totals"]["net"]) == balance
    refunded = sum(Decimal(row["fee_refunded"]) for row in await merchant.list_rows())
    assert Decimal(summary["totals"]["fee_refunded"]) == refunded


async def test_refund_of_an_earlier_release_has_its_fee_from_the_entries(harness: Harness) -> None:
    """Results that were stored before the field existed end without it."""
    merchant = await create_merchant(harness)
    paid = (await merchant.pos.pay("100.00")).json()["transaction_id"]
    refund = await merchant.pos.refund(paid, request_id="refund")
    assert refund.json()["fee_refunded"] == "1.00 SLE"
    async with harness.database.transaction() as tx:
        answer = await tx.fetchval("SELECT answer FROM transactions WHERE type = 'refund'")
        earlier = msgspec.msgpack.encode(msgspec.msgpack.decode(answer)[:-1])
        await tx.execute("SET LOCAL session_replication_role = replica")  # rows are append-only
        await tx.execute("UPDATE transactions SET answer = $1 WHERE type = 'refund'", earlier)
    replay = await merchant.pos.refund(paid, request_id="refund")
    assert (replay.status_code, replay.json()["fee_refunded"]) == (200, None)
    rows = await merchant.list_rows()
    assert {row["type"]: row["fee_refunded"] for row in rows} == {
        "refund": "1.00",
        "pos_payment": "0.00",
    }
    assert sum(map(get_change, rows)) == await merchant.get_balance() == 0
