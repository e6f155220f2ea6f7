"""Scratch databases beside an installation's own one, for restore drills."""

import contextlib
import secrets
from collections.abc import AsyncIterator

from tapgate.runtime.store import StoreError
from tapgate.runtime.store.failures import DATABASE_ERRORS, summarize_error
from tapgate.runtime.store.migrate import open_checked_connection
from tapgate.runtime.store.url import replace_database

_PREFIX = "tapgate_check_"


@contextlib.asynccontextmanager
async def create_scratch_database(url: str) -> AsyncIterator[str]:
    """Create an empty database on the server, yield its URL, and drop it."""
    name = _PREFIX + secrets.token_hex(6)
    await _execute(
        url, f"CREATE DATABASE {name}", "cannot create a scratch database. Grant CREATEDB"
    )
    try:
        yield replace_database(url, name)
    finally:
        await _execute(url, f"DROP DATABASE {name} WITH (FORCE)", f"cannot drop {name}. Drop it")


async def _execute(url: str, statement: str, problem: str) -> None:
    connection = await open_checked_connection(url)
    try:
        await connection.execute(statement)
    except DATABASE_ERRORS as error:
        raise StoreError(f"{problem}: {summarize_error(error)}") from error
    finally:
        connection.terminate()
