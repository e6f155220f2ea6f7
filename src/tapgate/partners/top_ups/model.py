"""Requests and receipts for top-ups by partners."""

from typing import ClassVar

import msgspec

from tapgate.errors import invalid_field
from tapgate.schemas.common import build_missing_field_error
from tapgate.schemas.fields import Amount, CardSerial, Currency, Phone, Text
from tapgate.schemas.transactions import CustomerMoneyRequest, Receipt
from tapgate.transactions.submit import ReceiptFields


class WebhookTopUp(msgspec.Struct, kw_only=True):
    """Top-up sent by webhook. Either the card or the phone number identifies the subscriber."""

    OMITTED_IN_EXAMPLES: ClassVar = ("card_serial",)

    reference: Text
    amount: Amount
    card_serial: CardSerial | None = None
    phone_number: Phone | None = None
    currency: Currency | None = None

    def __post_init__(self) -> None:
        if self.card_serial is None and self.phone_number is None:
            raise build_missing_field_error("card_serial")
        if self.card_serial is not None and self.phone_number is not None:
            # The two fields could identify different subscribers.
            raise invalid_field("card_serial", "must not be combined with phone_number")


class FundFromPartner(CustomerMoneyRequest, kw_only=True):
    partner_reference: Text
    amount: Amount
    partner_id: Text | None = None


class TopUpReceipt(Receipt, kw_only=True):
    """Receipt for a top-up.

    `new_balance` is null if the subscriber is restricted and hidden from the caller. Restricted
    subscribers are always hidden from partners.
    """

    amount: str
    new_balance: str | None


def build_receipt(receipt_fields: ReceiptFields) -> TopUpReceipt:
    return TopUpReceipt(
        message=receipt_fields.build_message("Wallet funded"),
        transaction_id=receipt_fields.transaction_id,
        status=receipt_fields.status,
        amount=receipt_fields.amount,
        new_balance=receipt_fields.visible_payee_balance,
    )
