"""Stored progress of ledger verification, so that a verification reads only what is new.

A verified range of IDs has a digest of what must not change any more. Its MAC also covers the range
before it, and the sums by account have a MAC of their own. The key is not in the database, so
changed or removed checkpoints are detected. Then, and on request, everything is verified, and each
range is compared with its stored digest: this finds entries that were changed together with all
balances.
"""

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from tapgate.ledger.verify import Finding, Progress, Proof, VerifiedRange, verify
from tapgate.vault import Vault

UNCHANGED: Final = "transactions and entries are unchanged since they were verified"

_PURPOSE: Final = "ledger checkpoint"
_COLUMNS: Final = "first_id, end_id, transactions, entries, digest"


class StoredProgress:
    """Progress of earlier verifications."""

    def __init__(self, ranges: Sequence[VerifiedRange], mac: bytes, *, is_authentic: bool) -> None:
        self.ranges = ranges
        self.mac = mac
        self.is_authentic = is_authentic


async def verify_with_checkpoints(
    connection: Any, vault: Vault, *, full: bool = False, helpers: Sequence[Any] = ()
) -> tuple[Proof, Progress]:
    """Verify what is new, or everything, and return the proof and what `save_progress` stores."""
    stored, progress = await _load(connection, vault), Progress()
    full = full or not stored.is_authentic
    if not full:
        progress = await _resume(connection, vault, stored)
        full = progress.end_id == 0
    known = {verified.end_id: verified for verified in stored.ranges}
    proof = await verify(
        connection,
        progress=progress,
        since=0 if full else progress.end_id,
        bounds=sorted(known) if full else (),
        helpers=helpers,
    )
    changed = [
        verified for verified in progress.ranges if verified != known.get(verified.end_id, verified)
    ]
    examples = [f"IDs from {verified.first_id} to {verified.end_id - 1}" for verified in changed]
    if not stored.is_authentic:
        examples.append("a checkpoint was changed or removed")
    finding = Finding(UNCHANGED, len(examples), examples[:5])
    return Proof(proof.transactions, proof.entries, proof.accounts, [*proof.findings, finding]), (
        progress
    )


async def save_progress(connection: Any, vault: Vault, progress: Progress, now: datetime) -> None:
    """Store the ranges and sums of a verification that found nothing."""
    stored = await _load(connection, vault)
    end_id = stored.ranges[-1].end_id if stored.ranges else 0
    new = [verified for verified in progress.ranges if verified.first_id >= end_id]
    if not new or new[0].first_id != end_id or not stored.is_authentic:
        return
    mac, rows = stored.mac, []
    for verified in new:
        mac = _compute_mac(vault, mac, verified)
        rows.append((*verified, mac, now))
    async with connection.transaction():
        await connection.executemany(
            f"""INSERT INTO verified_ranges ({_COLUMNS}, mac, verified_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7)""",
            rows,
        )
        await connection.execute(
            """INSERT INTO verified_sums
               SELECT * FROM unnest($1::bigint[], $2::numeric[])
               ON CONFLICT (account_id) DO UPDATE SET amount = excluded.amount
               WHERE verified_sums.amount <> excluded.amount""",
            list(progress.sums),
            list(progress.sums.values()),
        )
        await connection.execute(
            """INSERT INTO verified_sums_seal (end_id, mac) VALUES ($1, $2)
               ON CONFLICT (one_row) DO UPDATE SET end_id = excluded.end_id, mac = excluded.mac""",
            new[-1].end_id,
            _compute_sums_mac(vault, new[-1].end_id, progress.sums),
        )


async def _load(connection: Any, vault: Vault) -> StoredProgress:
    rows = await connection.fetch(f"SELECT {_COLUMNS}, mac FROM verified_ranges ORDER BY end_id")
    ranges: list[VerifiedRange] = []
    mac, is_authentic = b"", True
    for *values, stored_mac in rows:
        verified = VerifiedRange(*values)
        mac = _compute_mac(vault, mac, verified)
        is_authentic &= hmac.compare_digest(mac, stored_mac) and verified.first_id == (
            ranges[-1].end_id if ranges else 0
        )
        ranges.append(verified)
    sealed = await connection.fetchval("SELECT end_id FROM verified_sums_seal")
    is_authentic &= sealed == (ranges[-1].end_id if ranges else None)
    return StoredProgress(ranges, mac, is_authentic=is_authentic)


async def _resume(connection: Any, vault: Vault, stored: StoredProgress) -> Progress:
    """Return the stored progress, or none if the sums are not authentic."""
    progress = Progress()
    if not stored.ranges:
        return progress
    rows = await connection.fetch("SELECT account_id, amount FROM verified_sums")
    progress.sums.update({account_id: int(amount) for account_id, amount in rows})
    end_id = stored.ranges[-1].end_id
    mac = await connection.fetchval("SELECT mac FROM verified_sums_seal")
    if not hmac.compare_digest(mac, _compute_sums_mac(vault, end_id, progress.sums)):
        stored.is_authentic = False
        return Progress()
    progress.end_id = end_id
    progress.transactions = sum(verified.transactions for verified in stored.ranges)
    progress.entries = sum(verified.entries for verified in stored.ranges)
    return progress


def _compute_mac(vault: Vault, previous: bytes, verified: VerifiedRange) -> bytes:
    numbers = " ".join(map(str, verified[:-1])).encode()
    return vault.keyed_hash(_PURPOSE, b" ".join((previous, numbers, verified.digest)))


def _compute_sums_mac(vault: Vault, end_id: int, sums: dict[int, int]) -> bytes:
    text = ";".join(f"{account_id} {sums[account_id]}" for account_id in sorted(sums))
    digest = hashlib.sha256(text.encode()).digest()
    return vault.keyed_hash(_PURPOSE, b"sums %d %b" % (end_id, digest))
