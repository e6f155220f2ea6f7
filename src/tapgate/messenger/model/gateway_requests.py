"""What the conversation engine asks of the gateway, and what it is answered."""

from datetime import datetime
from typing import Literal

import msgspec

from tapgate.images import EncodedImage
from tapgate.messenger.model.common import DocumentType, SecretStruct, TaggedStruct


class FindSubscriber(TaggedStruct, frozen=True, kw_only=True):
    """-> Subscriber | None, by the person's own phone number."""

    phone: str


class RegisterSubscriber(SecretStruct, frozen=True, kw_only=True):
    """-> Subscriber"""

    phone: str
    first_name: str
    last_name: str
    pin: str


class GetBalance(TaggedStruct, frozen=True, kw_only=True):
    """-> Balance"""

    subscriber_id: str


class GetLimits(TaggedStruct, frozen=True, kw_only=True):
    """-> Limits"""

    kyc_level: int


class FindPayeeByCard(TaggedStruct, frozen=True, kw_only=True):
    """-> Payee | None: who is paid through a card."""

    card_serial: str


class FindPayeeByPhone(TaggedStruct, frozen=True, kw_only=True):
    """-> Payee | None: who is paid under a phone number. Without an active card: `card_serial` is
    None."""

    phone: str


class QuoteTransfer(TaggedStruct, frozen=True, kw_only=True):
    """-> Quoted"""

    sender_id: str
    amount: str


class SendMoney(SecretStruct, frozen=True, kw_only=True):
    """-> Receipt. The request id is the operation's, so that it happens once."""

    request_id: str
    sender_id: str
    card_serial: str
    amount: str
    pin: str


class ListTransactions(TaggedStruct, frozen=True, kw_only=True):
    """-> list[Movement], newest first."""

    subscriber_id: str
    limit: int


class CreateStatement(TaggedStruct, frozen=True, kw_only=True):
    """-> Statement: a PDF. Dates are YYYY-MM-DD."""

    subscriber_id: str
    from_date: str
    to_date: str


class ListCards(TaggedStruct, frozen=True, kw_only=True):
    """-> list[Card]"""

    subscriber_id: str


class LinkCard(SecretStruct, frozen=True, kw_only=True):
    """-> Card"""

    subscriber_id: str
    card_serial: str
    pin: str


class BlockCard(TaggedStruct, frozen=True, kw_only=True):
    """-> Card. Only a card of this subscriber; another's: Refused CARD_NOT_FOUND."""

    subscriber_id: str
    card_serial: str
    reason: str  # lost, stolen, damaged, customer_request


class UnblockCard(SecretStruct, frozen=True, kw_only=True):
    """-> Card. Only a card of this subscriber, with their PIN."""

    subscriber_id: str
    card_serial: str
    pin: str


class VerifyPin(SecretStruct, frozen=True, kw_only=True):
    """-> True"""

    subscriber_id: str
    pin: str


class ChangePin(SecretStruct, frozen=True, kw_only=True):
    """-> True"""

    subscriber_id: str
    old_pin: str
    new_pin: str


class AddDocument(msgspec.Struct, frozen=True, kw_only=True):
    """-> str: the KYC status afterwards."""

    subscriber_id: str
    document_type: DocumentType
    image: EncodedImage


class RequestSupport(TaggedStruct, frozen=True, kw_only=True):
    """-> True: support staff see the request among the gateway's alerts."""

    phone: str | None
    #: Identifies a person who does not show a phone number.
    address: str
    subscriber_id: str | None


class SendOneTimeCode(TaggedStruct, frozen=True, kw_only=True):
    """-> True: a one-time code on its way to a phone, for a person who does not show theirs. Not
    the gateway's business, but answered in the same way."""

    phone: str


class VerifyOneTimeCode(SecretStruct, frozen=True, kw_only=True):
    """-> bool, whether it was right; Refused INVALID_OTP when no further try is allowed."""

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
    """`reasons` are error codes with which it would be refused now."""

    amount: str
    fee_amount: str
    total: str
    currency: str
    allowed: bool
    reasons: tuple[str, ...]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts are formatted, `1,234.50 SLE`."""

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
    counterparty_name: str | None  # the other side's name, masked
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
