"""INSERT and UPDATE statements for structs whose fields are named like the columns."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import asyncpg
import msgspec

from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code, unavailable


async def insert_row(
    tx: Transaction, table: str, row: msgspec.Struct, columns: Iterable[str], **others: object
) -> None:
    """Insert a struct's given fields. `others` are columns that are not fields."""
    await insert_values(tx, table, **{column: getattr(row, column) for column in columns}, **others)


async def insert_values(tx: Transaction, table: str, **values: object) -> None:
    """Insert a row with the given columns."""
    placeholders = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await tx.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders})", *values.values()
    )


async def update_row(
    tx: Transaction, table: str, row: msgspec.Struct, columns: Iterable[str], **others: object
) -> None:
    """Update the row with the struct's `id`. `others` are columns that are not fields."""
    values = {column: getattr(row, column) for column in ("id", *columns)} | others
    _, *assignments = (f"{column} = ${number}" for number, column in enumerate(values, 1))
    await tx.execute(f"UPDATE {table} SET {', '.join(assignments)} WHERE id = $1", *values.values())


@contextmanager
def map_conflicts(codes: Mapping[str, Code]) -> Iterator[None]:
    """Map unique constraint violations to the error codes given by name, and deadlocks to 503.

    Two concurrent updates that swap phone numbers, for example, deadlock.
    """
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name not in codes:
            raise
        raise ApiError(codes[error.constraint_name]) from None
    except asyncpg.DeadlockDetectedError:
        raise unavailable("The update conflicted with another one. Try again.") from None
