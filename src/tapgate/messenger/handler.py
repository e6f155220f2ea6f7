"""Acts on what the inbox took in, once: any process may, for a person whose conversation it holds,
the oldest message first."""

import asyncio
from datetime import timedelta
from typing import Any, NoReturn

import msgspec
import structlog

from tapgate.images import ImageError
from tapgate.messenger import conversations, inbox, pictures, runner
from tapgate.messenger.channel.graph import MediaError
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
    PictureInside,
    Tap,
    Words,
)
from tapgate.messenger.services import Services
from tapgate.service import logs
from tapgate.service.background import run_periodically

SWEEP_SECONDS = 1.0

_MOST_ATTEMPTS = 5
#: After a try that failed; longer after each.
_PAUSE = timedelta(seconds=2)
_MOST_ADDRESSES = 100
#: People who are answered by a process at the same time. Most of it is waiting for the gateway; but
#: with many more, everybody waits too long for a connection to the database, also new messages.
_AT_ONCE = 100

_log = structlog.get_logger()


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    address: str
    sent_at: int
    #: As it was stored, perhaps by another version: one that cannot be read is tried like others.
    content: Any
    sealed: bytes | None
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
            await run_periodically(self.sweep, every=SWEEP_SECONDS, name="messenger.inbox")
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
            _log.warning("inbox.put_off", failure=logs.describe_exception(error))

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
                await inbox.end(tx, waiting.id, "handled")
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
               RETURNING r.id, address, sent_at, content, sealed, withheld, attempts, reserved""",
            address,
            self._services.process,
            _PAUSE,
        )
        return None if row is None else msgspec.convert(dict(row), Waiting)

    async def _event(self, waiting: Waiting, *, late: bool) -> Event:
        match content := self._content(waiting):
            case Words():
                text = self._services.withheld.get(waiting.id, content.body)
                return Said(text=text, late=late)
            case Tap():
                return Chose(id=content.id, late=late)
            case ImageFile() | PictureInside():
                return await self._picture(content)
            case FlowReply():
                return FormClosed()
            case ChangedNumber():
                return NumberChanged()
            case Other():
                return NotUnderstood(kind=content.kind)

    def _content(self, waiting: Waiting) -> Content:
        if waiting.sealed is not None:
            return inbox.opened(self._services.vault, waiting.id, waiting.sealed)
        content: Content = msgspec.convert(waiting.content, Content)
        return content

    async def _picture(self, image: ImageFile | PictureInside) -> Event:
        graph = self._services.graph
        try:
            if isinstance(image, PictureInside):
                return Pictured(picture=await pictures.from_bridge(image))
            if graph is None:
                return PictureRefused(reason="cannot be fetched from the channel")
            return Pictured(picture=await pictures.from_channel(graph, image))
        except (ImageError, MediaError) as error:
            return PictureRefused(reason=str(error))

    async def _give_up(self, waiting: Waiting) -> None:
        _log.error("inbox.given_up", received_id=waiting.id, attempts=waiting.attempts)
        self._services.withheld.pop(waiting.id, None)
        async with self._services.database.transaction() as tx:
            await inbox.end(tx, waiting.id, "failed")
