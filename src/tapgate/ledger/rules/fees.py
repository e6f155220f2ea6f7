"""Fee calculation: the first tier that covers an amount sets the fee for the whole amount."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tapgate_client import money
from tapgate_client.schemas.transactions import FeePayer, TransactionType

#: A plain string, because every command compares it and enum members are slow.
SENDER: Final = FeePayer.SENDER.value


class FeeTier(msgspec.Struct, frozen=True, kw_only=True):
    """Fee for amounts up to a bound, with amounts in minor units."""

    type: TransactionType
    up_to: int | None  # None: no upper bound
    rate: int  # thousandths of a percent
    payer: FeePayer
    fixed: int = 0
    minimum: int = 0
    maximum: int | None = None

    def calculate(self, amount: int) -> int:
        """Return the fee. A receiver pays it out of the amount, so it is at most the amount."""
        fee = max(self.minimum, self.fixed + money.apply_rate(amount, self.rate))
        if self.maximum is not None and fee > self.maximum:
            fee = self.maximum
        return fee if self.payer == SENDER or fee <= amount else amount


def calculate_fee(tiers: Iterable[FeeTier], amount: int) -> tuple[int, str]:
    """Return the fee for an amount, and the fee payer: `sender` or `receiver`.

    `tiers` are in ascending order. The fee is 0 if no tier covers the amount.
    """
    for tier in tiers:
        if tier.up_to is None or amount <= tier.up_to:
            return tier.calculate(amount), tier.payer
    return 0, SENDER
