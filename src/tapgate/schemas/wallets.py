"""Wallets: balances, quotes, transfers and statements."""

from typing import Annotated

import msgspec

from tapgate.schemas.common import Redacted
from tapgate.schemas.fields import Amount, CardSerial, Choice, Currency, Date, FreeText, Pin, Text
from tapgate.schemas.transactions import MoneyRequest, Receipt, TransactionTypeField


class Balance(msgspec.Struct, kw_only=True):
    """An account balance: `available` plus `held`, the funds held for transactions under review."""

    user_id: str
    account_id: str
    balance: str
    available: str
    held: str
    currency: str
    as_of: str


class QuoteRequest(msgspec.Struct, kw_only=True):
    type: TransactionTypeField
    amount: Amount
    sender_id: Text | None = None
    currency: Currency | None = None


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    amount: str
    fee_amount: str
    total: str
    currency: str
    allowed: bool
    reasons: list[str]


class P2pTransferRequest(MoneyRequest, kw_only=True):
    sender_id: Text
    recipient_card_serial: CardSerial
    amount: Amount
    pin: Pin
    memo: FreeText | None = None


class Recipient(msgspec.Struct, kw_only=True):
    """Recipient of a transfer, with the part of the name that a sender may see."""

    name: str | None
    card_serial: str


class P2pReceipt(Receipt, kw_only=True):
    amount: str
    fee_amount: str
    sender_new_balance: str
    recipient: Recipient


class TransferRequest(MoneyRequest, kw_only=True):
    from_account_id: Text
    to_account_id: Text
    amount: Amount
    pin: Pin | None = None
    description: FreeText | None = None


class TransferReceipt(Receipt, kw_only=True):
    """Receipt of a transfer. The balance of a platform account is null."""

    amount: str
    from_balance: str | None
    to_balance: str | None


class StatementRequest(msgspec.Struct, kw_only=True):
    subscriber_id: Text
    from_date: Date
    to_date: Date
    format: Annotated[str, Choice("json", "csv", "pdf", name="StatementFormat")] = "json"
    pin: Pin | None = None


class StatementHolder(msgspec.Struct, kw_only=True):
    id: str
    name: str


class StatementPeriod(msgspec.Struct, kw_only=True):
    from_: str = msgspec.field(name="from")
    to: str


class EntryRecord(msgspec.Struct, kw_only=True):
    """An entry of a statement. `date` is the day of the movement in the platform's time zone."""

    date: str
    transaction_id: str
    type: TransactionTypeField
    description: str
    debit: str
    credit: str
    balance: str


class StatementRecord(Redacted, msgspec.Struct, kw_only=True, omit_defaults=True):
    """A statement: with `entries` for JSON, with `statement_url` and `expires_at` for a file."""

    statement_id: str
    subscriber: StatementHolder
    currency: str
    period: StatementPeriod
    opening_balance: str
    closing_balance: str
    total_credits: str
    total_debits: str
    transaction_count: int
    generated_at: str
    entries: list[EntryRecord] | None = None
    statement_url: str | None = None
    expires_at: str | None = None
