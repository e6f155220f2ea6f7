"""Tiny write that succeeds only if a payment could be committed."""

from typing import Final

import asyncpg

from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError
from tapgate_client.schemas.health import NotReadyReason

#: Longer than any commit of a healthy server takes.
COMMIT_TIMEOUT_SECONDS: Final = 0.75

#: What a payment needs, in one round trip and one database transaction: locks on the ledger tables,
#: space for new pages, and a commit that is on disk and on the standbys. The space is a temporary
#: file, which is written beside the tables. A row would not need space: its page exists already.
#: The WAL message is written and replicated like a row, but leaves nothing to vacuum.
_PROBE_SQL: Final = """
    SET LOCAL lock_timeout = '400ms';
    SET LOCAL work_mem = '64kB';
    SET LOCAL temp_tablespaces = '';
    LOCK TABLE ONLY accounts, ONLY transactions, ONLY entries IN ROW EXCLUSIVE MODE;
    WITH filler AS MATERIALIZED (SELECT repeat('x', 8000) FROM generate_series(1, 40))
    SELECT count(*) FROM filler;
    SELECT pg_logical_emit_message(true, 'tapgate', 'commit probe')"""
_WAITS_FOR_STANDBYS_SQL: Final = "SELECT current_setting('synchronous_standby_names') <> ''"


async def probe_commit(database: Database) -> NotReadyReason | None:
    """Commit a tiny write, and return the reason why that fails, or None."""
    try:
        async with database.connection() as connection:
            try:
                await connection.execute(_PROBE_SQL, timeout=COMMIT_TIMEOUT_SECONDS)
            except TimeoutError:
                # asyncpg has canceled the commit's wait, so no session stays behind on the server.
                return await _explain_stalled_commit(connection)
    except (ApiError, asyncpg.PostgresError) as error:
        return classify_commit_failure(error) or NotReadyReason.DATABASE_UNAVAILABLE
    return None


async def _explain_stalled_commit(connection: asyncpg.Connection) -> NotReadyReason:
    waits = await connection.fetchval(_WAITS_FOR_STANDBYS_SQL, timeout=COMMIT_TIMEOUT_SECONDS)
    return NotReadyReason.NO_SYNCHRONOUS_STANDBY if waits else NotReadyReason.COMMITS_STALLED


def classify_commit_failure(error: BaseException | None) -> NotReadyReason | None:
    """Return the reason in an error that prevented a commit, or None if it is another one."""
    if isinstance(error, ApiError):
        error = error.__cause__
    match error:
        case asyncpg.DiskFullError():
            return NotReadyReason.DATABASE_DISK_FULL
        case asyncpg.LockNotAvailableError():
            return NotReadyReason.LEDGER_LOCKED
        case asyncpg.ReadOnlySQLTransactionError():
            return NotReadyReason.DATABASE_READ_ONLY
    return None
