"""Payouts: their parties and amounts, as pure functions.

A payout moves money from the owner's account to `payouts_in_transit`. From there, it goes to cash
when the bank has paid it, or back to the owner. A payout that the bank returns after it was paid
comes from cash.
"""

from bisect import bisect_right
from typing import Any

from tapgate.ledger import chart
from tapgate.ledger.commands import NewPayout
from tapgate.ledger.decisions.state import Account, State, StoredPayout
from tapgate.ledger.rules.loaded_rules import Rules
from tapgate_client.schemas.payouts import PayoutStatus


def get_parties(
    state: State, transaction_type: str, payout: StoredPayout | None
) -> tuple[Account | None, Account | None]:
    """Return the payer and the payee of a payout's next movement."""
    platform = state.rules.platform_accounts
    in_transit = state.accounts[platform[chart.PAYOUTS_IN_TRANSIT]]
    cash = state.accounts[platform[chart.CASH]]
    if payout is None:
        return in_transit, None
    if transaction_type == chart.BANK_POSTING:
        return in_transit, cash
    payer = cash if payout.status == PayoutStatus.PAID else in_transit
    return payer, state.accounts.get(payout.account_id)


def get_returned_fee(context: Any) -> int:
    """Return the fee that goes back to the owner."""
    is_returned = context.command.type == chart.PAYOUT_RETURN and context.payout is not None
    return context.payout.fee_amount if is_returned else 0


def get_payable_amount(rules: Rules, payout: NewPayout, payer: Account | None) -> int:
    """Return the largest amount that the balance covers together with its fee.

    The reserve is rounded up. The amount is 0 if the balance covers nothing.
    """
    if payer is None or payer.available <= 0:
        return 0
    reserve = -(-payer.available * payout.reserve_percent // 100)
    return find_largest_amount(rules, payer.available - reserve, payout.maximum)


def find_largest_amount(rules: Rules, available: int, maximum: int | None = None) -> int:
    """Return the largest amount whose sum with its fee is at most `available`, or 0.

    The amount itself is at most `maximum`. Within a tier, the sum grows with the amount. At the
    start of a tier it may fall, so a smaller amount may have a larger fee than is available.
    """
    best, lowest = 0, 1
    limit = available if maximum is None else min(available, maximum)
    for tier in rules.fees.get(chart.PAYOUT, ()):
        highest = limit if tier.up_to is None else min(tier.up_to, limit)
        amounts = range(lowest, highest + 1)
        best = max(
            best,
            lowest - 1 + bisect_right(amounts, available, key=lambda a: a + tier.calculate(a))
            if amounts and lowest + tier.calculate(lowest) <= available
            else 0,
        )
        if tier.up_to is None:
            return best
        lowest = tier.up_to + 1
    # No tier covers the amounts from here on, so they have no fee.
    return max(best, limit) if limit >= lowest else best
