"""Random payouts: balances agree with a model, and what is in transit with the open payouts."""

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.ledger import require_balanced_books
from builders.payouts import (
    change_payout,
    create_bank_account,
    create_merchant,
    get_balance,
    get_platform_balance,
    post_payout,
    post_run,
)
from examples import limit_examples
from harness import Harness
from tapgate.ledger import chart
from tapgate.ledger.decisions.payouts import find_largest_amount
from tapgate.ledger.rules.fees import FeeTier, calculate_fee
from tapgate.ledger.rules.loaded_rules import Rules
from tapgate_client.schemas.transactions import FeePayer

#: Statuses from which each operation is possible, and the status after it.
MOVES = {
    "cancel": ({"requested"}, "cancelled"),
    "paid": ({"submitted"}, "paid"),
    "returned": ({"submitted", "paid"}, "returned"),
}
steps = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.integers(1, 60_000)),
        st.tuples(st.just("run"), st.just(0)),
        st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 5)),
    ),
    max_size=14,
)


class Model:
    """Balances in minor units, and the payouts' amounts and statuses."""

    def __init__(self) -> None:
        self.balance = 1_000_00
        self.cash = -1_000_00
        self.payouts: dict[str, list[Any]] = {}

    @property
    def in_transit(self) -> int:
        return sum(
            amount
            for amount, status in self.payouts.values()
            if status in ("requested", "submitted")
        )


@settings(max_examples=limit_examples(8))
@given(steps)
async def test_random_payouts_agree_with_the_model(
    harness: Harness, plan: list[tuple[str, int]]
) -> None:
    merchant = await create_merchant(harness)
    if not await harness.database.fetchval(
        "SELECT EXISTS (SELECT FROM bank_accounts WHERE owner_type = 'platform')"
    ):
        await create_bank_account(harness, None)
    transit, cash = await read_platform(harness)
    model = Model()
    for name, value in plan:
        await take_step(harness, merchant, model, name, value)
    assert Decimal(await get_balance(harness, merchant)) * 100 == model.balance
    new_transit, new_cash = await read_platform(harness)
    assert new_transit - transit == model.in_transit
    assert new_cash - cash == model.cash + 1_000_00
    await require_balanced_books(harness.database)


async def read_platform(harness: Harness) -> tuple[int, int]:
    transit, cash = [
        int(Decimal(await get_platform_balance(harness, kind)) * 100)
        for kind in ("payouts_in_transit", "cash")
    ]
    return transit, cash


async def take_step(harness: Harness, merchant: str, model: Model, name: str, value: int) -> None:
    """Make the same step in the gateway and in the model, which must agree on the outcome."""
    if name == "request":
        response = await post_payout(harness, merchant, amount=f"{value / 100:.2f}")
        assert (response.status_code == 200) == (value <= model.balance), response.text
        if response.status_code == 200:
            model.balance -= value
            model.payouts[response.json()["payout_id"]] = [value, "requested"]
        return
    if name == "run":
        response = await post_run(harness)
        for payout in model.payouts.values():
            payout[1] = "submitted" if payout[1] == "requested" else payout[1]
        return
    if value >= len(model.payouts):
        return
    payout_id = list(model.payouts)[value]
    amount, status = model.payouts[payout_id]
    allowed, after = MOVES[name]
    fields = {"reason": "closed"} if name == "returned" else {}
    response = await change_payout(harness, payout_id, name, **fields)
    assert (response.status_code == 200) == (status in allowed), response.text
    if status not in allowed:
        return
    model.payouts[payout_id][1] = after
    if name == "paid":
        model.cash += amount
    else:
        model.balance += amount
        model.cash -= amount if status == "paid" else 0


tiers = st.builds(
    lambda bounds, rates, fixed, minimum: [
        FeeTier(
            type=chart.PAYOUT,
            up_to=bound,
            rate=rate,
            payer=FeePayer.SENDER,
            fixed=fixed,
            minimum=minimum,
        )
        for bound, rate in zip([*sorted(bounds), None], rates, strict=False)
    ],
    st.sets(st.integers(1, 300), max_size=2),
    st.lists(st.integers(0, 100_000), min_size=0, max_size=3),
    st.integers(0, 20),
    st.integers(0, 20),
)


@given(tiers, st.integers(0, 400), st.none() | st.integers(0, 400))
def test_largest_amount_is_covered_together_with_its_fee(
    fee_tiers: list[FeeTier], available: int, maximum: int | None
) -> None:
    rules = Rules(
        currency="SLE",
        limits={},
        fees={chart.PAYOUT: tuple(fee_tiers)},
        commissions={},
        compliance_rules=(),
        platform_accounts={},
    )
    expected = max(
        (
            amount
            for amount in range(1, min(available, available if maximum is None else maximum) + 1)
            if amount + calculate_fee(fee_tiers, amount)[0] <= available
        ),
        default=0,
    )
    assert find_largest_amount(rules, available, maximum) == expected
