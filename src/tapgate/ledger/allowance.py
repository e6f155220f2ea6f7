"""What a subscriber may still send: the limits of the level, and what the ledger counts as used."""

from datetime import date
from typing import Any

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.load import find_account
from tapgate.ledger.rules import AccountRule, Rules


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    limits: AccountRule
    day_used: int
    month_used: int
    day: date  # that is counted; never before one that was counted already


async def get_allowance(tx: Any, subscriber_id: int, rules: Rules, today: date) -> Allowance | None:
    """None of somebody who does not exist. By the time it is asked for it may be different."""
    wallet = await find_account(tx, subscriber_id, chart.WALLET)
    if wallet is None or wallet.kyc_level is None:
        return None
    day_used, month_used = wallet.get_usage(today)
    return Allowance(
        limits=rules.limits[wallet.kyc_level],
        day_used=day_used,
        month_used=month_used,
        day=max(today, wallet.usage_day or today),
    )
