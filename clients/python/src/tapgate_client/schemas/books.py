"""Several books: customer lookup, and transfers from customers of another book."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from tapgate_client.errors import invalid_field
from tapgate_client.schemas.common import ErrorCode, Reason, build_missing_field_error
from tapgate_client.schemas.fields import (
    Amount,
    CardSerial,
    Currency,
    FreeText,
    IdempotencyKey,
    PersonName,
    Phone,
    Reference,
)
from tapgate_client.schemas.general_ledger import AccountKind
from tapgate_client.schemas.pagination import OrderedPageQuery
from tapgate_client.schemas.transactions import MoneyRequest, Receipt
from tapgate_client.schemas.values import (
    AccountBalance,
    BalanceAmount,
    BookCode,
    CurrencyCode,
    Example,
    Id,
    Money,
    Name,
    Time,
)


class BookLookup(msgspec.Struct, kw_only=True):
    """A customer, identified by either a phone number or a card."""

    OMITTED_IN_EXAMPLES: ClassVar = ("card_serial",)

    phone_number: Phone | None = None
    card_serial: CardSerial | None = None

    def __post_init__(self) -> None:
        if self.phone_number is None and self.card_serial is None:
            raise build_missing_field_error("phone_number")
        if self.phone_number is not None and self.card_serial is not None:
            raise invalid_field("card_serial", "must not be combined with phone_number")


class BookCustomer(msgspec.Struct, frozen=True, kw_only=True):
    """The book in which a customer lives.

    `name` is the part of the name that a sender may see, or null for a restricted customer.
    `version` grows with every change of the customer's record, so that of two responses the later
    one can be recognized.
    """

    book: BookCode
    subscriber_id: Id
    name: Name | None
    can_receive: bool
    version: int


class BookTransfer(MoneyRequest, kw_only=True):
    """A transfer from a customer of another book.

    `request_id` is the ID of the transaction that debited the sender there.
    """

    recipient_id: Reference
    sender_name: PersonName
    amount: Amount
    memo: Annotated[FreeText, Example("School fees")] | None = None


class BookTransferCancellation(msgspec.Struct, kw_only=True):
    """The transfer to cancel, with the values with which it was sent."""

    request_id: IdempotencyKey
    recipient_id: Reference
    amount: Amount
    currency: Currency | None = None


class BookTransferReceipt(Receipt, kw_only=True):
    amount: Money


class BookTransferStatus(StrEnum):
    PENDING = "pending"
    STOPPED = "stopped"  # refused for long: staff decide
    DELIVERED = "delivered"
    RETURNED = "returned"
    CANCELED = "canceled"  # a review in the sender's book rejected it


class BookTransferProblem(StrEnum):
    """Why a transfer is not delivered yet, unless the other book has refused it with a code."""

    UNDER_REVIEW = "UNDER_REVIEW"
    UNDER_REVIEW_ELSEWHERE = "UNDER_REVIEW_ELSEWHERE"
    BOOK_NOT_CONFIGURED = "BOOK_NOT_CONFIGURED"
    NO_RESPONSE = "NO_RESPONSE"
    UNEXPECTED_RESPONSE = "UNEXPECTED_RESPONSE"


class BookTransferRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer to a customer of another book. `id` is the transaction's.

    `error` is what the last attempt met: an error code of the other book or of this ledger, or
    `UNDER_REVIEW` here, `UNDER_REVIEW_ELSEWHERE`, `BOOK_NOT_CONFIGURED`, `NO_RESPONSE` or
    `UNEXPECTED_RESPONSE`. `refusal_code` is the final refusal of the other book.
    `can_return_unconfirmed` says whether staff can return the transfer `without_confirmation`.
    """

    id: Annotated[Id, Example("txn_0800000000000")]
    book: BookCode
    amount: Money
    currency: CurrencyCode
    status: BookTransferStatus
    attempts: int
    error: Annotated[str, Example("FORBIDDEN")] | None
    refusal_code: ErrorCode | None
    can_return: bool
    can_return_unconfirmed: bool
    created_at: Time
    next_attempt_at: Time | None
    refused_since: Time | None
    return_requested_at: Time | None
    ended_at: Time | None


class BookTransferReturn(Reason, kw_only=True):
    """Why the money goes back. `without_confirmation` is for a book that was removed."""

    OMITTED_IN_EXAMPLES: ClassVar = ("without_confirmation",)

    without_confirmation: bool = False


class BookTransferFilters(OrderedPageQuery, kw_only=True):
    status: BookTransferStatus | None = None


class BookAccountBalance(msgspec.Struct, frozen=True, kw_only=True):
    """Total balance of one account kind: credits minus debits."""

    kind: AccountKind
    balance: AccountBalance


class BookAccountTotal(BookAccountBalance, frozen=True, kw_only=True):
    """Total balance of one account kind over several books, in one currency."""

    currency: CurrencyCode


class BookPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Balances of a book, and what it owes the book that asks."""

    book: BookCode
    as_of: Time
    currency: CurrencyCode
    owed: AccountBalance
    in_transit: BalanceAmount
    accounts: list[BookAccountBalance]


class BookReportRow(msgspec.Struct, frozen=True, kw_only=True):
    """What this book and another one owe each other."""

    book: BookCode
    owed: AccountBalance
    owed_by_book: AccountBalance | None
    in_transit: BalanceAmount | None
    difference: AccountBalance | None


class BookNumberConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A customer of this book whose phone number a customer of another book has too."""

    subscriber_id: Id
    book: BookCode
    since: Time


class BookReport(msgspec.Struct, frozen=True, kw_only=True):
    """Balances of all books together, and phone numbers that two of them have."""

    as_of: Time
    currency: CurrencyCode
    books: list[BookReportRow]
    accounts: list[BookAccountTotal]
    number_conflicts: list[BookNumberConflict]
    missing_books: list[BookCode]
    is_complete: bool
