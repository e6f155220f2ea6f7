"""Terminals that a processor may name in a payment, and their last-seen timestamps."""

from collections.abc import Iterable

import msgspec

from tapgate.auth.cache import Cache
from tapgate.auth.hmac_keys import HMAC_KEYS_TOPIC
from tapgate.auth.last_seen import LastSeen
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals
from tapgate_client import ids
from tapgate_client.clock import Clock
from tapgate_client.errors import Code
from tapgate_client.schemas.processors import TerminalStatus


async def find_terminal_names(
    database: Database, public_ids: Iterable[str | None]
) -> dict[str | None, str]:
    """Return terminal names by public ID."""
    decoded = {
        number: public_id
        for public_id in public_ids
        if public_id and (number := ids.decode(ids.TERMINAL, public_id)) is not None
    }
    if not decoded:
        return {}
    rows = await database.fetch(
        "SELECT id, name FROM terminals WHERE id = ANY ($1::bigint[])", list(decoded)
    )
    return {decoded[row["id"]]: row["name"] for row in rows}


class _Terminal(msgspec.Struct, frozen=True):
    processor_id: int
    status: str


class Terminals:
    def __init__(self, database: Database, signals: Signals, clock: Clock) -> None:
        self._database = database
        self._cache: Cache[int, _Terminal] = Cache(signals, HMAC_KEYS_TOPIC, self._load)
        last_seen = LastSeen(database, clock, "terminals", "last_seen_at")
        self.touch, self.flush_last_seen, self.run = last_seen.touch, last_seen.flush, last_seen.run

    async def rejection(self, terminal_id: int, *, processor_id: int) -> Code | None:
        """Return the error code if the processor cannot use this terminal, otherwise None."""
        terminal = await self._cache.get(terminal_id)
        if terminal is None or terminal.processor_id != processor_id:
            return Code.TERMINAL_NOT_FOUND
        return Code.TERMINAL_BLOCKED if terminal.status == TerminalStatus.BLOCKED else None

    async def _load(self, terminal_id: int) -> _Terminal | None:
        row = await self._database.fetchrow(
            "SELECT processor_id, status FROM terminals WHERE id = $1", terminal_id
        )
        return None if row is None else _Terminal(*row)
