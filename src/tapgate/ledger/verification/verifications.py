"""Stored ledger verification results."""

from datetime import datetime
from typing import Any, Final

import msgspec

from tapgate.ledger.verification.verify import Verification

_COLUMNS: Final = "proven_at, seconds, transactions, entries, accounts, broken"


class StoredVerification(msgspec.Struct, frozen=True):
    proven_at: datetime
    seconds: float
    transactions: int
    entries: int
    accounts: int
    broken: list[str]  # the invariants that failed

    @property
    def is_valid(self) -> bool:
        return not self.broken


async def record(
    tx: Any, verification: Verification, *, started_at: datetime, seconds: float
) -> StoredVerification:
    stored = StoredVerification(
        started_at,
        round(seconds, 3),
        verification.transactions,
        verification.entries,
        verification.accounts,
        [finding.invariant for finding in verification.findings if finding.broken],
    )
    await tx.execute(
        f"INSERT INTO proofs ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)",
        *msgspec.structs.astuple(stored),
    )
    return stored


async def get_latest(tx: Any) -> StoredVerification | None:
    row = await tx.fetchrow(f"SELECT {_COLUMNS} FROM proofs ORDER BY id DESC LIMIT 1")
    return None if row is None else StoredVerification(*row)
