"""Requests from the conversation engine to the gateway, and their results."""

from datetime import datetime
from typing import Literal

import msgspec

from tapgate.images import EncodedImage
from tapgate.messenger.model.common import SecretStruct, TaggedStruct
from tapgate.schemas.subscribers import KycDocumentType


class FindSubscriber(TaggedStruct, frozen=True, kw_only=True):
    """Find a subscriber by the person's own phone number. Result: `Subscriber | None`."""

    phone: str


class RegisterSubscriber(SecretStruct, frozen=True, kw_only=True):
    """Register a subscriber. Result: `Subscriber`."""

    phone: str
    first_name: str
    last_name: str
    pin: str


class GetBalance(TaggedStruct, frozen=True, kw_only=True):
    """Get the balance of a wallet. Result: `Balance`."""

    subscriber_id: str


class GetLimits(TaggedStruct, frozen=True, kw_only=True):
    """Get the limits of a KYC level. Result: `Limits`."""

    kyc_level: int


class FindPayeeByCard(TaggedStruct, frozen=True, kw_only=True):
    """Find the payee of a card. Result: `Payee | None`.

    The payee's `card_serial` is None if the card is not active.
    """

    card_serial: str


class FindPayeeByPhone(TaggedStruct, frozen=True, kw_only=True):
    """Find the payee with a phone number. Result: `Payee | None`.

    The payee's `card_serial` is None if the payee has no active card.
    """

    phone: str


class QuoteTransfer(TaggedStruct, frozen=True, kw_only=True):
    """Quote a transfer. Result: `TransferQuote`."""

    sender_id: str
    amount: str


class SendMoney(SecretStruct, frozen=True, kw_only=True):
    """Send money. Result: `Receipt`.

    `request_id` is the operation ID and serves as the idempotency key.
    """

    request_id: str
    sender_id: str
    card_serial: str
    amount: str
    pin: str


class ListTransactions(TaggedStruct, frozen=True, kw_only=True):
    """List a subscriber's transactions, newest first. Result: `list[TransactionSummary]`."""

    subscriber_id: str
    limit: int


class CreateStatement(TaggedStruct, frozen=True, kw_only=True):
    """Create a PDF statement. Dates are YYYY-MM-DD. Result: `Statement`."""

    subscriber_id: str
    from_date: str
    to_date: str


class ListCards(TaggedStruct, frozen=True, kw_only=True):
    """List a subscriber's cards. Result: `list[Card]`."""

    subscriber_id: str


class LinkCard(SecretStruct, frozen=True, kw_only=True):
    """Link a card to a subscriber. Result: `Card`."""

    subscriber_id: str
    card_serial: str
    pin: str


class BlockCard(TaggedStruct, frozen=True, kw_only=True):
    """Block a card. Result: `Card`.

    A card of another subscriber is rejected with CARD_NOT_FOUND.
    """

    subscriber_id: str
    card_serial: str
    reason: str  # lost, stolen, damaged, customer_request


class UnblockCard(SecretStruct, frozen=True, kw_only=True):
    """Unblock a card after verifying the subscriber's PIN. Result: `Card`.

    A card of another subscriber is rejected with CARD_NOT_FOUND.
    """

    subscriber_id: str
    card_serial: str
    pin: str


class VerifyPin(SecretStruct, frozen=True, kw_only=True):
    """Verify a subscriber's PIN. Result: True."""

    subscriber_id: str
    pin: str


class ChangePin(SecretStruct, frozen=True, kw_only=True):
    """Change a subscriber's PIN. Result: True."""

    subscriber_id: str
    old_pin: str
    new_pin: str


class AddDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Add a KYC document. Result: the new KYC status as `str`."""

    subscriber_id: str
    document_type: KycDocumentType
    image: EncodedImage


class RequestSupport(TaggedStruct, frozen=True, kw_only=True):
    """Ask support staff, by an alert in the gateway, to contact the person. Result: True."""

    phone: str | None
    #: Identifies a person whose phone number is hidden.
    address: str
    subscriber_id: str | None


class SendOneTimeCode(TaggedStruct, frozen=True, kw_only=True):
    """Send a one-time code to the phone number that a person has entered. Result: True.

    The messenger handles this request itself. The result is True even if no code is sent because of
    a limit.
    """

    phone: str


class VerifyOneTimeCode(SecretStruct, frozen=True, kw_only=True):
    """Verify a one-time code. Result: `bool`.

    The messenger handles this request itself. The request is rejected with INVALID_OTP if no valid
    code or no further attempt is left.
    """

    phone: str
    code: str


GatewayRequest = (
    FindSubscriber
    | RegisterSubscriber
    | GetBalance
    | GetLimits
    | FindPayeeByCard
    | FindPayeeByPhone
    | QuoteTransfer
    | SendMoney
    | ListTransactions
    | CreateStatement
    | ListCards
    | LinkCard
    | BlockCard
    | UnblockCard
    | VerifyPin
    | ChangePin
    | AddDocument
    | RequestSupport
    | SendOneTimeCode
    | VerifyOneTimeCode
)


class Subscriber(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    first_name: str
    status: str
    kyc_level: int
    kyc_status: str


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    balance: str
    available: str
    held: str
    currency: str


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    kyc_level: int
    currency: str
    max_balance: str
    max_transaction: str
    daily_limit: str
    monthly_limit: str


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # masked: `Aminata K.`
    card_serial: str | None
    subscriber_id: str


class TransferQuote(msgspec.Struct, frozen=True, kw_only=True):
    """Quote for a transfer. `reasons` are the error codes with which the transfer would fail."""

    amount: str
    fee_amount: str
    total: str
    currency: str
    allowed: bool
    reasons: tuple[str, ...]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Receipt of a transfer. Amounts are formatted, as in `1,234.50 SLE`."""

    transaction_id: str
    status: Literal["completed", "under_review"]
    amount: str
    fee_amount: str
    new_balance: str
    recipient_name: str


class TransactionSummary(msgspec.Struct, frozen=True, kw_only=True):
    transaction_id: str
    type: str
    status: str
    direction: Literal["credit", "debit"]
    amount: str
    fee_amount: str
    currency: str
    counterparty_name: str | None  # masked for a subscriber
    at: datetime


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    link: str
    from_date: str
    to_date: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
    serial: str
    type: str | None
    status: str
    holder_name: str | None
