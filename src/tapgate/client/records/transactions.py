"""Transaction and ledger entry records."""

from typing import Any

import msgspec

from tapgate.client.records.base import Record


class Party(Record, frozen=True, kw_only=True):
    type: str
    id: str
    name: str | None = None
    card_serial: str | None = None


class Transaction(Record, frozen=True, kw_only=True):
    """A transaction. `masked` is true if a party is restricted and its personal data is hidden."""

    id: str
    type: str
    status: str
    amount: str
    fee_amount: str
    currency: str
    from_: Party | None = msgspec.field(name="from")
    to: Party | None
    direction: str | None
    balance_after: str | None
    card_serial: str | None
    processor_id: str | None
    terminal_id: str | None
    merchant_id: str | None
    merchant_name: str | None
    transaction_ref: str | None
    approval_code: str | None
    original_transaction_id: str | None
    refunded_amount: str
    request_id: str | None
    failure_code: str | None
    failure_details: dict[str, Any] | None = None
    memo: str | None
    metadata: dict[str, Any] | None
    channel: str
    created_at: str
    completed_at: str | None
    masked: bool = False


class EntrySide(Record, frozen=True, kw_only=True):
    account_id: str
    kind: str
    holder_type: str
    holder_id: str | None
    name: str | None
    balance_after: str | None


class LedgerEntry(Record, frozen=True, kw_only=True):
    position: int
    debit: EntrySide
    credit: EntrySide
    amount: str


class TransactionEntries(Record, frozen=True, kw_only=True):
    transaction_id: str
    currency: str
    entries: list[LedgerEntry]
    masked: bool = False


class ReplaySummary(Record, frozen=True, kw_only=True):
    """Number of replays of a request, and the time of the last replay."""

    count: int
    last_at: str | None


class TransactionChain(Record, frozen=True, kw_only=True):
    original: Transaction | None
    refunds: list[Transaction]
    replays: ReplaySummary
