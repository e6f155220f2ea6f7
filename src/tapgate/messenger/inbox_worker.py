"""Worker that handles stored inbox messages, oldest first in each conversation.

Any process that holds the lease of the sender's conversation can handle a message. The message is
marked as handled in the database transaction that saves the turn. Failed attempts are retried, and
after `_MAX_ATTEMPTS` attempts the message is marked as failed.
"""

import asyncio
from datetime import timedelta
from typing import Any, NoReturn

import msgspec
import structlog

from tapgate.core.images import ImageError
from tapgate.messenger import conversation_store, images, inbox, people, runner, turns
from tapgate.messenger.channel.graph import MediaError
from tapgate.messenger.model import (
    Content,
    Event,
    FormClosed,
    ImageFile,
    ImageReceived,
    ImageRejected,
    InlineImage,
    NumberChanged,
    OptionChosen,
    TextContent,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.services import Services
from tapgate.messenger.turns import TurnSummary
from tapgate.runtime import logs
from tapgate.runtime.background import run_periodically
from tapgate_client.schemas.chat import ChatChannel, ChatInput, ChatOutcome

SWEEP_INTERVAL_SECONDS = 1.0

_MAX_ATTEMPTS = 5
#: Minimum time between the first two attempts; grows linearly with the number of attempts.
_BACKOFF = timedelta(seconds=2)
_MAX_ADDRESSES_PER_SWEEP = 100
#: Conversations per process. A turn mostly waits for the gateway, but a much higher limit would
#: exhaust the database connections, which webhook requests need too.
_MAX_CONCURRENT_CONVERSATIONS = 100

#: The content of the message is not known: decoding it may be what failed.
_FAILED_TURN = TurnSummary(ChatChannel.MESSAGING, ChatInput.OTHER, None, ChatOutcome.FAILED)

_log = structlog.get_logger()


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    address: str
    sent_at: int
    #: Unencrypted content from a version before `sealed`; None in newer rows. In both columns, a
    #: decoding error counts as a failed attempt.
    content: Any
    sealed: bytes | None
    withheld: bool
    attempts: int
    #: True if this process must not handle the message yet: it is reserved for the process that
    #: has the withheld text, or its backoff has not ended.
    reserved: bool


class InboxWorker:
    """Background worker for received messages; any number of workers can run concurrently."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._pending_wakes: set[str] = set()
        self._is_stopped = False
        self._semaphore = asyncio.Semaphore(_MAX_CONCURRENT_CONVERSATIONS)
        services.wake_worker = self.wake

    async def run(self) -> NoReturn:
        """Run until canceled; interrupted turns are retried later."""
        try:
            await run_periodically(self.sweep, every=SWEEP_INTERVAL_SECONDS, name="messenger.inbox")
        finally:
            self._is_stopped = True
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, address: str) -> None:
        if self._is_stopped:
            return
        if address in self._tasks:
            self._pending_wakes.add(address)
            return
        task = asyncio.create_task(self._drain(address))
        self._tasks[address] = task
        task.add_done_callback(lambda _: self._on_task_done(address))

    async def sweep(self) -> None:
        """Wake addresses with a waiting message reserved for this process or no longer reserved.

        Addresses with a running task are skipped: they could fill the query's limit for a long time
        and keep other addresses from being found.
        """
        rows = await self._services.database.fetch(
            """SELECT DISTINCT address FROM messenger.received
               WHERE status = 'waiting'
                 AND (reserved_for = $1 OR reserved_until <= clock_timestamp())
                 AND address <> ALL($3)
               LIMIT $2""",
            self._services.process_id,
            _MAX_ADDRESSES_PER_SWEEP,
            list(self._tasks),
        )
        for row in rows:
            self.wake(row["address"])

    def _on_task_done(self, address: str) -> None:
        del self._tasks[address]
        if address in self._pending_wakes:
            self._pending_wakes.discard(address)
            self.wake(address)

    async def _drain(self, address: str) -> None:
        try:
            async with self._semaphore:
                while await self._handle_next(address):
                    pass
        except Exception as error:
            # The message stays in the inbox, and a later sweep finds it.
            _log.warning("inbox.retry_scheduled", failure=logs.describe_exception(error))

    async def _handle_next(self, address: str) -> bool:
        """Handle the address's oldest message; return False if there is none or it is reserved."""
        services = self._services
        async with conversation_store.acquire(services.database, address, services.clock()) as held:
            message = await self._claim_next(address)
            if message is None or message.reserved:
                return False
            if message.attempts > _MAX_ATTEMPTS:
                await self._mark_failed(message)
                return True
            event = await self._build_event(message, is_late=message.sent_at < held.heard_until)
            turn = await runner.run_turn(
                services, held, event, "webhook", message_id=f"chat:{message.id}"
            )
            async with services.database.transaction() as tx:
                await runner.save_turn(tx, services, held, turn, heard_until=message.sent_at)
                await inbox.complete(tx, message.id, "handled")
        services.withheld_texts.pop(message.id, None)
        services.wake_sender()
        return True

    async def _claim_next(self, address: str) -> InboxMessage | None:
        """Claim the oldest message and count the attempt; return a reserved message unclaimed.

        Counting first limits the attempts for a message that crashes the process.
        """
        row = await self._services.database.fetchrow(
            """WITH oldest AS (
                   SELECT id, NOT (reserved_for = $2 OR reserved_until <= clock_timestamp()
                                   OR NOT withheld AND attempts = 0) AS reserved
                   FROM messenger.received WHERE address = $1 AND status = 'waiting'
                   ORDER BY sent_at, id LIMIT 1)
               UPDATE messenger.received r
               SET attempts = attempts + CASE WHEN reserved THEN 0 ELSE 1 END,
                   -- Backoff in case this attempt fails. A withheld text stays with its process.
                   reserved_for = CASE WHEN reserved OR withheld THEN reserved_for ELSE 0 END,
                   reserved_until = CASE WHEN reserved THEN reserved_until
                       ELSE greatest(CASE WHEN withheld THEN reserved_until END,
                                     clock_timestamp() + $3::interval * (attempts + 1)) END
               FROM oldest WHERE r.id = oldest.id
               RETURNING r.id, address, sent_at, content, sealed, withheld, attempts, reserved""",
            address,
            self._services.process_id,
            _BACKOFF,
        )
        return None if row is None else msgspec.convert(dict(row), InboxMessage)

    async def _build_event(self, message: InboxMessage, *, is_late: bool) -> Event:
        match content := self._decode_content(message):
            case TextContent():
                text = self._services.withheld_texts.get(message.id, content.body)
                return TextMessage(text=text, is_late=is_late)
            case OptionChosen():
                return msgspec.structs.replace(content, is_late=is_late)
            case ImageFile() | InlineImage():
                return await self._load_image(content)
            case FormClosed() | NumberChanged() | UnsupportedMessage():
                return content

    def _decode_content(self, message: InboxMessage) -> Content:
        if message.sealed is not None:
            return inbox.open_content(self._services.vault, message.id, message.sealed)
        content: Content = msgspec.convert(message.content, Content)
        return content

    async def _load_image(self, image: ImageFile | InlineImage) -> Event:
        graph = self._services.graph
        try:
            if isinstance(image, InlineImage):
                return ImageReceived(
                    image=await images.load_inline_image(image.data, image.mimetype)
                )
            if graph is None:
                return ImageRejected(reason="cannot be fetched from the channel")
            return ImageReceived(image=await images.load_channel_image(graph, image))
        except (ImageError, MediaError) as error:
            return ImageRejected(reason=str(error))

    async def _mark_failed(self, message: InboxMessage) -> None:
        _log.error("inbox.attempts_exhausted", received_id=message.id, attempts=message.attempts)
        self._services.withheld_texts.pop(message.id, None)
        async with self._services.database.transaction() as tx:
            await inbox.complete(tx, message.id, "failed")
            person = await people.load_person(tx, message.address)
            await turns.enqueue(tx, self._services, person, _FAILED_TURN)
