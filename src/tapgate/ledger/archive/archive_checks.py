"""Checks before a month is archived, and the transactions that stay in the ledger."""

from typing import Any, Final, Protocol

import asyncpg

from tapgate.core.id_generator import get_time
from tapgate.runtime.store import StoreError

_TIMEOUT_SECONDS: Final = 3600.0
_LOCK_TIMEOUT: Final = "10s"


class _Month(Protocol):
    @property
    def first_id(self) -> int: ...
    @property
    def end_id(self) -> int: ...
    @property
    def name(self) -> str: ...


async def require_divided(connection: Any, archive_end: int) -> None:
    """Raise StoreError if the first partition contains more than archived months left behind."""
    if await connection.fetchval(
        "SELECT EXISTS (SELECT FROM transactions_initial WHERE id >= $1)", archive_end
    ):
        raise StoreError(
            "old transactions are not divided into months. Only Tapgate 1.x can divide them: see"
            " docs/upgrading.md"
        )


async def require_closed(connection: Any, month: _Month) -> None:
    held = await connection.fetchval(
        """SELECT count(*) FROM transactions
           WHERE id >= $1 AND id < $2 AND status = 'under_review'""",
        month.first_id,
        month.end_id,
    )
    if held:
        raise StoreError(
            f"{month.name} has {held} transactions under review. Release or reject them first"
        )
    pending = await connection.fetchval(
        """SELECT count(*) FROM book_transfers
           WHERE id >= $1 AND id < $2 AND status IN ('pending', 'stopped')""",
        month.first_id,
        month.end_id,
    )
    if pending:
        raise StoreError(
            f"{month.name} has {pending} pending transfers to other books. Deliver or return them"
            " first"
        )


async def list_kept(connection: Any, month: _Month) -> list[int]:
    """Return the transactions that stay in the ledger.

    They moved money in a later month, or refund a payment that stays or is in a later month.
    """
    rows = await connection.fetch(
        f"""SELECT id FROM transactions_{month.name}
            WHERE coalesce(completed_at, created_at) >= $1 OR original_id >= $2
               OR original_id IN (
                   SELECT id FROM transactions_initial
                   UNION ALL SELECT id FROM transactions_{month.name} WHERE completed_at >= $1)""",
        get_time(month.end_id),
        month.end_id,
        timeout=_TIMEOUT_SECONDS,
    )
    return [row["id"] for row in rows]


async def list_late(tx: Any, month: _Month) -> list[int]:
    """Return transactions that a node with a wrong clock created after the entries were detached.

    The month's table must be locked. Only indexes are read.
    """
    rows = await tx.fetch(
        f"""SELECT transaction_id AS id FROM entries_initial
            WHERE transaction_id >= $1 AND transaction_id < $2
            UNION SELECT id FROM transactions_{month.name} WHERE status = 'under_review'""",
        month.first_id,
        month.end_id,
    )
    return [row["id"] for row in rows]


async def count_entries(connection: Any, month: _Month) -> tuple[int, int]:
    """Return the number of entries of a month and the sum of their amounts."""
    row = await connection.fetchrow(
        f"SELECT count(*), coalesce(sum(amount), 0)::bigint FROM entries_{month.name}",
        timeout=_TIMEOUT_SECONDS,
    )
    return row[0], row[1]


async def lock_unchanged(tx: Any, month: _Month, expected: tuple[int, int]) -> None:
    """Refuse new entries in a month until the end of the database transaction.

    Payments continue, because they insert into later months. Raises StoreError if the entries
    are not those that were counted before.
    """
    try:
        await tx.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        await tx.execute(f"LOCK TABLE entries_{month.name} IN SHARE MODE", timeout=_TIMEOUT_SECONDS)
    except asyncpg.LockNotAvailableError:
        raise StoreError(
            f"other sessions use the entries of {month.name}. Run the command again later"
        ) from None
    if await count_entries(tx, month) != expected:
        raise StoreError(
            f"{month.name} was changed while it was archived. Run `tapgate verify --all`"
        )
