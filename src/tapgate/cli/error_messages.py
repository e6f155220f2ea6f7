"""Messages for errors that the operator can fix."""

from typing import Final

from asyncpg import UndefinedTableError

from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import VaultError
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.failures import Failure, summarize_error
from tapgate.server.child_process import StartError
from tapgate_client.errors import ApiError

OPERATOR_ERRORS: Final = (
    ApiError,
    SettingsError,
    StartError,
    StoreError,
    UndefinedTableError,
    VaultError,
)


def describe_error(error: Exception) -> str:
    """Return a one-line description. The API hides the cause of a lost connection."""
    if isinstance(error, UndefinedTableError):
        return "the database has no tables yet: start Tapgate once, or run `tapgate migrate`"
    if not isinstance(error, ApiError):
        return str(error)
    if error.message == Failure.LOST.value and error.__cause__ is not None:
        return f"the database is unavailable: {summarize_error(error.__cause__)}"
    return error.message or error.error
