"""Closed days, their signing keys, and inclusion proofs."""

from typing import Annotated

import msgspec

from tapgate_client.schemas.general_ledger import AccountKind
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.periods import Day
from tapgate_client.schemas.transactions import Direction
from tapgate_client.schemas.values import BalanceAmount, CalendarDate, Example, Id, Time, Word

_HASH = Example("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
_KEY_ID = Example("7c1f0d6a3b52e984")


class DayTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Sum of the debits and credits of one account kind on a day."""

    kind: AccountKind
    debit: BalanceAmount
    credit: BalanceAmount


class ClosedDay(msgspec.Struct, frozen=True, kw_only=True):
    """Closed day. `entries` counts ledger entries, each of which has a debit and a credit.

    `totals_hash` is the SHA-256 of the canonical JSON of `totals`. The signature is Ed25519 over
    the canonical JSON of the record without `signature` and `totals`.
    """

    date: CalendarDate
    transactions: int
    entries: int
    totals: list[DayTotal] | msgspec.UnsetType = msgspec.UNSET
    totals_hash: Annotated[str, _HASH]
    merkle_root: Annotated[str, _HASH] | None
    previous_root: Annotated[str, _HASH] | None
    signature: Annotated[str, Example("base64")]
    key_id: Annotated[Word, _KEY_ID]
    closed_at: Time


class ClosedDayQuery(PageQuery, kw_only=True):
    """Filters for closed days: both bounds are included."""

    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None


class LedgerKey(msgspec.Struct, frozen=True, kw_only=True):
    """Public Ed25519 key that signs closed days. A retired key still verifies earlier days."""

    key_id: Annotated[Word, _KEY_ID]
    public_key: Annotated[str, Example("base64")]
    created_at: Time
    retired_at: Time | msgspec.UnsetType = msgspec.UNSET


class LedgerKeys(msgspec.Struct, kw_only=True):
    keys: list[LedgerKey]


class LeafEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Debit or credit of one ledger entry, as it is hashed."""

    id: Annotated[Word, Example("txn_01hq8v5k2m3n4:0")]
    account_id: Id
    direction: Direction
    amount: Annotated[str, Example("25.00")]
    currency: Word


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """Transaction as it is hashed: its entries in order of position, debit before credit."""

    id: Id
    entries: list[LeafEntry]


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    """Sibling on the path to the root. `side` is where the sibling stands."""

    side: Annotated[Word, Example("left")]
    hash: Annotated[str, _HASH]


class InclusionProof(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that a transaction is part of a closed day."""

    transaction_id: Id
    leaf: Leaf
    path: list[PathStep]
    day: ClosedDay
