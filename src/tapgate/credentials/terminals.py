"""Which terminals may pay in, for processors that sign with a key of their own and name one; and
when each was last seen."""

from datetime import datetime
from typing import NoReturn

import msgspec

from tapgate.clock import Clock
from tapgate.credentials.cache import Cache
from tapgate.credentials.hmac_keys import CHANGED
from tapgate.errors import Code
from tapgate.service.background import repeat
from tapgate.store.database import Database
from tapgate.store.signals import Signals

_EVERY_SECONDS = 5.0


class Terminal(msgspec.Struct, frozen=True):
    processor_id: int
    status: str


class Terminals:
    def __init__(self, database: Database, signals: Signals, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: Cache[int, Terminal] = Cache(signals, CHANGED, self._load)
        self._seen: dict[int, datetime] = {}

    async def objection(self, terminal_id: int, *, processor_id: int) -> Code | None:
        """Why a processor cannot have a payment made at this terminal."""
        terminal = await self._known.get(terminal_id)
        if terminal is None or terminal.processor_id != processor_id:
            return Code.TERMINAL_NOT_FOUND
        return Code.TERMINAL_BLOCKED if terminal.status == "blocked" else None

    def saw(self, terminal_id: int) -> None:
        """Written down later and for many at once: a payment does not wait for it."""
        self._seen[terminal_id] = self._clock()

    async def run(self) -> NoReturn:
        await repeat(self.write_down, every=_EVERY_SECONDS, name="terminals seen")

    async def write_down(self) -> None:
        seen, self._seen = self._seen, {}
        if seen:
            await self._database.execute(
                # Locked in one order: other processes write down what they saw, too.
                """WITH locked AS MATERIALIZED (
                       SELECT id FROM terminals WHERE id = ANY ($1::bigint[]) ORDER BY id
                       FOR NO KEY UPDATE
                   )
                   UPDATE terminals SET last_seen_at = greatest(last_seen_at, seen.at)
                   FROM unnest($1::bigint[], $2::timestamptz[]) AS seen (id, at)
                   JOIN locked USING (id)
                   WHERE terminals.id = seen.id""",
                list(seen),
                list(seen.values()),
            )

    async def _load(self, terminal_id: int) -> Terminal | None:
        row = await self._database.fetchrow(
            "SELECT processor_id, status FROM terminals WHERE id = $1", terminal_id
        )
        return None if row is None else Terminal(*row)
