"""Storage of chosen languages at the gateway, which uses them for its messages.

A conversation never waits for this. A failed attempt is retried when its lease expires. Storing a
language again is harmless, so any number of processes may run the worker.
"""

from typing import Final, NoReturn

import asyncpg
import structlog

from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import LEASE_DURATION
from tapgate_client import ApiError, AsyncTapgateClient, ConflictError, TapgateError
from tapgate_client.clock import Clock

_INTERVAL_SECONDS: Final = 1.0
_BATCH_SIZE: Final = 50

#: People who are not trusted may not own the subscriber's account, so their choice is not stored.
_LEASE_SQL: Final = """
    UPDATE messenger.people SET language_due_at = $2
    WHERE address = ANY (ARRAY(
        SELECT address FROM messenger.people
        WHERE language_due_at <= $1 AND trusted AND (address LIKE '+%' OR phone IS NOT NULL)
        ORDER BY language_due_at LIMIT $3 FOR UPDATE SKIP LOCKED))
    RETURNING address, CASE WHEN address LIKE '+%' THEN address ELSE phone END AS phone_number,
              language, language_due_at"""

_log = structlog.get_logger()


class LanguageSync:
    def __init__(self, database: Database, gateway: AsyncTapgateClient, clock: Clock) -> None:
        self._database = database
        self._gateway = gateway
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(self.store_due, every=_INTERVAL_SECONDS, name="messenger.languages")

    async def store_due(self) -> None:
        now = self._clock()
        for row in await self._database.fetch(_LEASE_SQL, now, now + LEASE_DURATION, _BATCH_SIZE):
            try:
                await self._store(row["phone_number"], row["language"])
            except ConflictError as error:
                _log.info("languages.rejected", code=error.code)  # the subscriber is closed
            except ApiError as error:
                _log.info("languages.retry_scheduled", code=error.code)
                continue
            except TapgateError as error:
                _log.info("languages.retry_scheduled", error=type(error).__name__)
                return  # the gateway is probably down
            await self._complete(row)

    async def _store(self, phone_number: str, language: str) -> None:
        """Store the language for the subscriber with this phone number, if there is one."""
        page = await self._gateway.subscribers.list(phone_number=phone_number, limit=1).get_page()
        for subscriber in page.data:
            if subscriber.language != language:
                await self._gateway.subscribers.update(subscriber.id, language=language)

    async def _complete(self, row: asyncpg.Record) -> None:
        # A language chosen after the lease changes `language_due_at`, so it is stored next.
        await self._database.execute(
            """UPDATE messenger.people SET language_due_at = NULL
               WHERE address = $1 AND language_due_at = $2""",
            row["address"],
            row["language_due_at"],
        )
