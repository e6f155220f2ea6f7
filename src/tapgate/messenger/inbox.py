"""Inbox: messages from the channel, sealed and stored before they are acknowledged.

The inbox is a work queue with the messages of each person in order, and `inbox_worker.py` handles
them. A text that may contain a PIN is withheld: the receiving process keeps it in memory
and never stores it. That process owns the message, and others can lease it only after a while. If
another process handles the message, the conversation asks the person to send the text again.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

import asyncpg
import msgspec

from tapgate.core.vault import Vault
from tapgate.messenger import chat_rate_limits, people
from tapgate.messenger.conversation import engine
from tapgate.messenger.model import Content, NumberChanged, ReceivedMessage, TextContent
from tapgate.messenger.outbox import outbox_messages as outbox
from tapgate.messenger.services import Services
from tapgate.messenger.understanding.secret_detection import may_contain_code, may_contain_pin
from tapgate.runtime.store.work_queue import (
    Job,
    ResultUpdate,
    WorkQueue,
    build_backlog_sql,
    compute_backoff,
)

#: After this time, a killed process's message is due again. It may be shorter than a turn: messages
#: are leased under their conversation's lease, which no other process has at that time.
_LEASE_DURATION = timedelta(seconds=2)
#: Time for which only the receiving process may handle a message with a withheld text.
_WITHHELD_DURATION = timedelta(seconds=15)
_NO_OWNER = 0
_WITHHELD_TTL_SECONDS = 60.0
#: Messages per database transaction; one commit per message would dominate the cost.
_BATCH_SIZE = 100

BACKLOG_SQL = build_backlog_sql(
    "inbox",
    "messenger.received WHERE status = 'waiting'",
    created="received_at",
    due="received_at",
)

_decoder: msgspec.json.Decoder[Content] = msgspec.json.Decoder(Content)


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message leased to this process."""

    id: int
    address: str
    sent_at: int
    sealed: bytes
    attempts: int


QUEUE = WorkQueue(
    "messenger.received",
    ", ".join(InboxMessage.__struct_fields__),
    destination="address",
    pending="waiting",
    due="reserved_until",
    lease=_LEASE_DURATION,
    order="sent_at, id",
    owner="reserved_for",
)
_END = ResultUpdate(QUEUE, "status = result.status, sealed = NULL", {"status": "text"})
#: A withheld text stays with its process, which retries without backoff before the text expires.
_RETRY = ResultUpdate(
    QUEUE, "reserved_until = greatest(reserved_until, result.retry_at)", {"retry_at": "timestamptz"}
)


async def lease_next(services: Services, address: str) -> InboxMessage | None:
    """Lease the person's oldest message; return None if there is none or it is not due.

    The attempt is counted first, which limits the attempts for a message that crashes the process.
    """
    rows = await QUEUE.lease_in_order(
        services.database,
        now=services.clock(),
        limit=1,
        destination=address,
        owner=services.process_id,
    )
    return InboxMessage(**rows[0]) if rows else None


async def schedule_retry(services: Services, message: InboxMessage) -> None:
    retry_at = services.clock() + compute_backoff(message.attempts)
    await _RETRY.record(services.database, [(message, {"retry_at": retry_at})])


async def complete(
    tx: asyncpg.Connection, message: Job, status: Literal["handled", "throttled", "failed"]
) -> None:
    await _END.record(tx, [(message, {"status": status})])


async def store_messages(services: Services, received: Sequence[ReceivedMessage]) -> None:
    """Store the messages durably, skip those already stored, and wake the worker."""
    pending = [_PendingMessage(services.new_id(), message) for message in received]
    # All processes insert in the same order, so concurrent deliveries cannot deadlock.
    pending.sort(key=lambda item: (item.message.address, item.message.message_id))
    addresses = set[str]()
    for start in range(0, len(pending), _BATCH_SIZE):
        addresses |= await _store_batch(services, pending[start : start + _BATCH_SIZE])
    # Wake the worker only after all batches: handling messages would delay the acknowledgment.
    for address in addresses:
        services.woken_addresses.put_nowait(address)
    services.wake_sender()  # rate-limit replies may have been enqueued


class _PendingMessage(NamedTuple):
    id: int
    message: ReceivedMessage
    attempts: int = 0


async def _store_batch(services: Services, pending: Sequence[_PendingMessage]) -> set[str]:
    """Store one batch and return the addresses with messages to handle.

    A message over the rate limit is stored as throttled, so a redelivery of it is not handled
    either.
    """
    accepted = dict[int, str]()
    for item in pending:
        _withhold(services, item.id, item.message.content)
    try:
        async with services.database.transaction() as tx:
            stored = {
                item.id: item.message.address
                for item in pending
                if await _insert_unless_throttled(tx, services, item)
            }
        accepted = stored
    finally:
        for item in pending:
            if item.id not in accepted:
                services.withheld_texts.pop(item.id, None)
    return set(accepted.values())


def _withhold(services: Services, row_id: int, content: Content) -> None:
    """Keep a text that may contain a PIN or code in memory; it must not be stored."""
    text = content.body if isinstance(content, TextContent) else None
    if text is not None and (may_contain_pin(text) or may_contain_code(text)):
        services.withheld_texts[row_id] = text
        # Another process may handle the message, and then nothing else removes the text here.
        asyncio.get_running_loop().call_later(
            _WITHHELD_TTL_SECONDS, services.withheld_texts.pop, row_id, None
        )


async def _insert_unless_throttled(
    tx: asyncpg.Connection, services: Services, item: _PendingMessage
) -> bool:
    if not await _insert(tx, services, item):
        return False
    # A number change comes from the channel and is exempt from the limit. Otherwise, a sender could
    # flood the inbox to suppress it and remain trusted after the number change.
    return isinstance(item.message.content, NumberChanged) or await _is_within_rate_limit(
        tx, services, item
    )


async def _insert(tx: asyncpg.Connection, services: Services, item: _PendingMessage) -> bool:
    message, now = item.message, services.clock()
    is_withheld = item.id in services.withheld_texts
    content = TextContent(body=None) if is_withheld else message.content
    is_new = await tx.fetchval(
        """INSERT INTO messenger.received
               (id, message_id, address, sent_at, sealed, withheld, status,
                reserved_for, reserved_until, received_at)
           VALUES ($1, $2, $3, $4, $5, $6, 'waiting', $7, $8, $9)
           ON CONFLICT (message_id) DO NOTHING RETURNING true""",
        item.id,
        message.message_id,
        message.address,
        message.sent_at,
        _seal_content(services.vault, item.id, content),
        is_withheld,
        services.process_id if is_withheld else _NO_OWNER,
        now + _WITHHELD_DURATION if is_withheld else now,
        now,
    )
    return bool(is_new)


async def _is_within_rate_limit(
    tx: asyncpg.Connection, services: Services, item: _PendingMessage
) -> bool:
    address, now = item.message.address, services.clock()
    wait = await chat_rate_limits.acquire(
        tx, address, limit=services.settings.messenger_rate, now=now
    )
    if wait is None:
        return True
    await complete(tx, item, "throttled")
    if await chat_rate_limits.mark_notified(tx, address):
        person = await people.load_person(tx, address)
        await outbox.enqueue(tx, services, address, engine.build_rate_limit_reply(person, wait))
    return False


def _seal_content(vault: Vault, row_id: int, content: Content) -> bytes:
    return vault.seal(msgspec.json.encode(content), get_sealing_context(row_id))


def open_content(vault: Vault, row_id: int, sealed: bytes) -> Content:
    return _decoder.decode(vault.open(sealed, get_sealing_context(row_id)))


def get_sealing_context(row_id: int) -> bytes:
    return b"received %d" % row_id
