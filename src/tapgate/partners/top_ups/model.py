"""What is asked for when a partner funds a subscriber, and what is answered."""

import msgspec

from tapgate.edge.bodies import missing
from tapgate.edge.fields import Amount, CardSerial, Phone, Text
from tapgate.errors import invalid_field
from tapgate.transactions.orders import Order, Receipt, Shown


class WebhookTopUp(msgspec.Struct, kw_only=True):
    """Names the subscriber by a card or by the phone number."""

    reference: Text
    amount: Amount
    card_serial: CardSerial | None = None
    phone_number: Phone | None = None
    currency: Text | None = None

    def __post_init__(self) -> None:
        if self.card_serial is None and self.phone_number is None:
            raise missing("card_serial")


class FundFromPartner(Order, kw_only=True):
    """Names the subscriber by its identifier or by a card."""

    partner_reference: Text
    amount: Amount
    subscriber_id: Text | None = None
    card_serial: CardSerial | None = None
    partner_id: Text | None = None

    def __post_init__(self) -> None:
        if self.subscriber_id is None and self.card_serial is None:
            raise missing("subscriber_id")


class TopUpReceipt(Receipt, kw_only=True):
    amount: str
    new_balance: str


def receipt(shown: Shown) -> TopUpReceipt:
    return TopUpReceipt(
        message=shown.message("Wallet funded"),
        transaction_id=shown.transaction_id,
        status=shown.status,
        amount=shown.amount,
        new_balance=shown.payee_balance,
    )


def require_one_name(body: WebhookTopUp | FundFromPartner) -> None:
    """Two names could mean two subscribers."""
    other = "phone_number" if isinstance(body, WebhookTopUp) else "subscriber_id"
    if body.card_serial is not None and getattr(body, other) is not None:
        raise invalid_field("card_serial", f"must not be given together with {other}")
