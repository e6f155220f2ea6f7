"""Worker that handles stored inbox messages, oldest first in each conversation.

Any process that holds the conversation's lease can lease a due message. The message
is marked as handled in the database transaction that saves the turn. Failed attempts are retried
with backoff, and after `_MAX_ATTEMPTS` attempts the message is marked as failed.
"""

import asyncio
from datetime import timedelta
from typing import NoReturn

import msgspec
import structlog

from tapgate.core.images import ImageError
from tapgate.messenger import conversation_store, images, inbox, people, runner, turn_reports
from tapgate.messenger.channel.graph import MediaError
from tapgate.messenger.conversation_store import LeasedConversation
from tapgate.messenger.inbox import InboxMessage
from tapgate.messenger.model import (
    ContactsShared,
    Event,
    FormClosed,
    ImageFile,
    ImageReceived,
    ImageRejected,
    InlineImage,
    NumberChanged,
    OptionChosen,
    PlaceShared,
    TextContent,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.services import Services
from tapgate.messenger.turn_reports import TurnSummary
from tapgate.runtime import logs
from tapgate.runtime.background import run_periodically
from tapgate_client.schemas.chat import ChatChannel, ChatInput, ChatOutcome

SWEEP_INTERVAL_SECONDS = 1.0

_MAX_ATTEMPTS = 5
#: Time for which sweeps skip a due message, which the receiving process is probably handling.
_SWEEP_DELAY = timedelta(seconds=1)
MAX_ADDRESSES_PER_SWEEP = 100
#: Conversations per process. A turn mostly waits for the gateway, but a much higher limit would
#: exhaust the database connections, which webhook requests need too.
MAX_CONCURRENT_CONVERSATIONS = 100

#: The content is not known: decoding it may be what failed.
_FAILED_TURN = TurnSummary(ChatChannel.MESSAGING, ChatInput.OTHER, None, ChatOutcome.FAILED)

_log = structlog.get_logger()


class InboxWorker:
    """Background worker for received messages; any number of workers can run concurrently."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._pending_wakes: set[str] = set()
        self._is_stopped = False
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT_CONVERSATIONS)

    async def run(self) -> NoReturn:
        """Run until canceled; interrupted turns are retried later."""
        waking = asyncio.create_task(self._wake_new())
        try:
            await run_periodically(self.sweep, every=SWEEP_INTERVAL_SECONDS, name="messenger.inbox")
        finally:
            self._is_stopped = True
            tasks = [waking, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wake_new(self) -> NoReturn:
        while True:
            self.wake(await self._services.woken_addresses.get())

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
        """Wake addresses with a due message.

        Addresses with a running task are skipped: they could fill the query's limit for a long time
        and keep other addresses from being found.
        """
        services = self._services
        addresses = await inbox.QUEUE.list_due_destinations(
            services.database,
            now=services.clock() - _SWEEP_DELAY,
            limit=MAX_ADDRESSES_PER_SWEEP,
            excluded=self._tasks,
            owner=services.process_id,
        )
        for address in addresses:
            self.wake(address)

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
        """Handle the person's oldest message; return False if there is none or it is not due."""
        services = self._services
        async with conversation_store.acquire(
            services.database, address, services.clock()
        ) as leased:
            message = await inbox.lease_next(services, address)
            if message is None:
                return False
            if message.attempts > _MAX_ATTEMPTS:
                await self._mark_failed(message)
                return True
            try:
                await self._handle(leased, message)
            except Exception:
                await inbox.schedule_retry(services, message)
                raise
        services.withheld_texts.pop(message.id, None)
        services.wake_sender()
        return True

    async def _handle(self, leased: LeasedConversation, message: InboxMessage) -> None:
        services = self._services
        event = await self._build_event(message, is_late=message.sent_at < leased.heard_until)
        turn = await runner.run_turn(
            services, leased, event, "webhook", message_id=f"chat:{message.id}"
        )
        async with services.database.transaction() as tx:
            await runner.save_turn(tx, services, leased, turn, heard_until=message.sent_at)
            await inbox.complete(tx, message, "handled")

    async def _build_event(self, message: InboxMessage, *, is_late: bool) -> Event:
        content = inbox.open_content(self._services.vault, message.id, message.sealed)
        match content:
            case TextContent():
                text = self._services.withheld_texts.get(message.id, content.body)
                return TextMessage(text=text, is_late=is_late)
            case OptionChosen():
                return msgspec.structs.replace(content, is_late=is_late)
            case ImageFile() | InlineImage():
                return await self._load_image(content)
            case (
                FormClosed()
                | ContactsShared()
                | PlaceShared()
                | NumberChanged()
                | UnsupportedMessage()
            ):
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
            await inbox.complete(tx, message, "failed")
            person = await people.load_person(tx, message.address)
            await turn_reports.enqueue(tx, self._services, person, _FAILED_TURN)
