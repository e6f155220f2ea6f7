"""Rows that hold a secret: rotation with a grace period, and deletion."""

from datetime import timedelta

import asyncpg

from tapgate.runtime.store.transaction import Transaction


def select_name(column: str) -> str:
    """Return SQL for an admin's name, given another table's column with the admin ID."""
    return f"(SELECT admins.name FROM admins WHERE admins.id = {column})"


async def rotate_secret(
    tx: Transaction,
    table: str,
    row_id: int,
    new_secret: bytes,
    *,
    column: str,
    until_column: str,
    grace_seconds: int,
    condition: str = "true",
    returning: str = "id",
    **other_columns: object,
) -> asyncpg.Record | None:
    """Replace a row's secret and other columns; return the row, or None if there is none.

    Until the grace period ends, the current secret is kept as the previous secret. Older secrets
    are deleted.
    """
    others = "".join(f", {name} = ${n}" for n, name in enumerate(other_columns, start=4))
    return await tx.fetchrow(
        f"""UPDATE {table} SET {column} = $2, {until_column} = $3::timestamptz,
                   previous_{column} = CASE WHEN $3 IS NOT NULL THEN {column} END{others}
            WHERE id = $1 AND {condition} RETURNING {returning}""",
        row_id,
        new_secret,
        tx.now() + timedelta(seconds=grace_seconds) if grace_seconds else None,
        *other_columns.values(),
    )


async def delete_row(
    tx: Transaction, table: str, row_id: int, condition: str = "true", *values: object
) -> int | None:
    """Mark a row as deleted; return its id, or None if there is no such row.

    `condition` can use `$3` onward.
    """
    deleted: int | None = await tx.fetchval(
        f"""UPDATE {table} SET deleted_at = $2
            WHERE id = $1 AND deleted_at IS NULL AND {condition} RETURNING id""",
        row_id,
        tx.now(),
        *values,
    )
    return deleted
