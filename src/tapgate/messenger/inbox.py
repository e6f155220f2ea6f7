"""Messages from the channel: stored before they are acknowledged, handled afterwards, once.

Any process may handle a message of an address whose conversation it holds, oldest first. Only what
may have held a PIN is not stored: the process that took it in knows it and comes first; should that
process die, the person is asked again.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, NoReturn

import asyncpg
import msgspec
import structlog

from tapgate.images import PictureError
from tapgate.messenger import conversations, people, pictures, rates, runner
from tapgate.messenger.channel.graph import MediaError
from tapgate.messenger.conversation import engine
from tapgate.messenger.model.events import (
    Chose,
    Event,
    FormClosed,
    NotUnderstood,
    NumberChanged,
    Pictured,
    PictureRefused,
    Said,
)
from tapgate.messenger.model.incoming import (
    ChangedNumber,
    Content,
    FlowReply,
    ImageFile,
    Other,
    Received,
    Tap,
    Words,
)
from tapgate.messenger.services import Services
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin
from tapgate.service import logs
from tapgate.service.background import repeat

SWEEP_SECONDS = 1.0

#: How long others leave a message to the process that took it in.
_HEAD_START = timedelta(seconds=2)
_HEAD_START_OF_WITHHELD = timedelta(seconds=15)
_FORGET_SECONDS = 60.0
_MOST_ATTEMPTS = 5
#: After a try that failed; longer after each.
_PAUSE = timedelta(seconds=2)
_MOST_ADDRESSES = 100
#: People who are answered by a process at the same time. Most of it is waiting for the gateway; but
#: with many more, everybody waits too long for a connection to the database, also new messages.
_AT_ONCE = 100
#: In one database transaction: to commit each by itself takes most of the time.
_STORED_AT_ONCE = 100

_log = structlog.get_logger()


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
               (id, message_id, address, sent_at, content, withheld, status,
                reserved_for, reserved_until, received_at)
           VALUES ($1, $2, $3, $4, $5, $6, 'waiting', $7, clock_timestamp() + $8, $9)
           ON CONFLICT (message_id) DO NOTHING RETURNING true""",
        row_id,
        message.message_id,
        message.address,
        message.sent_at,
        msgspec.to_builtins(content),
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
    await _end(tx, row_id, "throttled")
    if await rates.tell_once(tx, address):
        person = await people.meet(tx, address)
        await services.put(tx, address, engine.slow_down(person, wait))
    return False


def _withheld(content: Content) -> str | None:
    """A text that must not be stored."""
    if isinstance(content, Words) and content.body is not None and may_hold_a_pin(content.body):
        return content.body
    return None


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    address: str
    sent_at: int
    #: As it was stored, perhaps by another version: one that cannot be read is tried like others.
    content: Any
    withheld: bool
    attempts: int
    #: Left to the process that knows what was withheld, or to a later time.
    reserved: bool


class Handler:
    """Handles what was received, in the background. Any number may run."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._stopped = False
        self._room = asyncio.Semaphore(_AT_ONCE)
        services.wake = self.wake

    async def run(self) -> NoReturn:
        """Until it is cancelled; what is under way then is cut off and handled again later."""
        try:
            await repeat(self.sweep, every=SWEEP_SECONDS, name="messenger.inbox")
        finally:
            self._stopped = True
            tasks = list(self._at_work.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, address: str) -> None:
        if self._stopped:
            return
        if address in self._at_work:
            self._again.add(address)
            return
        task = asyncio.create_task(self._drain(address))
        self._at_work[address] = task
        task.add_done_callback(lambda _: self._done(address))

    async def sweep(self) -> None:
        """What another process left behind, or this one put off. Those at work are left out: they
        may take long, and there may be others behind them."""
        rows = await self._services.database.fetch(
            """SELECT DISTINCT address FROM messenger.received
               WHERE status = 'waiting'
                 AND (reserved_for = $1 OR reserved_until <= clock_timestamp())
                 AND address <> ALL($3)
               LIMIT $2""",
            self._services.process,
            _MOST_ADDRESSES,
            list(self._at_work),
        )
        for row in rows:
            self.wake(row["address"])

    def _done(self, address: str) -> None:
        del self._at_work[address]
        if address in self._again:
            self._again.discard(address)
            self.wake(address)

    async def _drain(self, address: str) -> None:
        try:
            async with self._room:
                while await self._handle_next(address):
                    pass
        except Exception as error:
            # It is still waiting, and the sweep finds it again.
            _log.warning("inbox.put_off", failure=logs.trace(error))

    async def _handle_next(self, address: str) -> bool:
        """Whether there may be more."""
        services = self._services
        async with conversations.hold(services.database, address, services.clock()) as held:
            waiting = await self._next(address)
            if waiting is None or waiting.reserved:
                return False
            if waiting.attempts > _MOST_ATTEMPTS:
                await self._give_up(waiting)
                return True
            event = await self._event(waiting, late=waiting.sent_at < held.heard_until)
            turn = await runner.take_turn(services, held, event, "webhook")
            async with services.database.transaction() as tx:
                await runner.write(tx, services, held, turn, heard_until=waiting.sent_at)
                await _end(tx, waiting.id, "handled")
        services.withheld.pop(waiting.id, None)
        services.wake_sender()
        return True

    async def _next(self, address: str) -> Waiting | None:
        """The oldest one, counted as tried: one that ends the process is not tried for ever."""
        row = await self._services.database.fetchrow(
            """WITH oldest AS (
                   SELECT id, NOT (reserved_for = $2 OR reserved_until <= clock_timestamp()
                                   OR NOT withheld AND attempts = 0) AS reserved
                   FROM messenger.received WHERE address = $1 AND status = 'waiting'
                   ORDER BY sent_at, id LIMIT 1)
               UPDATE messenger.received r
               SET attempts = attempts + CASE WHEN reserved THEN 0 ELSE 1 END,
                   -- Should this try fail, the next one is a little later, whoever makes it.
                   reserved_for = CASE WHEN reserved OR withheld THEN reserved_for ELSE 0 END,
                   reserved_until = CASE WHEN reserved THEN reserved_until
                       ELSE greatest(CASE WHEN withheld THEN reserved_until END,
                                     clock_timestamp() + $3::interval * (attempts + 1)) END
               FROM oldest WHERE r.id = oldest.id
               RETURNING r.id, address, sent_at, content, withheld, attempts, reserved""",
            address,
            self._services.process,
            _PAUSE,
        )
        return None if row is None else msgspec.convert(dict(row), Waiting)

    async def _event(self, waiting: Waiting, *, late: bool) -> Event:
        content: Content = msgspec.convert(waiting.content, Content)
        match content:
            case Words():
                text = self._services.withheld.get(waiting.id, content.body)
                return Said(text=text, late=late)
            case Tap():
                return Chose(id=content.id, late=late)
            case ImageFile():
                return await self._picture(content)
            case FlowReply():
                return FormClosed()
            case ChangedNumber():
                return NumberChanged()
            case Other():
                return NotUnderstood(kind=content.kind)

    async def _picture(self, image: ImageFile) -> Event:
        if self._services.graph is None:
            return PictureRefused(reason="cannot be fetched from the channel")
        try:
            return Pictured(picture=await pictures.from_channel(self._services.graph, image))
        except (PictureError, MediaError) as error:
            return PictureRefused(reason=str(error))

    async def _give_up(self, waiting: Waiting) -> None:
        _log.error("inbox.given_up", received_id=waiting.id, attempts=waiting.attempts)
        self._services.withheld.pop(waiting.id, None)
        async with self._services.database.transaction() as tx:
            await _end(tx, waiting.id, "failed")


async def _end(tx: asyncpg.Connection, row_id: int, status: str) -> None:
    await tx.execute(
        "UPDATE messenger.received SET status = $2, content = NULL WHERE id = $1", row_id, status
    )
