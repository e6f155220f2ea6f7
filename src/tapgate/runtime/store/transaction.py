"""Database transactions as passed to operations."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import asyncpg

from tapgate.core.id_generator import IdGenerator
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database, RaiseAfterCommit
from tapgate_client.clock import Clock


class Transaction:
    """Open database transaction, with the clock, IDs and vault for the rows that it writes.

    All other attributes come from the asyncpg connection. Operations that seal no column may run
    without a vault.
    """

    def __init__(
        self,
        connection: asyncpg.Connection,
        clock: Clock,
        new_id: IdGenerator,
        vault: Vault | None = None,
    ) -> None:
        self._connection = connection
        self._vault = vault
        self._after_commit: list[Callable[[], Awaitable[object]]] = []
        self.now = clock
        self.new_id = new_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    @property
    def vault(self) -> Vault:
        assert self._vault is not None, "the transaction was opened without a vault"
        return self._vault

    def after_commit(self, callback: Callable[[], Awaitable[object]]) -> None:
        """Register a callback that runs once the changes are committed."""
        self._after_commit.append(callback)

    async def run_after_commit(self) -> None:
        for callback in self._after_commit:
            await callback()


@asynccontextmanager
async def open_transaction(
    database: Database, clock: Clock, new_id: IdGenerator, vault: Vault | None = None
) -> AsyncIterator[Transaction]:
    """Open a database transaction for operations; see `Database.transaction`."""
    rejection = None
    async with database.transaction() as connection:
        tx = Transaction(connection, clock, new_id, vault)
        try:
            yield tx
        except RaiseAfterCommit as request:
            rejection = request.error
    await tx.run_after_commit()
    if rejection is not None:
        raise rejection


#: Opens a database transaction, as `Services.transaction` does.
OpenTransaction: TypeAlias = Callable[[], AbstractAsyncContextManager[Transaction]]
