"""Payment, refund and card check records of merchants."""

from typing import Any

from tapgate.client.records.base import Confirmation, Receipt


class PaymentReceipt(Receipt, frozen=True, kw_only=True):
    approval_code: str | None
    amount: str
    remaining_balance: str
    fee_amount: str
    metadata: dict[str, Any] | None


class RefundReceipt(Receipt, frozen=True, kw_only=True):
    original_transaction_id: str
    amount: str
    refundable_amount: str


class VerifyCardResponse(Confirmation, frozen=True, kw_only=True):
    """Card verification result. `balance` is set only for a usable card with a verified PIN."""

    is_active: bool
    holder_name: str | None
    balance: str | None = None


class LookupCardResponse(Confirmation, frozen=True, kw_only=True):
    card_serial: str
    card_type: str | None
    status: str
    holder_name: str | None
