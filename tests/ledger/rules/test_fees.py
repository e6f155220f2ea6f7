"""Fees compared with a model in exact fractions."""

from decimal import ROUND_HALF_UP, Decimal

from hypothesis import given
from hypothesis import strategies as st

from tapgate.ledger.rules.fees import FeeTier, calculate_fee
from tapgate_client.schemas.transactions import FeePayer, TransactionType

_amounts = st.integers(0, 10**14)


@st.composite
def draw_tiers(draw: st.DrawFn) -> list[FeeTier]:
    """Draw the tiers of one type: ascending bounds, and the last without one."""
    bounds = sorted(draw(st.sets(st.integers(1, 10**9), max_size=3)))
    payer = draw(st.sampled_from(FeePayer))
    tiers = []
    for bound in (*bounds, None):
        minimum = draw(st.just(0) | st.integers(0, 10**6))
        tiers.append(
            FeeTier(
                type=TransactionType.TRANSFER,
                up_to=bound,
                rate=draw(st.integers(0, 100_000)),
                payer=payer,
                fixed=draw(st.just(0) | st.integers(0, 10**6)),
                minimum=minimum,
                maximum=draw(st.none() | st.integers(minimum, 10**7)),
            )
        )
    return tiers


def calculate_with_fractions(tiers: list[FeeTier], amount: int) -> int:
    (tier, *_) = [each for each in tiers if each.up_to is None or each.up_to >= amount]
    share = Decimal(amount) * Decimal(tier.rate) / Decimal(100_000)
    fee = tier.fixed + int(share.quantize(Decimal(1), ROUND_HALF_UP))
    bounds = [tier.minimum, fee]
    fee = max(bounds)
    if tier.maximum is not None:
        fee = min(fee, tier.maximum)
    return min(fee, amount) if tier.payer == FeePayer.RECEIVER else fee


@given(draw_tiers(), _amounts)
def test_fee_equals_the_model(tiers: list[FeeTier], amount: int) -> None:
    fee, payer = calculate_fee(tiers, amount)
    assert (fee, payer) == (calculate_with_fractions(tiers, amount), tiers[0].payer)
    assert fee >= 0
    assert payer == FeePayer.SENDER or fee <= amount


def test_no_tier_means_no_fee() -> None:
    assert calculate_fee([], 100) == (0, "sender")
