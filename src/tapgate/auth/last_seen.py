"""Last-used timestamps, collected in memory and written in batches."""

import asyncio
import contextlib
from datetime import datetime
from typing import NoReturn

from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

_FLUSH_SECONDS = 5.0
_LAST_FLUSH_TIMEOUT = 1.0


class LastSeen:
    """Last-used timestamps for rows in one table, buffered until the next flush.

    If the process is killed, timestamps that are not yet flushed are lost.
    """

    def __init__(self, database: Database, clock: Clock, table: str, column: str) -> None:
        self._database = database
        self._clock = clock
        self._table = table
        # Lock rows in id order to avoid deadlocks with other processes that flush the same rows.
        self.update_sql = f"""
            WITH locked AS MATERIALIZED (
                SELECT id FROM {table} WHERE id = ANY ($1::bigint[]) ORDER BY id
                FOR NO KEY UPDATE
            )
            UPDATE {table} SET {column} = greatest({column}, seen.at)
            FROM unnest($1::bigint[], $2::timestamptz[]) AS seen (id, at) JOIN locked USING (id)
            WHERE {table}.id = seen.id"""
        self.pending: dict[int, datetime] = {}

    def touch(self, row_id: int) -> None:
        self.pending[row_id] = self._clock()

    async def run(self) -> NoReturn:
        try:
            await run_periodically(
                self.flush, every=_FLUSH_SECONDS, name=f"{self._table} last seen"
            )
        finally:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_LAST_FLUSH_TIMEOUT):
                    await self.flush()

    async def flush(self) -> None:
        seen, self.pending = self.pending, {}
        if not seen:
            return
        try:
            await self._database.execute(self.update_sql, list(seen), list(seen.values()))
        except BaseException:
            self.pending = seen | self.pending
            raise
