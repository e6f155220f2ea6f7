"""A subscriber's allowance: KYC level limits and their current usage."""

from datetime import date

import msgspec

from tapgate.ledger.decisions.state import Account
from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate.ledger.rules.loaded_rules import Rules


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    limits: AccountRule
    day_used: int
    month_used: int
    day: date  # the day that usage counts toward: today, or a later day that already has usage

    @property
    def day_remaining(self) -> int:
        return max(self.limits.daily_limit - self.day_used, 0)

    @property
    def month_remaining(self) -> int:
        return max(self.limits.monthly_limit - self.month_used, 0)


def build_allowance(wallet: Account, rules: Rules, today: date) -> Allowance | None:
    """Return a wallet's allowance, or None for an account without a KYC level."""
    if wallet.kyc_level is None:
        return None
    day_used, month_used = wallet.get_usage(today)
    return Allowance(
        limits=rules.limits[wallet.kyc_level],
        day_used=day_used,
        month_used=month_used,
        day=max(today, wallet.usage_day or today),
    )
