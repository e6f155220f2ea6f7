"""Independent recalculation of a balance from the transaction history."""

from decimal import Decimal

from drivers.api_caller import Record

_POSTED_STATUSES = frozenset({"completed", "partially_refunded", "refunded"})
_MERCHANT_FEE_TYPES = frozenset({"pos_payment", "online_payment"})


def sum_history(history: list[Record]) -> Decimal:
    """Return the balance that results from the history, starting at zero."""
    return sum(map(_get_balance_change, history), Decimal())


def _get_balance_change(transaction: Record) -> Decimal:
    """Return by how much a transaction changed the balance of the history's owner.

    A fully refunded payment costs the merchant no fee.
    """
    if transaction["status"] not in _POSTED_STATUSES:
        return Decimal()
    amount, fee = Decimal(transaction["amount"]), Decimal(transaction["fee_amount"])
    merchants_fee = transaction["type"] in _MERCHANT_FEE_TYPES
    if transaction["direction"] == "credit":
        stored = transaction["status"] != "refunded"
        return amount - fee if merchants_fee and stored else amount
    return -amount if merchants_fee else -amount - fee
