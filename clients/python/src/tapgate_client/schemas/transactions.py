"""Transactions: money requests, receipts, and the records that clients receive."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

import msgspec

from tapgate_client import ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.common import SuccessResponse, build_missing_field_error
from tapgate_client.schemas.fields import (
    Amount,
    CardSerial,
    Choice,
    Currency,
    FreeText,
    IdempotencyKey,
    IntegerRange,
    InvalidValueError,
    LogForm,
    Reference,
    Rule,
    TextRule,
)
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.periods import PeriodBound
from tapgate_client.schemas.values import (
    ApprovalCode,
    BookCode,
    CurrencyCode,
    Example,
    Fee,
    Id,
    Money,
    Name,
    RequestId,
    Serial,
    Time,
    Word,
)

#: Maximum number of transactions in one exported file.
MAX_EXPORT_ROWS: Final = 50_000


class TransactionType(StrEnum):
    TRANSFER_P2P = "transfer_p2p"
    TRANSFER = "transfer"
    AGENT_CASHIN = "agent_cashin"
    AGENT_CASHOUT = "agent_cashout"
    AGENT_FUND = "agent_fund"
    AGENT_TRANSFER = "agent_transfer"
    COMMISSION_PAYOUT = "commission_payout"
    POS_PAYMENT = "pos_payment"
    ONLINE_PAYMENT = "online_payment"
    PARTNER_FUND = "partner_fund"
    PARTNER_DEPOSIT = "partner_deposit"
    PROCESSOR_TRANSFER = "processor_transfer"
    REFUND = "refund"
    REVERSAL = "reversal"
    PAYOUT = "payout"
    PAYOUT_RETURN = "payout_return"
    BATCH_CREDIT = "batch_credit"
    BANK_POSTING = "bank_posting"


class MoneyFlow(StrEnum):
    """Group of transaction types, from the point of view of customers' money."""

    PAYMENTS = "payments"  # between customers, and from customers to merchants
    MONEY_IN = "money_in"  # into customers' wallets, from agents and partners
    MONEY_OUT = "money_out"  # out of customers' wallets, at agents
    REFUNDS = "refunds"  # and reversals
    INTERNAL = "internal"  # between agent, merchant, partner and platform accounts


FLOW_TYPES: Final[Mapping[MoneyFlow, tuple[TransactionType, ...]]] = {
    MoneyFlow.PAYMENTS: (
        TransactionType.POS_PAYMENT,
        TransactionType.ONLINE_PAYMENT,
        TransactionType.TRANSFER_P2P,
    ),
    MoneyFlow.MONEY_IN: (
        TransactionType.AGENT_CASHIN,
        TransactionType.PARTNER_FUND,
        TransactionType.BATCH_CREDIT,
    ),
    MoneyFlow.MONEY_OUT: (TransactionType.AGENT_CASHOUT,),
    MoneyFlow.REFUNDS: (TransactionType.REFUND, TransactionType.REVERSAL),
    MoneyFlow.INTERNAL: (
        TransactionType.TRANSFER,
        TransactionType.AGENT_FUND,
        TransactionType.AGENT_TRANSFER,
        TransactionType.COMMISSION_PAYOUT,
        TransactionType.PARTNER_DEPOSIT,
        TransactionType.PROCESSOR_TRANSFER,
        TransactionType.PAYOUT,
        TransactionType.PAYOUT_RETURN,
        TransactionType.BANK_POSTING,
    ),
}


class TransactionStatus(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    UNDER_REVIEW = "under_review"
    PARTIALLY_REFUNDED = "partially_refunded"
    REFUNDED = "refunded"
    PARTIALLY_REVERSED = "partially_reversed"
    REVERSED = "reversed"


class Channel(StrEnum):
    API = "api"
    POS = "pos"
    IN_APP = "in_app"
    AGENT = "agent"
    PARTNER = "partner"
    MESSAGING = "messaging"
    ADMIN = "admin"


class Direction(StrEnum):
    CREDIT = "credit"
    DEBIT = "debit"


class FeePayer(StrEnum):
    SENDER = "sender"
    RECEIVER = "receiver"


class PartyType(StrEnum):
    SUBSCRIBER = "subscriber"
    AGENT = "agent"
    PROCESSOR = "processor"
    PARTNER = "partner"
    PLATFORM = "platform"


#: A declined or rejected request gets an error instead of a receipt.
ReceiptStatus = Annotated[
    TransactionStatus,
    Choice(TransactionStatus.COMPLETED, TransactionStatus.UNDER_REVIEW, name="ReceiptStatus"),
]


class MoneyRequest(msgspec.Struct, kw_only=True):
    """Fields common to all request bodies that move money."""

    request_id: IdempotencyKey | None = None
    currency: Currency | None = None


#: Reference of a deposit on the bank statement.
DepositReference = Annotated[str, TextRule(140, example="DEP-2026-017")]


class CustomerMoneyRequest(MoneyRequest, kw_only=True):
    """Money request for a subscriber, identified by `subscriber_id` or by `card_serial`."""

    OMITTED_IN_EXAMPLES: ClassVar = ("card_serial",)

    subscriber_id: Reference | None = None
    card_serial: CardSerial | None = None

    def __post_init__(self) -> None:
        if self.subscriber_id is None and self.card_serial is None:
            raise build_missing_field_error("subscriber_id")
        if self.subscriber_id is not None and self.card_serial is not None:
            # The two fields could identify different subscribers.
            raise invalid_field("card_serial", "must not be combined with subscriber_id")


class Receipt(SuccessResponse, kw_only=True, dict=True):
    """Fields common to the responses of all operations that move money.

    The client sets `request_id` (the idempotency key) and `replayed` (whether the response is a
    replay), which are not part of the body.
    """

    request_id: ClassVar[str] = ""
    replayed: ClassVar[bool] = False

    transaction_id: Id
    status: ReceiptStatus


class TransactionParty(StrEnum):
    SENDER = "sender"
    RECEIVER = "receiver"


class ReceiptResend(msgspec.Struct, kw_only=True):
    """Who gets the receipt again. Without a party, both parties that get receipts."""

    party: TransactionParty | None = None


class ReceiptsResent(SuccessResponse, kw_only=True):
    recipients: list[TransactionParty]


class UserIdRule(Rule):
    log_form = LogForm.WORD
    example = ids.encode(ids.SUBSCRIBER, 1 << 58)
    _prefixes = (ids.SUBSCRIBER, ids.AGENT, ids.PROCESSOR, ids.PARTNER)

    def check(self, value: str) -> str:
        if all(ids.decode(prefix, value) is None for prefix in self._prefixes):
            raise InvalidValueError("must be the ID of a subscriber, agent, processor or partner")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": "^(sub|agt|prc|ptn)_[0-9a-z]{13}$"}


class TransactionOrder(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    AMOUNT = "amount"


class TransactionFilters(PageQuery, kw_only=True):
    order: TransactionOrder = TransactionOrder.NEWEST
    user_id: Annotated[str, UserIdRule()] | None = None
    card_serial: CardSerial | None = None
    type: TransactionType | None = None
    flow: MoneyFlow | None = None
    status: TransactionStatus | None = None
    failure_code: Reference | None = None
    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None

    @property
    def expensive_order(self) -> str | None:
        """The order if it reads all transactions that can be sorted, otherwise None."""
        return self.order if self.order == TransactionOrder.AMOUNT else None


class ExportFilters(TransactionFilters, kw_only=True):
    order: Annotated[
        TransactionOrder, Choice(TransactionOrder.NEWEST, TransactionOrder.OLDEST, name="PageOrder")
    ] = TransactionOrder.NEWEST
    limit: Annotated[int, IntegerRange(1, MAX_EXPORT_ROWS)] = MAX_EXPORT_ROWS


class TransactionTotalsFilters(msgspec.Struct, kw_only=True):
    """Filters for a list whose totals are requested."""

    user_id: Annotated[str, UserIdRule()] | None = None
    card_serial: CardSerial | None = None
    type: TransactionType | None = None
    flow: MoneyFlow | None = None
    status: TransactionStatus | None = None
    failure_code: Reference | None = None
    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None


class TransactionListTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Transaction list totals.

    `amount` and `fees` cover completed transactions only, including refunded ones. If `is_complete`
    is false, the totals cover only the list's newest transactions.
    """

    count: int
    amount: Money
    fees: Annotated[str, Example("5.00")]
    currency: CurrencyCode
    is_complete: bool


class PartyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Transaction payer or payee. A masked transaction has only `type` and `id`."""

    type: PartyType
    id: Id
    name: Annotated[str, Example("Aminata Kamara")] | msgspec.UnsetType | None = msgspec.UNSET
    card_serial: Serial | msgspec.UnsetType | None = msgspec.UNSET


class TransactionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction.

    `fee_payer` is null if there is no fee. A sender pays the fee in addition to `amount`, a
    receiver out of `amount`. `fee_refunded` is the fee that a refund, a reversal or a returned
    payout gave back to its payer: a payment's last refund and a returned payout the whole fee, a
    reversal a share of it. A refund changes the merchant's balance by `fee_refunded` minus
    `amount`, and a returned payout by `amount` plus `fee_refunded`.

    `refunded_amount` is the part of a card payment that was refunded, and `reversed_amount` the
    part of any other transaction that was reversed. `reference` is the reference on the bank
    statement, of a deposit or of a bank posting.

    `book` is the code of the other book in a transfer between books. The party there is the partner
    that represents that book, with the name of the customer.

    Fields without a value are null. Only two fields can be absent: `failure_details`, which admins
    receive for a decline that has details, and `masked`.

    `masked` is present and true if a restricted subscriber who is hidden from the caller takes
    part. `from` and `to` then have only `type` and `id`, `card_serial`, `memo` and `metadata` are
    null, and `failure_details` is absent.
    """

    EXAMPLES: ClassVar = {
        "book": None,
        "channel": "pos",
        "direction": None,
        "metadata": {"order": "A-17"},
        "original_transaction_id": None,
        "to": {"type": "processor", "id": "prc_0800000000000", "name": "Kamara Stores"},
    }

    id: Id
    type: Annotated[TransactionType, Example("pos_payment")]
    status: TransactionStatus
    amount: Money
    fee_amount: Fee
    fee_payer: FeePayer | None
    fee_refunded: Annotated[Money, Example("1.00")]
    currency: CurrencyCode
    from_: PartyRecord | None = msgspec.field(name="from")
    to: PartyRecord | None
    book: BookCode | None
    direction: Direction | None
    balance_after: str | None
    card_serial: Serial | None
    processor_id: Id | None
    terminal_id: Id | None
    merchant_id: Annotated[Id, Example("M-204")] | None
    merchant_name: Name | None
    transaction_ref: Annotated[Word, Example("ORDER-1188")] | None
    reference: Annotated[str, Example("DEP-2026-017")] | None
    approval_code: ApprovalCode | None
    original_transaction_id: Id | None
    refunded_amount: Annotated[Money, Example("0.00")]
    reversed_amount: Annotated[Money, Example("0.00")]
    request_id: RequestId | None
    approval_id: Id | None
    failure_code: Word | None
    failure_details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    memo: str | None
    metadata: dict[str, Any] | None
    channel: Channel
    created_at: Time
    completed_at: Time | None
    masked: bool | msgspec.UnsetType = msgspec.UNSET


class ReversalRequest(MoneyRequest, kw_only=True):
    """A reversal. Without `amount`, everything that is not yet reversed goes back."""

    amount: Amount | None = None
    reason: FreeText


class ReversalReceipt(Receipt, kw_only=True):
    """Reversal receipt.

    `reversible_amount` is the part of the original that is not yet reversed. `fee_reversed` went
    back to who paid the fee, and `commission_reversed` was taken back from the agent.
    """

    original_transaction_id: Id
    amount: Money
    reversible_amount: Money
    fee_reversed: Money
    commission_reversed: Money


class ReversalPreviewQuery(msgspec.Struct, kw_only=True):
    amount: Amount | None = None


class ReversalPreview(msgspec.Struct, frozen=True, kw_only=True):
    """Effect that a reversal would have now.

    `reason` is the error code with which it would fail, and the amounts are then zero.
    `daily_limit_restored` and `monthly_limit_restored` are what the sender may spend again.
    """

    transaction_id: Id
    allowed: bool
    reason: Word | None
    amount: Money
    reversible_amount: Money
    fee_reversed: Money
    commission_reversed: Money
    daily_limit_restored: Money
    monthly_limit_restored: Money
    currency: Word


class EntrySide(msgspec.Struct, frozen=True, kw_only=True):
    """One account in an entry.

    `kind` is the account kind and `holder_type` is the type of the holder. `holder_id` is null for
    platform accounts. `balance_after` is null for all accounts except the payer's and the payee's.
    In masked entries, `name` and `balance_after` are null for all accounts except platform
    accounts.
    """

    account_id: Id
    kind: Word
    holder_type: PartyType
    holder_id: str | None
    name: Name | None
    balance_after: str | None


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One amount, moved from the debited account to the credited account."""

    position: int
    debit: EntrySide
    credit: EntrySide
    amount: Money


class TransactionEntries(msgspec.Struct, frozen=True, kw_only=True):
    transaction_id: Id
    currency: CurrencyCode
    entries: list[LedgerEntry]
    masked: bool | msgspec.UnsetType = msgspec.UNSET


class ReplaySummary(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    last_at: Time | None


class TransactionChain(msgspec.Struct, frozen=True, kw_only=True):
    original: TransactionRecord | None
    refunds: list[TransactionRecord]
    reversals: list[TransactionRecord]
    replays: ReplaySummary
    terminal_name: str | None
