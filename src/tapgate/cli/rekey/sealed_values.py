"""Sealed values: how many use an older secret key, and moving them to the newest."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncpg

from tapgate.cli.rekey.columns import SEALED_COLUMNS, SealedColumn, build_row_context
from tapgate.core.vault import KEY_ID_BYTES, Vault, VaultError
from tapgate.ledger.card_proofs.issuer_keys import build_own_keys_context, derive_legacy_own_keys
from tapgate.runtime.store.installation import get_first_key_id

#: A sealed value starts with its key's fingerprint and a random nonce, so that its beginning
#: identifies it.
_UNIQUE_BYTES: Final = KEY_ID_BYTES + 12
#: A pass skips values that a request has locked for long, and those that were changed.
_MAX_PASSES: Final = 5

#: Receives the number of values that were moved since the last call.
ProgressCallback = Callable[[int], Awaitable[None]]

_LEGACY_CARDS: Final = """
    FROM cards
    WHERE master_keyset_id IS NULL AND (keyset_id IS NOT NULL OR pending_keyset_id IS NOT NULL)
      AND NOT EXISTS (SELECT FROM card_own_keys WHERE card_id = cards.id)"""


async def count_by_key(connection: Any, column: SealedColumn) -> dict[str, int]:
    """Return the number of values by the fingerprint of their key."""
    rows = await connection.fetch(
        f"""SELECT encode(substring({column.column} FROM 1 FOR {KEY_ID_BYTES}), 'hex'), count(*)
            FROM {column.table} WHERE {column.column} IS NOT NULL GROUP BY 1"""
    )
    return dict(rows)


async def count_legacy_cards(connection: Any) -> int:
    """Return the number of cards whose own keys are derived from the first secret key."""
    count: int = await connection.fetchval(f"SELECT count(*) {_LEGACY_CARDS}")
    return count


async def store_own_keys(connection: Any, vault: Vault) -> None:
    """Store per-card keys that were derived from the first secret key."""
    first_key_id = await get_first_key_id(connection)
    for row in await connection.fetch(f"SELECT id {_LEGACY_CARDS}"):
        keys = derive_legacy_own_keys(vault, row["id"], first_key_id)
        await connection.execute(
            "INSERT INTO card_own_keys (card_id, keys) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            row["id"],
            vault.seal(keys, build_own_keys_context(row["id"])),
        )


async def reseal_all(connection: Any, vault: Vault, report: ProgressCallback) -> list[str]:
    """Move all sealed values to the newest key; return descriptions of those that cannot be opened.

    Values are moved one by one, and only if they have not changed since they were read. After an
    interruption, a new run continues with the remaining values. Losing the last few commits
    would not matter, so they need not be flushed.
    """
    await connection.execute("SET synchronous_commit = off")
    failures: list[str] = []
    for column in SEALED_COLUMNS:
        for _ in range(_MAX_PASSES):
            unreadable, has_skipped = await _reseal_column(connection, vault, column, report)
            if not has_skipped:
                break
        if unreadable:
            failures.append(f"{unreadable} in {column.name}")
    await connection.execute("RESET synchronous_commit")
    return failures


async def _reseal_column(
    connection: Any, vault: Vault, column: SealedColumn, report: ProgressCallback
) -> tuple[int, bool]:
    """Return the number of values that cannot be opened, and whether others were skipped."""
    unreadable, has_skipped, last = 0, False, None
    while rows := await _load_batch(connection, vault, column, last):
        moved = 0
        for row in rows:
            try:
                context = build_row_context(column, row)
                sealed = vault.seal(vault.open(row["sealed"], context), context)
            except VaultError:
                unreadable += 1
                continue
            if await _replace(connection, column, row, sealed):
                moved += 1
            else:
                has_skipped = True
        last = tuple(rows[-1][name] for name in column.key)
        await report(moved)
    return unreadable, has_skipped


async def _load_batch(
    connection: Any, vault: Vault, column: SealedColumn, last: tuple[Any, ...] | None
) -> list[asyncpg.Record]:
    keys = ", ".join(column.key)
    placeholders = ", ".join(f"${n}" for n in range(2, 2 + len(column.key)))
    after = "" if last is None else f"AND ({keys}) > ({placeholders})"
    rows: list[asyncpg.Record] = await connection.fetch(
        f"""SELECT {keys}, {column.column} AS sealed FROM {column.table}
            WHERE substring({column.column} FROM 1 FOR {KEY_ID_BYTES}) <> $1 {after}
            ORDER BY {keys} LIMIT {column.batch_size}""",
        bytes.fromhex(vault.key_id),
        *(last or ()),
    )
    return rows


async def _replace(
    connection: Any, column: SealedColumn, row: asyncpg.Record, sealed: bytes
) -> bool:
    condition = " AND ".join(f"{name} = ${n}" for n, name in enumerate(column.key, start=3))
    try:
        status: str = await connection.execute(
            f"""UPDATE {column.table} SET {column.column} = $1
                WHERE {condition}
                  AND substring({column.column} FROM 1 FOR {_UNIQUE_BYTES}) = $2""",
            sealed,
            row["sealed"][:_UNIQUE_BYTES],
            *(row[name] for name in column.key),
        )
    except asyncpg.LockNotAvailableError:
        return False
    return status == "UPDATE 1"
