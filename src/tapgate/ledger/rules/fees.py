"""Fee calculation: the first tier that covers an amount sets the rate for the whole amount."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tapgate_client import money
from tapgate_client.schemas.transactions import FeePayer, TransactionType

#: A plain string, because every command compares it and enum members are slow.
SENDER: Final = FeePayer.SENDER.value


class FeeTier(msgspec.Struct, frozen=True, kw_only=True):
    type: TransactionType
    up_to: int | None  # minor units; None: no upper bound
    rate: int  # thousandths of a percent
    payer: FeePayer


def calculate_fee(tiers: Iterable[FeeTier], amount: int) -> tuple[int, str]:
    """Return the fee for an amount, and the fee payer: `sender` or `receiver`.

    `tiers` are in ascending order. The fee is 0 if no tier covers the amount.
    """
    for tier in tiers:
        if tier.up_to is None or amount <= tier.up_to:
            return money.apply_rate(amount, tier.rate), tier.payer
    return 0, SENDER
