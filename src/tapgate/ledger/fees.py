"""Fee calculation: the first tier that covers an amount sets the rate for the whole amount."""

from collections.abc import Iterable

import msgspec

from tapgate import money


class FeeStep(msgspec.Struct, frozen=True, kw_only=True):
    up_to: int | None
    rate: int  # thousandths of a percent
    payer: str


def calculate_fee(steps: Iterable[FeeStep], amount: int) -> tuple[int, str]:
    """Return the fee for an amount, and who pays it: `sender` or `receiver`.

    `steps` are the fee tiers in ascending order. The fee is 0 if no tier covers the amount.
    """
    for step in steps:
        if step.up_to is None or amount <= step.up_to:
            return money.apply_rate(amount, step.rate), step.payer
    return 0, "sender"
