"""Stored ledger verification progress, so that a verification reads only what is new.

A verified range of IDs has a digest of what must no longer change. Its MAC also covers the range
before it, and the sums by account have a separate MAC. The key is not in the database, so changed
or removed checkpoints are detected. Then, and on request, everything is verified, and each range is
compared with its stored digest: this finds entries that were changed together with all balances.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final

import msgspec

from tapgate.core.vault import Vault
from tapgate.ledger.archive.archived import Archive, get_end_id, is_authentic, load_archive
from tapgate.ledger.verification.closed_days import CLOSED_DAYS, list_broken_days
from tapgate.ledger.verification.verify import (
    Finding,
    Progress,
    Verification,
    VerifiedRange,
    split_range,
    verify,
)

UNCHANGED: Final = "transactions and entries are unchanged since they were verified"

_PURPOSE: Final = "ledger checkpoint"
_COLUMNS: Final = "first_id, end_id, transactions, entries, digest"


class StoredProgress:
    """Progress from earlier verifications."""

    def __init__(self, ranges: Sequence[VerifiedRange], mac: bytes, *, is_authentic: bool) -> None:
        self.ranges = ranges
        self.mac = mac
        self.is_authentic = is_authentic


async def verify_with_checkpoints(
    connection: Any, vault: Vault, *, full: bool = False, helpers: Sequence[Any] = ()
) -> tuple[Verification, Progress]:
    """Verify what is new, or everything; also return what `save_progress` stores."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        archive = await load_archive(connection)
        stored, progress = await load_stored(connection, vault), Progress(archive)
        stored.is_authentic &= is_authentic(vault, archive)
        if stored.is_authentic and not full:
            progress = await _resume(connection, vault, stored, archive)
        progress.basis = await _read_basis(connection)
    full = not progress.is_resumed
    resumed_at = progress.end_id
    known = {verified.end_id: verified for verified in stored.ranges}
    verification = await verify(
        connection,
        progress=progress,
        since=0 if full else progress.end_id,
        bounds=sorted(known) if full else (),
        helpers=helpers,
    )
    if await get_end_id(connection) != archive.end_id:
        # A month was archived or restored during the verification.
        return await verify_with_checkpoints(connection, vault, full=full, helpers=helpers)
    changed = [
        verified for verified in progress.ranges if verified != known.get(verified.end_id, verified)
    ]
    examples = [f"IDs from {verified.first_id} to {verified.end_id - 1}" for verified in changed]
    if not stored.is_authentic:
        examples.append("a checkpoint was changed or removed")
    finding = Finding(UNCHANGED, len(examples), examples[:5])
    broken_days = await list_broken_days(connection, 0 if full else resumed_at)
    days_finding = Finding(CLOSED_DAYS, len(broken_days), broken_days[:5])
    verification = msgspec.structs.replace(
        verification, findings=[*verification.findings, finding, days_finding]
    )
    if verification.is_valid:
        for verified in progress.ranges:
            if verified.end_id in known:
                progress.parts[verified] = await split_range(connection, verified)
    return verification, progress


async def save_progress(connection: Any, vault: Vault, progress: Progress, now: datetime) -> None:
    """Store ranges and sums after a verification that found no violations.

    Nothing is stored if a month was archived or restored since it started, or another verification
    has stored its progress. Ranges that span months are replaced by their parts.
    """
    if not progress.ranges:
        return
    async with connection.transaction():
        await lock_checkpoints(connection)
        stored = await load_stored(connection, vault)
        if not stored.is_authentic or await _read_basis(connection) != progress.basis:
            return
        end_id = stored.ranges[-1].end_id if stored.ranges else 0
        new = [verified for verified in progress.ranges if verified.first_id >= end_id]
        if any(len(parts) > 1 for parts in progress.parts.values()):
            await connection.execute("DELETE FROM verified_ranges")
            parts = [progress.parts.get(verified, [verified]) for verified in stored.ranges]
            stored.mac = await _add_ranges(connection, vault, b"", chain.from_iterable(parts), now)
        if new and new[0].first_id == end_id:
            await _add_ranges(connection, vault, stored.mac, new, now)
            await store_sums(connection, vault, new[-1].end_id, progress.sums)


async def lock_checkpoints(connection: Any) -> None:
    """Keep other sessions from changing the checkpoints until the database transaction ends."""
    await connection.execute(
        """SET LOCAL lock_timeout = '5min';
           LOCK TABLE verified_sums_seal IN EXCLUSIVE MODE"""
    )


async def _read_basis(connection: Any) -> tuple[int, bytes | None]:
    seal = await connection.fetchval("SELECT mac FROM verified_sums_seal")
    return await get_end_id(connection), seal


async def _add_ranges(
    connection: Any, vault: Vault, mac: bytes, ranges: Iterable[VerifiedRange], now: datetime
) -> bytes:
    """Add ranges after the one with this MAC, and return the last MAC."""
    rows = []
    for verified in ranges:
        mac = vault.keyed_hash(_PURPOSE, _build_mac_input(mac, verified))
        rows.append((*verified, mac, now))
    await connection.executemany(
        f"""INSERT INTO verified_ranges ({_COLUMNS}, mac, verified_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)""",
        rows,
    )
    return mac


async def load_stored(connection: Any, vault: Vault) -> StoredProgress:
    rows = await connection.fetch(f"SELECT {_COLUMNS}, mac FROM verified_ranges ORDER BY end_id")
    ranges: list[VerifiedRange] = []
    mac, is_authentic = b"", True
    for *values, stored_mac in rows:
        verified = VerifiedRange(*values)
        content = _build_mac_input(mac, verified)
        is_authentic &= vault.matches_hash(stored_mac, _PURPOSE, content) and (
            verified.first_id == (ranges[-1].end_id if ranges else 0)
        )
        mac = stored_mac
        ranges.append(verified)
    sealed = await connection.fetchval("SELECT end_id FROM verified_sums_seal")
    is_authentic &= sealed == (ranges[-1].end_id if ranges else None)
    return StoredProgress(ranges, mac, is_authentic=is_authentic)


async def _resume(
    connection: Any, vault: Vault, stored: StoredProgress, archive: Archive
) -> Progress:
    """Return the stored progress, or the start if there is none or the sums are not authentic."""
    if not stored.ranges or stored.ranges[-1].end_id < archive.end_id:
        return Progress(archive)
    sums = await load_sums(connection, vault, stored.ranges[-1].end_id)
    if sums is None:
        stored.is_authentic = False
        return Progress(archive)
    progress = Progress()
    progress.sums.update(sums)
    progress.is_resumed = True
    progress.end_id = stored.ranges[-1].end_id
    progress.transactions = sum(verified.transactions for verified in stored.ranges)
    progress.entries = sum(verified.entries for verified in stored.ranges)
    progress.entries += sum(month.reviewed_entries for month in archive.months)
    return progress


async def load_sums(connection: Any, vault: Vault, end_id: int) -> dict[int, int] | None:
    """Return the stored sums by account, or None if they are not authentic."""
    rows = await connection.fetch("SELECT account_id, amount FROM verified_sums")
    sums = {account_id: int(amount) for account_id, amount in rows}
    mac = await connection.fetchval("SELECT mac FROM verified_sums_seal")
    is_valid = vault.matches_hash(mac, _PURPOSE, _build_sums_mac_input(end_id, sums))
    return sums if is_valid else None


async def store_sums(connection: Any, vault: Vault, end_id: int, sums: Mapping[int, int]) -> None:
    await connection.execute(
        """INSERT INTO verified_sums
           SELECT * FROM unnest($1::bigint[], $2::numeric[])
           ON CONFLICT (account_id) DO UPDATE SET amount = excluded.amount
           WHERE verified_sums.amount <> excluded.amount""",
        list(sums),
        list(sums.values()),
    )
    await connection.execute(
        """INSERT INTO verified_sums_seal (end_id, mac) VALUES ($1, $2)
           ON CONFLICT (one_row) DO UPDATE SET end_id = excluded.end_id, mac = excluded.mac""",
        end_id,
        vault.keyed_hash(_PURPOSE, _build_sums_mac_input(end_id, sums)),
    )


async def find_old_macs(connection: Any, vault: Vault) -> dict[int, bytes]:
    """Return new range MACs, by end ID, where the MAC is authentic but uses an older secret key.

    All MACs after such a range change too.
    """
    stored = await load_stored(connection, vault)
    if not stored.is_authentic:
        return {}
    new, mac = {}, b""
    for verified in stored.ranges:
        mac = new[verified.end_id] = vault.keyed_hash(_PURPOSE, _build_mac_input(mac, verified))
    rows = await connection.fetch("SELECT end_id, mac FROM verified_ranges")
    return {end_id: new[end_id] for end_id, old in rows if new.get(end_id, old) != old}


async def renew_macs(connection: Any, vault: Vault) -> None:
    """Recompute authentic MACs with the newest secret key."""
    async with connection.transaction():
        await lock_checkpoints(connection)
        end_id = await connection.fetchval("SELECT end_id FROM verified_sums_seal")
        sums = None if end_id is None else await load_sums(connection, vault, end_id)
        if sums is None:
            return
        new = await find_old_macs(connection, vault)
        await connection.executemany(
            "UPDATE verified_ranges SET mac = $2 WHERE end_id = $1", list(new.items())
        )
        await store_sums(connection, vault, end_id, sums)


def _build_mac_input(previous: bytes, verified: VerifiedRange) -> bytes:
    numbers = " ".join(map(str, verified[:-1])).encode()
    return b" ".join((previous, numbers, verified.digest))


def _build_sums_mac_input(end_id: int, sums: Mapping[int, int]) -> bytes:
    text = ";".join(f"{account_id} {sums[account_id]}" for account_id in sorted(sums))
    digest = hashlib.sha256(text.encode()).digest()
    return b"sums %d %b" % (end_id, digest)
