"""Whether a history explains a balance: worked out here once more, from the records alone."""

from decimal import Decimal

from journeys.caller import Record

_MOVED = frozenset({"completed", "partially_refunded", "refunded"})
_TAKEN_FROM_THE_MERCHANT = frozenset({"pos_payment", "online_payment"})


def worth(history: list[Record]) -> Decimal:
    """What somebody has after all that, having begun with nothing."""
    return sum(map(_change, history), Decimal())


def _change(transaction: Record) -> Decimal:
    """By how much a transaction changed the balance of the user whose history it is in. A payment
    that was given back as a whole cost the merchant no fee."""
    if transaction["status"] not in _MOVED:
        return Decimal()
    amount, fee = Decimal(transaction["amount"]), Decimal(transaction["fee_amount"])
    merchants_fee = transaction["type"] in _TAKEN_FROM_THE_MERCHANT
    if transaction["direction"] == "credit":
        kept = transaction["status"] != "refunded"
        return amount - fee if merchants_fee and kept else amount
    return -amount if merchants_fee else -amount - fee
