"""Results of tasks that the operator schedules, for alerts about missing or failed ones.

Verifications, closed days and archived months are in tables of their own.
"""

from enum import StrEnum

from tapgate.runtime.store import StoreError
from tapgate.runtime.store.failures import DATABASE_ERRORS
from tapgate.runtime.store.migrate import open_checked_connection


class Task(StrEnum):
    BACKUP = "backup"
    RESTORE_CHECK = "restore_check"


async def record_run(url: str, task: Task, *, succeeded: bool) -> bool:
    """Record a run that has just ended; return False if the database cannot store it.

    A drill can use a server without an installation, and the failure can be the database's.
    """
    try:
        connection = await open_checked_connection(url)
    except StoreError:
        return False
    try:
        await connection.execute(
            """INSERT INTO task_runs AS run (task, ended_at, succeeded, succeeded_at)
               VALUES ($1, now(), $2, CASE WHEN $2 THEN now() END)
               ON CONFLICT (task) DO UPDATE
               SET ended_at = excluded.ended_at, succeeded = excluded.succeeded,
                   succeeded_at = coalesce(excluded.succeeded_at, run.succeeded_at)""",
            task,
            succeeded,
        )
    except DATABASE_ERRORS:
        return False
    finally:
        connection.terminate()
    return True
