"""Wallets: balances, quotes, statements, and receipts of transfers."""

import msgspec

from tapgate.client.records.base import Receipt, Record, SecretRecord


class Recipient(Record, frozen=True, kw_only=True):
    """As much of a name as a sender may see."""

    name: str | None
    card_serial: str


class P2pReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    fee_amount: str
    sender_new_balance: str
    recipient: Recipient


class TransferReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    from_balance: str | None
    to_balance: str | None


class TopUpReceipt(Receipt, frozen=True, kw_only=True):
    """`new_balance` of a restricted subscriber is None."""

    amount: str
    new_balance: str | None


class Quote(Record, frozen=True, kw_only=True):
    """`total` is what leaves the sender's wallet; `reasons` are codes."""

    amount: str
    fee_amount: str
    total: str
    currency: str
    allowed: bool
    reasons: list[str]


class Balance(Record, frozen=True, kw_only=True):
    """`balance` is what is `available` and what is `held` until a review is over."""

    user_id: str
    account_id: str
    balance: str
    available: str
    held: str
    currency: str
    as_of: str


class StatementHolder(Record, frozen=True, kw_only=True):
    id: str
    name: str


class StatementPeriod(Record, frozen=True, kw_only=True):
    """Both days belong to it."""

    from_: str = msgspec.field(name="from")
    to: str


class StatementEntry(Record, frozen=True, kw_only=True):
    date: str
    transaction_id: str
    type: str
    description: str
    debit: str
    credit: str
    balance: str


class Statement(SecretRecord, frozen=True, kw_only=True):
    """`entries` of one as JSON; the others are fetched by their link, which needs no credential."""

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
    entries: list[StatementEntry] | None = None
    statement_url: str | None = None
    expires_at: str | None = None
