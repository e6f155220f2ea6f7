"""Balance, quote, statement and transfer records."""

import msgspec

from tapgate.client.records.base import Receipt, Record, SecretRecord


class Recipient(Record, frozen=True, kw_only=True):
    """The recipient, with as much of the name as the sender may see."""

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
    """Receipt of a top-up. `new_balance` is None if the subscriber is hidden from the caller."""

    amount: str
    new_balance: str | None


class Quote(Record, frozen=True, kw_only=True):
    """Fee and total of a transaction that is not executed.

    `total` would be debited from the sender. `reasons` lists the error codes with which the
    transaction would currently fail.
    """

    amount: str
    fee_amount: str
    total: str
    currency: str
    allowed: bool
    reasons: list[str]


class Balance(Record, frozen=True, kw_only=True):
    """Balance of an account: `balance` is the sum of `available` and `held` (under review)."""

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
    """Period of a statement, including both dates."""

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
    """An account statement.

    `entries` is set for the format `json`. The formats `csv` and `pdf` have a `statement_url`,
    which requires no credential.
    """

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
