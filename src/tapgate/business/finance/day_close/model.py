"""Closed days, hashed leaves, and the bytes that are signed. No I/O."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from tapgate.business.finance.day_close.verify_receipt import encode_canonically, encode_signed_day
from tapgate_client import ids, money
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.day_close import ClosedDay, Leaf, LeafEntry
from tapgate_client.schemas.fields import InvalidValueError
from tapgate_client.schemas.periods import DayRule
from tapgate_client.schemas.transactions import Direction

_encode_leaf: Final = msgspec.json.Encoder(order="sorted").encode
_day_rule: Final = DayRule()


class StoredDay(msgspec.Struct, frozen=True, kw_only=True):
    """Row of a closed day. Its period is given as times, because the time zone may change."""

    day: date
    starts_at: datetime
    ends_at: datetime
    transactions: int
    entries: int
    totals: str  # canonical JSON, as it was hashed
    merkle_root: bytes | None
    previous_root: bytes | None
    key_id: str
    closed_at: datetime
    signature: bytes = b""


def to_record(row: StoredDay, *, with_totals: bool = True) -> ClosedDay:
    totals = msgspec.json.decode(row.totals)
    return ClosedDay(
        date=row.day.isoformat(),
        transactions=row.transactions,
        entries=row.entries,
        totals=totals if with_totals else msgspec.UNSET,
        totals_hash=hashlib.sha256(row.totals.encode()).hexdigest(),
        merkle_root=None if row.merkle_root is None else row.merkle_root.hex(),
        previous_root=None if row.previous_root is None else row.previous_root.hex(),
        signature=base64.b64encode(row.signature).decode(),
        key_id=row.key_id,
        closed_at=format_rfc3339(row.closed_at),
    )


def encode_for_signature(row: StoredDay) -> bytes:
    return encode_signed_day(msgspec.to_builtins(to_record(row)))


def encode_totals(sums: Mapping[str, Sequence[int]], currency: str) -> str:
    """Return the canonical JSON of debits and credits by account kind, ordered by kind."""
    totals = [
        {
            "kind": kind,
            "debit": money.format_decimal(debit, currency),
            "credit": money.format_decimal(credit, currency),
        }
        for kind, (debit, credit) in sorted(sums.items())
    ]
    return encode_canonically(totals).decode()


def build_leaf(transaction_id: int, rows: Sequence[Any], currency: str) -> Leaf:
    """Return a transaction's leaf. The rows are its entries, ordered by position."""
    public_id = ids.encode(ids.TRANSACTION, transaction_id)
    return Leaf(
        id=public_id,
        entries=[
            LeafEntry(
                id=f"{public_id}:{row['position']}",
                account_id=ids.encode(ids.ACCOUNT, row[column]),
                direction=direction,
                amount=money.format_decimal(row["amount"], currency),
                currency=currency,
            )
            for row in rows
            for direction, column in (
                (Direction.DEBIT, "debit_account"),
                (Direction.CREDIT, "credit_account"),
            )
        ],
    )


def hash_leaves(rows: Sequence[Any]) -> list[tuple[int, bytes]]:
    """Return the IDs and leaf hashes of transactions, from entries ordered by ID and position."""
    leaves = []
    for transaction_id, group in groupby(rows, key=lambda row: row["transaction_id"]):
        entries = list(group)
        leaf = build_leaf(transaction_id, entries, entries[0]["currency"])
        leaves.append((transaction_id, hashlib.sha256(b"\x00" + _encode_leaf(leaf)).digest()))
    return leaves


def parse_day(text: str) -> date:
    """Return the date in a path, or raise 422."""
    try:
        return date.fromisoformat(_day_rule.check(text))
    except InvalidValueError as error:
        raise invalid_field("date", error.problems[""]) from None


def get_midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the start of a day."""
    return datetime.combine(day, time(), zone)


def get_day_end(day: date, zone: ZoneInfo) -> datetime:
    return get_midnight(day + timedelta(days=1), zone)
