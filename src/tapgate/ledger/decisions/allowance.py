"""A subscriber's allowance: KYC level limits and their current usage."""

from datetime import date
from typing import Any

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.decisions.state import Account
from tapgate.ledger.engine.load import find_account
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


async def get_allowance(tx: Any, subscriber_id: int, rules: Rules, today: date) -> Allowance | None:
    """Return a subscriber's allowance, or None if the subscriber does not exist.

    Reads without a lock, so the result may be out of date when it is used.
    """
    wallet = await find_account(tx, subscriber_id, chart.WALLET)
    return None if wallet is None else build_allowance(wallet, rules, today)


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
