"""Loads card keys by UID. Concurrent requests share a statement."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tapgate.runtime.store.database import Database


class CardLoader:
    """Reads cards in batches: while one statement runs, further UIDs wait for the next one.

    A result is never older than the request for it, because a UID is not added to a statement that
    has been sent.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, asyncio.Future[Sequence[Any] | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def load(self, uid: str) -> Sequence[Any] | None:
        """Return the card's serial, keys and pending keys, or None."""
        future = self._waiting.get(uid)
        if future is None:
            future = self._waiting[uid] = asyncio.get_running_loop().create_future()
            if self._task is None:
                self._task = asyncio.create_task(self._run())
        return await asyncio.shield(future)  # other requests may wait for the same card

    async def _run(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, {}
                try:
                    found = await self._fetch(list(waiting))
                except Exception as error:  # every request raises it
                    for future in waiting.values():
                        future.set_exception(error)
                else:
                    for uid, future in waiting.items():
                        future.set_result(found.get(uid))
        finally:
            self._task = None

    async def _fetch(self, uids: Sequence[str]) -> dict[str, Sequence[Any]]:
        rows = await self._database.fetch(
            """SELECT uid, serial, keyset_id, key_version, pending_keyset_id, pending_key_version
               FROM cards WHERE uid = ANY ($1::text[])""",
            uids,
        )
        return {row[0]: row[1:] for row in rows}
