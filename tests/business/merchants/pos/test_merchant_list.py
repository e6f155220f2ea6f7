"""A merchant's list adds up: its rows equal the balance change."""

import csv
import io
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders.payments import PosDriver, decide_review, new_request_id, update_rule
from builders.payouts import create_bank_account
from examples import limit_examples
from harness import PIN, Harness
from tapgate_client import ids

LIST_URL = "/api/v1/transactions"
EXPORT_URL = "/api/v1/transactions/export"
_NO_CHANGE = ("failed", "under_review")


class Step(NamedTuple):
    kind: str
    amount: int  # in cents
    target: int = 0  # which payment to refund, or which transfer or payout to undo


steps = st.builds(
    Step,
    kind=st.sampled_from(
        "pay pay pay hold refund refund_rest accept_dispute"
        " transfer reverse_transfer payout payout cancel_payout".split()
    ),
    amount=st.integers(1, 40_00),
    target=st.integers(0, 5),
)


def get_change(row: dict[str, Any]) -> Decimal:
    """Return what a row changes the merchant's balance by, as docs/guides/refunds.md says."""
    if row["status"] in _NO_CHANGE:
        return Decimal(0)
    amount, fee = Decimal(row["amount"]), Decimal(row["fee_amount"])
    if row["direction"] == "credit":
        paid = fee if row["fee_payer"] == "receiver" else 0
        # A refund debits the merchant. Its customer, who is credited, does not get the fee.
        return amount + Decimal(row["fee_refunded"]) - paid
    assert row["direction"] == "debit"
    paid = fee if row["fee_payer"] == "sender" else 0
    return Decimal(row["fee_refunded"]) - amount - paid


def format_cents(cents: int) -> str:
    return str(Decimal(cents) / 100)


class Merchant:
    def __init__(self, pos: PosDriver, processor_id: str, admin: Any) -> None:
        self.pos = pos
        self.id = processor_id
        self.admin = admin
        self.payments: list[str] = []
        self.transfers: list[str] = []
        self.payouts: list[str] = []

    async def get_balance(self) -> Decimal:
        balance: int = await self.pos.harness.database.fetchval(
            "SELECT balance FROM accounts WHERE owner_id = $1", ids.decode(ids.PROCESSOR, self.id)
        )
        return Decimal(balance) / 100

    async def run(self, step: Step) -> None:
        if step.kind in ("pay", "hold"):
            await self._pay(step)
        elif step.kind == "transfer":
            body = {"subscriber_id": self.pos.customer["id"], "description": "Pay"}
            await self._post(f"processors/{self.id}/transfer", step, self.transfers, **body)
        elif step.kind == "payout":
            await self._post("payouts", step, self.payouts, owner_id=self.id)
        elif step.kind == "reverse_transfer" and self.transfers:
            transfer_id = self.transfers[step.target % len(self.transfers)]
            await self._post(f"transactions/{transfer_id}/reverse", step, reason="Wrong amount")
        elif step.kind == "cancel_payout" and self.payouts:
            payout_id = self.payouts[step.target % len(self.payouts)]
            await self._post(f"payouts/{payout_id}/cancel")
        elif step.kind in ("refund", "refund_rest", "accept_dispute") and self.payments:
            await self._give_back(step, self.payments[step.target % len(self.payments)])

    async def _pay(self, step: Step) -> None:
        # The rule holds payments above 40.00 for review.
        cents = step.amount + 3000 if step.kind == "hold" else step.amount
        response = await self.pos.pay(format_cents(cents), pin=PIN)
        assert response.status_code == 200, response.text
        payment = response.json()
        self.payments.append(payment["transaction_id"])
        if payment["status"] == "under_review" and step.target < 4:
            await decide_review(
                self.pos.harness, payment["transaction_id"], release=step.target % 2 == 0
            )

    async def _give_back(self, step: Step, payment_id: str) -> None:
        if step.kind != "accept_dispute":
            amount = format_cents(step.amount) if step.kind == "refund" else None
            await self.pos.refund(payment_id, amount)
            return
        opened = await self.pos.harness.post(
            "/api/v1/disputes",
            json={"transaction_id": payment_id, "reason": "other", "request_id": new_request_id()},
            auth=self.pos.harness.get_service_auth(),
        )
        if opened.status_code == 201:
            await self.pos.harness.post(
                f"/api/v1/disputes/{opened.json()['id']}/respond",
                json={"text": "Sorry", "accept": True},
                auth=self.pos.merchant_auth,
            )

    async def _post(
        self, path: str, step: Step | None = None, done: list[str] | None = None, **body: Any
    ) -> None:
        """Send a request that the ledger may decline, and keep the ID of what it created.

        A declined request changes no balance.
        """
        before = await self.get_balance()
        if step is not None:
            body["amount"] = format_cents(step.amount)
        response = await self.pos.harness.post(
            f"/api/v1/{path}", json=body | {"request_id": new_request_id()}, auth=self.admin
        )
        if response.status_code != 200:
            exceeds = response.json()["code"] == "REVERSAL_EXCEEDS_REMAINING"
            assert response.status_code in (402, 409) or exceeds, response.text
            assert await self.get_balance() == before
        elif done is not None:
            receipt = response.json()
            done.append(receipt.get("payout_id", receipt["transaction_id"]))

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
    await create_bank_account(harness, processor_id)
    return Merchant(pos, processor_id, await harness.create_admin("F"))


async def charge_payouts(harness: Harness) -> None:
    auth = await harness.create_admin()
    rules = (await harness.get("/api/v1/fee-rules", auth=auth)).json()["data"]
    if all(rule["type"] != "payout" for rule in rules):
        rule = {"type": "payout", "up_to": None, "rate": "1", "fixed": "0.05", "payer": "sender"}
        response = await harness.put("/api/v1/fee-rules", json={"data": [*rules, rule]}, auth=auth)
        assert response.status_code == 200, response.text


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
@example([Step("pay", 1), Step("transfer", 1), Step("reverse_transfer", 2)])
async def test_rows_add_up_to_the_balance_change(harness: Harness, actions: list[Step]) -> None:
    await hold_payments_above(harness, "40.00")
    await charge_payouts(harness)
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
