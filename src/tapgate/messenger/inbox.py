"""Messages from the channel, stored and sealed before they are acknowledged. `handler.py` acts on
them.

Only what may have held a PIN is not stored: the process that took it in knows it and comes first;
should that process die, the person is asked again.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import asyncpg
import msgspec

from tapgate.messenger import people, rates
from tapgate.messenger.conversation import engine
from tapgate.messenger.model.incoming import (
    ChangedNumber,
    Content,
    Received,
    Words,
)
from tapgate.messenger.services import Services
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin
from tapgate.vault import Vault

#: How long others leave a message to the process that took it in.
_HEAD_START = timedelta(seconds=2)
_HEAD_START_OF_WITHHELD = timedelta(seconds=15)
_FORGET_SECONDS = 60.0
#: In one database transaction: to commit each by itself takes most of the time.
_STORED_AT_ONCE = 100

_decoder: msgspec.json.Decoder[Content] = msgspec.json.Decoder(Content)


async def take_in(services: Services, received: Sequence[Received]) -> None:
    """Safe in the database when this returns. Twins of what is there already are dropped."""
    arrivals = [_Arrival(services.new_id(), message) for message in received]
    # In one order for everybody, so that two deliveries never wait for each other.
    arrivals.sort(key=lambda arrival: (arrival.message.address, arrival.message.message_id))
    waiting = set[str]()
    for start in range(0, len(arrivals), _STORED_AT_ONCE):
        waiting |= await _store(services, arrivals[start : start + _STORED_AT_ONCE])
    # Not before: the provider waits for the acknowledgement.
    for address in waiting:
        services.wake(address)
    services.wake_sender()  # perhaps some were asked to slow down


class _Arrival(NamedTuple):
    row_id: int
    message: Received


async def _store(services: Services, arrivals: Sequence[_Arrival]) -> set[str]:
    """Whom there is something to do for. What is over the rate is kept as such, so that it stays
    over it when it is delivered again."""
    waiting = dict[int, str]()
    for row_id, message in arrivals:
        _withhold(services, row_id, message.content)
    try:
        async with services.database.transaction() as tx:
            stored = {
                row_id: message.address
                for row_id, message in arrivals
                if await _is_to_be_handled(tx, services, row_id, message)
            }
        waiting = stored
    finally:
        for row_id, _ in arrivals:
            if row_id not in waiting:
                services.withheld.pop(row_id, None)
    return set(waiting.values())


def _withhold(services: Services, row_id: int, content: Content) -> None:
    text = _withheld(content)
    if text is not None:
        services.withheld[row_id] = text
        # Should another process have handled it in the end.
        asyncio.get_running_loop().call_later(_FORGET_SECONDS, services.withheld.pop, row_id, None)


async def _is_to_be_handled(
    tx: asyncpg.Connection, services: Services, row_id: int, message: Received
) -> bool:
    is_withheld = row_id in services.withheld
    if not await _insert(tx, services, row_id, message, is_withheld=is_withheld):
        return False
    # A changed number is the channel's word, not the person's: however much they write, they do
    # not stay trusted by it.
    return isinstance(message.content, ChangedNumber) or await _within_rate(
        tx, services, row_id, message.address
    )


async def _insert(
    tx: asyncpg.Connection,
    services: Services,
    row_id: int,
    message: Received,
    *,
    is_withheld: bool,
) -> bool:
    content = Words(body=None) if is_withheld else message.content
    is_new = await tx.fetchval(
        """INSERT INTO messenger.received
               (id, message_id, address, sent_at, sealed, withheld, status,
                reserved_for, reserved_until, received_at)
           VALUES ($1, $2, $3, $4, $5, $6, 'waiting', $7, clock_timestamp() + $8, $9)
           ON CONFLICT (message_id) DO NOTHING RETURNING true""",
        row_id,
        message.message_id,
        message.address,
        message.sent_at,
        _sealed(services.vault, row_id, content),
        is_withheld,
        services.process,
        _HEAD_START_OF_WITHHELD if is_withheld else _HEAD_START,
        services.clock(),
    )
    return bool(is_new)


async def _within_rate(
    tx: asyncpg.Connection, services: Services, row_id: int, address: str
) -> bool:
    now = services.clock()
    wait = await rates.take(tx, address, most=services.settings.messenger_rate, now=now)
    if wait is None:
        return True
    await end(tx, row_id, "throttled")
    if await rates.tell_once(tx, address):
        person = await people.meet(tx, address)
        await services.put(tx, address, engine.slow_down(person, wait))
    return False


def _withheld(content: Content) -> str | None:
    """A text that must not be stored."""
    if isinstance(content, Words) and content.body is not None and may_hold_a_pin(content.body):
        return content.body
    return None


def _sealed(vault: Vault, row_id: int, content: Content) -> bytes:
    return vault.seal(msgspec.json.encode(content), _context(row_id))


def opened(vault: Vault, row_id: int, sealed: bytes) -> Content:
    return _decoder.decode(vault.open(sealed, _context(row_id)))


def _context(row_id: int) -> bytes:
    return b"received %d" % row_id


async def end(tx: asyncpg.Connection, row_id: int, status: str) -> None:
    await tx.execute(
        "UPDATE messenger.received SET status = $2, content = NULL, sealed = NULL WHERE id = $1",
        row_id,
        status,
    )
