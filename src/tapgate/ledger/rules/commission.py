"""Commission on cash-in and cash-out, earned only once on money that goes back and forth.

A cash-in is matched with the same customer's cash-outs at the same agent family, a super-agent and
all its sub-agents, within the last 24 hours, oldest first, and earns commission only on the
unmatched rest. A family passes floats on, so otherwise the same money could earn at each of its
agents. A cash-out is matched in the same way
with the matched part of recent cash-ins: money that was withdrawn, deposited again and is now
withdrawn again. Later movements can match each amount at most once.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from tapgate_client.schemas.transactions import TransactionType

_RATE_SCALE: Final = 100_000  # 100%, because rates are in thousandths of a percent
_MATCH_WINDOW: Final = timedelta(hours=24)
#: Max. matching window for a transaction released from a long review.
MAX_LOOKBACK: Final = timedelta(days=7)


class CommissionRate(msgspec.Struct, frozen=True, kw_only=True):
    type: TransactionType
    tier: int
    rate: int  # thousandths of a percent
    minimum_amount: int  # minor units


class CashMovement(msgspec.Struct, gc=False):
    """A recent cash-in or cash-out, and the part of it that can still be matched."""

    transaction_id: int
    type: str
    moved_at: datetime
    unmatched: int


class CashMatch(NamedTuple):
    movement: CashMovement
    amount: int


def get_window_start(requested_at: datetime, now: datetime) -> datetime:
    """Return the start of the matching window: 24 hours before the request, but at most 7 days ago.

    The window is relative to the request, so that a review does not expire matches.
    """
    return max(requested_at - _MATCH_WINDOW, now - MAX_LOOKBACK)


def match_movements(
    movements: Iterable[CashMovement], transaction_type: str, amount: int, since: datetime
) -> tuple[CashMatch, ...]:
    """Match an amount with movements in the opposite direction, oldest first."""
    matches = []
    for movement in movements:
        if movement.type == transaction_type or movement.moved_at < since:
            continue
        matched = min(amount, movement.unmatched)
        if matched:
            matches.append(CashMatch(movement, matched))
            amount -= matched
    return tuple(matches)


def calculate_commission(
    rate: CommissionRate | None, amount: int, matched: int, remainder: int
) -> tuple[int, int]:
    """Return the commission on the unmatched part of an amount, and the new remainder.

    Without a rate, or below its minimum amount, nothing is earned. The commission is rounded half
    up. The remainder is the rounding error in 1/100,000 of a minor unit, carried over to the
    agent's next commission, so that splitting an amount gains nothing from rounding.
    """
    if rate is not None and amount >= rate.minimum_amount:
        remainder += (amount - matched) * rate.rate
    commission = (remainder + _RATE_SCALE // 2) // _RATE_SCALE
    return commission, remainder - commission * _RATE_SCALE
