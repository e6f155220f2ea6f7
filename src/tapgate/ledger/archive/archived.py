"""Archived months: where the ledger begins, and the sums of earlier entries.

The archive has no gaps: all transactions with IDs below `Archive.end_id` are archived, except those
that moved money after the end of their month, for example after a review. These stay in the ledger.

The months form a chain of MACs whose key is not in the database, like verification checkpoints.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from tapgate.core.id_generator import get_time
from tapgate.core.vault import Vault
from tapgate.runtime.store.pipeline import send_ahead
from tapgate_client.errors import invalid_field

_PURPOSE: Final = "ledger archive"
#: Error details for a request about an archived transaction.
ARCHIVED: Final = {"reason": "archived"}
_COLUMNS: Final = """
    first_id, end_id, name, transactions, entries, reviewed_entries, sums_digest, mac, archived_at,
    archived_by, is_detached, files, dropped_at"""


class ArchivedMonth(NamedTuple):
    first_id: int
    end_id: int
    #: As in table and file names: 2026_03.
    name: str
    transactions: int
    entries: int
    #: Entries whose transactions were under review. Checkpoints do not count them.
    reviewed_entries: int
    sums_digest: bytes
    mac: bytes
    archived_at: datetime
    archived_by: str
    #: False while only the entries are detached.
    is_detached: bool
    #: File name to SHA-256 digest, or None before the export.
    files: dict[str, str] | None
    dropped_at: datetime | None


class Archive(NamedTuple):
    months: Sequence[ArchivedMonth]
    #: Account to the sum of its archived entries.
    sums: Mapping[int, int]

    @property
    def end_id(self) -> int:
        return self.months[-1].end_id if self.months else 0

    @property
    def is_detached(self) -> bool:
        return all(month.is_detached for month in self.months)


async def load_archive(connection: Any) -> Archive:
    rows = await connection.fetch(f"SELECT {_COLUMNS} FROM archived_months ORDER BY end_id")
    months = [
        ArchivedMonth(**{**row, "files": _decode_files(row["files"])}) for row in map(dict, rows)
    ]
    sums = await connection.fetch("SELECT account_id, amount FROM archived_sums")
    return Archive(months, {account_id: int(amount) for account_id, amount in sums})


def _decode_files(files: Any) -> dict[str, str] | None:
    return msgspec.json.decode(files, type=dict[str, str]) if isinstance(files, str) else files


async def get_end_id(reader: Any) -> int:
    """Return the first ID that is not archived, or 0."""
    end_id: int = await reader.fetchval("SELECT coalesce(max(end_id), 0) FROM archived_months")
    return end_id


async def require_live(reader: Any, moment: datetime, field: str, *, is_end: bool = False) -> None:
    """Raise an error if a time, which the request has in a field, is in an archived month.

    The time has the platform's time zone. It is the start of the day in the field, or its end.
    """
    end = get_time(await get_end_id(reader))
    if moment < end and end > get_time(0):
        local = end.astimezone(moment.tzinfo)
        day = local.date() + timedelta(days=(local.time() > time()) - is_end)
        raise invalid_field(field, f"must be {day} or later. Earlier months are archived")


def lock_live(snapshot: asyncpg.Connection) -> None:
    """Keep months from being archived while a snapshot reads them, and before it is taken.

    The lock is taken together with the next statement.
    """
    send_ahead(snapshot, "LOCK TABLE ONLY entries, ONLY transactions IN ACCESS SHARE MODE")


def is_authentic(vault: Vault, archive: Archive) -> bool:
    """Return whether no archived month and no sum was changed."""
    previous = b""
    for month in archive.months:
        if not vault.matches_hash(month.mac, _PURPOSE, _build_mac_input(previous, month)):
            return False
        previous = month.mac
    digest = archive.months[-1].sums_digest if archive.months else compute_sums_digest({})
    return hmac.compare_digest(digest, compute_sums_digest(archive.sums))


def compute_mac(vault: Vault, previous: bytes, month: ArchivedMonth) -> bytes:
    return vault.keyed_hash(_PURPOSE, _build_mac_input(previous, month))


async def find_old_macs(connection: Any, vault: Vault) -> dict[int, bytes]:
    """Return new month MACs, by end ID, where the MAC is authentic but uses an older secret key.

    All MACs after such a month change too.
    """
    archive = await load_archive(connection)
    if not is_authentic(vault, archive):
        return {}
    new, mac = {}, b""
    for month in archive.months:
        mac = compute_mac(vault, mac, month)
        if mac != month.mac:
            new[month.end_id] = mac
    return new


async def renew_macs(connection: Any, vault: Vault) -> None:
    """Recompute authentic MACs with the newest secret key. No month may be archived now."""
    async with connection.transaction():
        new = await find_old_macs(connection, vault)
        await connection.executemany(
            "UPDATE archived_months SET mac = $2 WHERE end_id = $1", list(new.items())
        )


def _build_mac_input(previous: bytes, month: ArchivedMonth) -> bytes:
    numbers = " ".join(map(str, month[:6])).encode()
    return b" ".join((previous, numbers, month.sums_digest))


def compute_sums_digest(sums: Mapping[int, int]) -> bytes:
    text = ";".join(f"{account} {amount}" for account, amount in sorted(sums.items()) if amount)
    return hashlib.sha256(text.encode()).digest()
