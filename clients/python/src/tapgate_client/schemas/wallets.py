"""Wallets: balances, quotes, transfers and statements."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final

import msgspec

from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import (
    Amount,
    CardSerial,
    Choice,
    Currency,
    Date,
    Description,
    FreeText,
    Phone,
    Pin,
    Reference,
    Text,
)
from tapgate_client.schemas.owners import OwnerIdField
from tapgate_client.schemas.transactions import (
    MoneyRequest,
    Receipt,
    TransactionType,
)
from tapgate_client.schemas.values import (
    AccountBalance,
    BalanceAmount,
    BookCode,
    CalendarDate,
    CurrencyCode,
    Example,
    Fee,
    Id,
    Money,
    Name,
    Serial,
    TextType,
    Time,
)

#: Type of the statement entry for a fee; all other entries have the type of their transaction.
STATEMENT_FEE_TYPE: Final = "fee"


class StatementFormat(StrEnum):
    JSON = "json"
    CSV = "csv"
    PDF = "pdf"


#: Types in which a quote's subscriber can take part with a card.
_SUBSCRIBER_CARD_TYPES: Final = frozenset(
    {
        TransactionType.POS_PAYMENT,
        TransactionType.ONLINE_PAYMENT,
        TransactionType.AGENT_CASHIN,
        TransactionType.AGENT_CASHOUT,
        TransactionType.PARTNER_FUND,
    }
)


class Balance(msgspec.Struct, kw_only=True):
    """An account balance: `available` plus `held`, the funds held for transactions under review."""

    user_id: Id
    account_id: Id
    balance: AccountBalance
    available: Annotated[str, Example("1250.00")]
    held: Annotated[str, Example("0.00")]
    currency: CurrencyCode
    as_of: Time


class QuoteRequest(msgspec.Struct, kw_only=True):
    """A transaction to quote. The cards are those that the transaction would use."""

    OMITTED_IN_EXAMPLES: ClassVar = ("card_serial",)

    type: TransactionType
    amount: Amount
    sender_id: Text | None = None
    card_serial: CardSerial | None = None
    recipient_card_serial: CardSerial | None = None
    currency: Currency | None = None

    def __post_init__(self) -> None:
        if self.card_serial is not None and self.type not in _SUBSCRIBER_CARD_TYPES:
            raise invalid_field("card_serial", "must not be given for this type")
        if self.recipient_card_serial is not None and self.type != TransactionType.TRANSFER_P2P:
            raise invalid_field("recipient_card_serial", "must not be given for this type")


class QuoteLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the sender may spend: per transaction, and what is left today and this month."""

    transaction: Annotated[str, Example("2000.00")]
    daily_remaining: Annotated[Money, Example("4500.00")]
    monthly_remaining: Annotated[Money, Example("24500.00")]


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    amount: Money
    fee_amount: Fee
    total: Annotated[Money, Example("505.00")]
    currency: CurrencyCode
    allowed: bool
    reasons: list[str]
    pin_required: bool | None = None
    limits: QuoteLimits | None = None


class P2pTransferRequest(MoneyRequest, kw_only=True):
    """A transfer to a recipient, identified by either a card or a phone number."""

    OMITTED_IN_EXAMPLES: ClassVar = ("recipient_phone_number",)

    sender_id: Text
    recipient_card_serial: CardSerial | None = None
    recipient_phone_number: Phone | None = None
    amount: Amount
    pin: Pin
    memo: Annotated[FreeText, Example("School fees")] | None = None

    def __post_init__(self) -> None:
        if self.recipient_card_serial is None and self.recipient_phone_number is None:
            problem = "is required unless another field identifies the recipient"
            raise ApiError(
                Code.INVALID_REQUEST,
                "Identify the recipient by either a card or a phone number.",
                details={
                    "fields": {
                        "recipient_card_serial": problem,
                        "recipient_phone_number": problem,
                    }
                },
            )
        if self.recipient_card_serial is not None and self.recipient_phone_number is not None:
            # The two fields could identify different subscribers.
            raise invalid_field(
                "recipient_phone_number", "must not be combined with recipient_card_serial"
            )


class Recipient(msgspec.Struct, kw_only=True):
    """Transfer recipient, with the part of the name that a sender may see.

    `card_serial` is absent if the transfer was sent to a phone number, and `book` if the recipient
    lives in the same book as the sender.
    """

    name: Name | None
    card_serial: Serial | msgspec.UnsetType = msgspec.UNSET
    book: BookCode | msgspec.UnsetType = msgspec.UNSET


class P2pReceipt(Receipt, kw_only=True):
    amount: Money
    fee_amount: Fee
    sender_new_balance: BalanceAmount
    recipient: Recipient


class TransferRequest(MoneyRequest, kw_only=True):
    from_account_id: Reference
    to_account_id: Reference
    amount: Amount
    pin: Pin | None = None
    description: Description | None = None


class TransferReceipt(Receipt, kw_only=True):
    """Transfer receipt. A platform account's balance is null."""

    amount: Money
    from_balance: BalanceAmount | None
    to_balance: BalanceAmount | None


class StatementRequest(msgspec.Struct, kw_only=True):
    subscriber_id: Reference
    from_date: Date
    to_date: Date
    format: StatementFormat = StatementFormat.JSON
    pin: Pin | None = None


class StatementHolder(msgspec.Struct, kw_only=True):
    id: Id
    name: Annotated[str, Example("Aminata Kamara")]


class StatementPeriod(msgspec.Struct, kw_only=True):
    from_: Annotated[str, Example("2026-01-01")] = msgspec.field(name="from")
    to: Annotated[str, Example("2026-01-31")]


class EntryRecord(msgspec.Struct, kw_only=True):
    """Statement entry.

    `date` is the movement's day in the platform's time zone. `type` is `fee` for a fee, which has a
    separate entry, and otherwise the transaction's type.
    """

    date: CalendarDate
    transaction_id: Id
    type: Annotated[str, Choice(*TransactionType, STATEMENT_FEE_TYPE, name="StatementEntryType")]
    description: Annotated[str, Example("Float for the weekend")]
    debit: Annotated[str, Example("500.00")]
    credit: Annotated[str, Example("0.00")]
    balance: AccountBalance


class StatementFields(Redacted, msgspec.Struct, kw_only=True, omit_defaults=True):
    """A statement: with `entries` for JSON, with `statement_url` and `expires_at` for a file."""

    statement_id: Id
    currency: CurrencyCode
    period: StatementPeriod
    opening_balance: BalanceAmount
    closing_balance: Annotated[BalanceAmount, Example("1250.00")]
    total_credits: BalanceAmount
    total_debits: Annotated[BalanceAmount, Example("500.00")]
    transaction_count: int
    generated_at: Time
    entries: list[EntryRecord] | None = None
    statement_url: Annotated[str, TextType(json_format="uri-reference")] | None = None
    expires_at: Time | None = None


class StatementRecord(StatementFields, kw_only=True, omit_defaults=True):
    """A subscriber's statement."""

    subscriber: StatementHolder


class OwnerStatementRecord(StatementFields, kw_only=True, omit_defaults=True):
    """A processor's, partner's or agent's statement."""

    owner: StatementHolder


class OwnerStatementRequest(msgspec.Struct, kw_only=True):
    """Statement request. Without `owner_id`, the owner of the caller."""

    owner_id: OwnerIdField | None = None
    from_: Date = msgspec.field(name="from")
    to: Date
    format: StatementFormat = StatementFormat.JSON
