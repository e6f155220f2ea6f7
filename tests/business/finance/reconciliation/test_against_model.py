"""Random payouts, statements, postings and ignored lines: the books agree with a model."""

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.bank_statements import change_line, post_statement
from builders.ledger import require_balanced_books
from builders.payouts import (
    create_bank_account,
    create_merchant,
    get_payout,
    get_platform_balance,
    post_payout,
    post_run,
)
from examples import limit_examples
from harness import Harness

DAY = "2026-01-15"
steps = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.integers(1, 20_000)),
        st.tuples(st.just("run"), st.just(0)),
        st.tuples(st.sampled_from(["bank pays", "bank returns"]), st.integers(0, 4)),
        st.tuples(st.just("bank fee"), st.integers(1, 500)),
        st.tuples(st.sampled_from(["post", "unmatch", "ignore"]), st.integers(0, 4)),
    ),
    max_size=14,
)


class Model:
    """The bank's bookings and the platform's, in minor units."""

    def __init__(self) -> None:
        self.bank = 0
        self.suspense = 0
        self.payouts: dict[str, dict[str, Any]] = {}
        self.lines: dict[str, list[Any]] = {}  # fees: amount and status

    @property
    def in_transit(self) -> int:
        return self.sum_payouts("requested", "submitted")

    def sum_payouts(self, *statuses: str) -> int:
        return sum(each["amount"] for each in self.payouts.values() if each["status"] in statuses)

    @property
    def cash(self) -> int:
        """What the ledger must have: the bank without lines that are not booked."""
        open_lines = sum(amount for amount, status in self.lines.values() if status != "posted")
        return self.bank - open_lines


@settings(max_examples=limit_examples(8))
@given(steps)
async def test_in_transit_suspense_and_cash_agree_with_the_bank(
    harness: Harness, plan: list[tuple[str, int]]
) -> None:
    merchant = await create_merchant(harness)
    if not await harness.database.fetchval(
        "SELECT EXISTS (SELECT FROM bank_accounts WHERE owner_type = 'platform')"
    ):
        await create_bank_account(harness, None)
    before = await read_platform(harness)
    model = Model()
    for number, (name, value) in enumerate(plan):
        await take_step(harness, merchant, model, name, value, number)
    transit, suspense, cash = [
        now - then for now, then in zip(await read_platform(harness), before, strict=True)
    ]
    assert transit == model.in_transit
    assert suspense == model.suspense
    assert -cash == model.cash  # an asset: more cash is a lower balance
    for payout_id, payout in model.payouts.items():
        assert (await get_payout(harness, payout_id))["status"] == payout["status"]
    await require_balanced_books(harness.database)


async def read_platform(harness: Harness) -> list[int]:
    return [
        int(Decimal(await get_platform_balance(harness, kind)) * 100)
        for kind in ("payouts_in_transit", "suspense", "cash")
    ]


async def take_step(
    harness: Harness, merchant: str, model: Model, name: str, value: int, number: int
) -> None:
    if name == "request":
        response = await post_payout(harness, merchant, amount=f"{value / 100:.2f}")
        if response.status_code == 200:
            receipt = response.json()
            model.payouts[receipt["payout_id"]] = {
                "amount": value, "status": "requested", "reference": receipt["reference"],
            }  # fmt: skip
    elif name == "run":
        await post_run(harness)
        for payout in model.payouts.values():
            payout["status"] = "submitted" if payout["status"] == "requested" else payout["status"]
    elif name == "bank fee":
        line = await book(harness, -value, f"FEE-{number}")
        model.bank -= value
        model.lines[line] = [-value, "unmatched"]
    elif name in ("bank pays", "bank returns"):
        await move_at_bank(harness, model, name, value, number)
    elif value < len(model.lines):
        await change_fee(harness, model, name, list(model.lines)[value])


async def book(harness: Harness, amount: int, reference: str) -> str:
    """Import a statement with one line; return the line's ID."""
    sign, magnitude = ("-", -amount) if amount < 0 else ("", amount)
    row = f"{DAY},{sign}{magnitude / 100:.2f},{reference},"
    content = f"date,amount,reference,description\n{row}\n"
    response = await post_statement(harness, content)
    assert response.status_code == 201, response.text
    line = await harness.database.fetchval("SELECT max(id) FROM bank_statement_lines")
    listed = await harness.get(
        "/api/v1/bank-statements/lines",
        params={"statement_id": response.json()["id"]},
        auth=await harness.create_admin("F"),
    )
    assert line is not None
    line_id: str = listed.json()["data"][0]["id"]
    return line_id


async def move_at_bank(harness: Harness, model: Model, name: str, value: int, number: int) -> None:
    """Book a payout at the bank, as the platform expects it."""
    before, after, sign = (
        ("submitted", "paid", -1) if name == "bank pays" else ("paid", "returned", 1)
    )
    fitting = [each for each in model.payouts.values() if each["status"] == before]
    if value >= len(fitting):
        return
    payout = fitting[value]
    await book(harness, sign * payout["amount"], f"{number} {payout['reference']}")
    model.bank += sign * payout["amount"]
    payout["status"] = after


async def change_fee(harness: Harness, model: Model, verb: str, line_id: str) -> None:
    amount, status = model.lines[line_id]
    fields = {} if verb == "unmatch" else {"reason": "model"}
    response = await change_line(harness, line_id, verb, **fields)
    allowed = status != "unmatched" if verb == "unmatch" else status == "unmatched"
    assert (response.status_code == 200) == allowed, response.text
    if not allowed:
        return
    if verb == "post":
        model.suspense += amount
    elif verb == "unmatch" and status == "posted":
        model.suspense -= amount
    model.lines[line_id][1] = {"post": "posted", "unmatch": "unmatched", "ignore": "ignored"}[verb]
