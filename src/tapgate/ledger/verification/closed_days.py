"""Verification of closed days: their chain, their leaves, and the roots over the stored entries.

It shares no code with the day close. The signature is not verified here: only the published keys
can do that, offline (`tapgate verify-receipt`).
"""

import hashlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tapgate.core.id_generator import first_id_at, get_time
from tapgate.ledger.archive.archived import get_end_id
from tapgate_client import ids, money

CLOSED_DAYS: Final = "closed days match their entries"
_ID_TOLERANCE: Final = timedelta(hours=1)
_PAGE_SIZE: Final = 5_000
_HASH_BYTES: Final = 32
_TIMEOUT_SECONDS: Final = 3600

_LIST_TRANSACTIONS: Final = """
    SELECT id, currency FROM (
        SELECT id, currency, completed_at FROM transactions WHERE id >= $3 AND id < $4
        UNION
        SELECT t.id, currency, t.completed_at
        FROM released_transactions r JOIN transactions t ON t.id = r.transaction_id
        WHERE r.completed_at >= $1 AND r.completed_at < $2
    ) AS posted WHERE completed_at >= $1 AND completed_at < $2 AND id > $5
    ORDER BY id LIMIT $6"""
_LIST_ENTRIES: Final = """
    SELECT transaction_id, position, debit_account, credit_account, amount FROM entries
    WHERE transaction_id = ANY ($1::bigint[]) AND transaction_id >= $2 AND transaction_id <= $3
    ORDER BY transaction_id, position"""


class _Day(NamedTuple):
    day: Any
    starts_at: datetime
    ends_at: datetime
    transactions: int
    entries: int
    merkle_root: bytes | None
    previous_root: bytes | None


async def list_broken_days(connection: Any, since: int) -> list[str]:
    """Return descriptions of closed days that contradict the chain, the leaves or the entries.

    Entries are read for days that ended after the time in the ID `since`. Leaves of archived
    months are compared with the root only.
    """
    rows = await connection.fetch(
        f"SELECT {', '.join(_Day._fields)} FROM closed_days ORDER BY day", timeout=_TIMEOUT_SECONDS
    )
    days = [_Day(*row) for row in rows]
    broken = [
        f"{day.day}: the previous root is not the root of {before.day}"
        for before, day in pairwise(days)
        if day.previous_root != before.merkle_root
    ]
    if days and days[0].previous_root is not None:
        broken.append(f"{days[0].day}: the first day has a previous root")
    open_since = await connection.fetchval("SELECT starts_at FROM open_days")
    if days and (open_since is None or open_since < days[-1].ends_at):
        broken.append(f"{days[-1].day}: the day accepts entries")
    live_from = get_time(await get_end_id(connection))
    for day in days:
        if day.ends_at > get_time(since) or not since:
            problem = await _find_problem(connection, day, is_live=day.starts_at >= live_from)
            if problem is not None:
                broken.append(f"{day.day}: {problem}")
    return broken


async def _find_problem(connection: Any, day: _Day, *, is_live: bool) -> str | None:
    stored = _Tree()
    chunks = await connection.fetch(
        "SELECT number FROM closed_day_chunks WHERE day = $1 ORDER BY number", day.day
    )
    for (number,) in chunks:
        leaves = await connection.fetchval(
            "SELECT leaves FROM closed_day_chunks WHERE day = $1 AND number = $2", day.day, number
        )
        for start in range(0, len(leaves), _HASH_BYTES):
            stored.add(leaves[start : start + _HASH_BYTES])
    if stored.count != day.transactions or (stored.root or day.previous_root) != day.merkle_root:
        return "the root does not match the stored leaves"
    if not is_live:
        return None
    actual, entries = _Tree(), 0
    async for leaf, count in _iter_leaves(connection, day):
        actual.add(leaf)
        entries += count
    if (actual.count, entries) != (day.transactions, day.entries):
        return f"{actual.count} transactions with {entries} entries, but the day has " + (
            f"{day.transactions} with {day.entries}"
        )
    return None if actual.root == stored.root else "the root does not match the entries"


class _Tree:
    """Root over leaves, with one complete subtree per level at most."""

    def __init__(self) -> None:
        self.count = 0
        self._subtrees: list[tuple[int, bytes]] = []  # (level, hash), highest first

    def add(self, leaf: bytes) -> None:
        level, node = 0, leaf
        while self._subtrees and self._subtrees[-1][0] == level:
            node = _hash_pair(self._subtrees.pop()[1], node)
            level += 1
        self._subtrees.append((level, node))
        self.count += 1

    @property
    def root(self) -> bytes | None:
        """The root: incomplete subtrees move up until they meet the next higher one."""
        root: bytes | None = None
        for _, node in reversed(self._subtrees):
            root = node if root is None else _hash_pair(node, root)
        return root


def _hash_pair(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


async def _iter_leaves(connection: Any, day: _Day) -> AsyncIterator[tuple[bytes, int]]:
    """Yield the leaf hash and the number of entries of each transaction, ordered by ID."""
    after_id = -1
    while True:
        transactions = await connection.fetch(
            _LIST_TRANSACTIONS,
            day.starts_at,
            day.ends_at,
            first_id_at(day.starts_at - _ID_TOLERANCE),
            first_id_at(day.ends_at + _ID_TOLERANCE),
            after_id,
            _PAGE_SIZE,
            timeout=_TIMEOUT_SECONDS,
        )
        if not transactions:
            return
        numbers = [row["id"] for row in transactions]
        rows = await connection.fetch(
            _LIST_ENTRIES, numbers, numbers[0], numbers[-1], timeout=_TIMEOUT_SECONDS
        )
        by_transaction: dict[int, list[Any]] = {}
        for row in rows:
            by_transaction.setdefault(row["transaction_id"], []).append(row)
        for transaction_id, currency in transactions:
            entries = by_transaction.get(transaction_id, [])
            if entries:
                yield _hash_transaction(transaction_id, entries, currency), len(entries)
        after_id = numbers[-1]


def _hash_transaction(transaction_id: int, entries: list[Any], currency: str) -> bytes:
    public_id = ids.encode(ids.TRANSACTION, transaction_id)
    sides = []
    for entry in entries:
        amount = money.format_decimal(entry["amount"], currency)
        for direction in ("debit", "credit"):
            account_id = ids.encode(ids.ACCOUNT, entry[f"{direction}_account"])
            sides.append(
                f'{{"account_id":"{account_id}","amount":"{amount}","currency":"{currency}",'
                f'"direction":"{direction}","id":"{public_id}:{entry["position"]}"}}'
            )
    leaf = f'{{"entries":[{",".join(sides)}],"id":"{public_id}"}}'
    return hashlib.sha256(b"\x00" + leaf.encode()).digest()
