"""Inbox: messages from the channel, sealed and stored before they are acknowledged.

`inbox_worker.py` handles the stored messages. A text that may contain a PIN is withheld: it is kept
in the memory of the receiving process and never stored, and the message is reserved for that
process for a limited time. If another process handles the message, the conversation asks the person
to send the text again.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import asyncpg
import msgspec

from tapgate.core.vault import Vault
from tapgate.messenger import people, rate_limits
from tapgate.messenger.conversation import engine
from tapgate.messenger.model import Content, NumberChanged, ReceivedMessage, TextContent
from tapgate.messenger.outbox import messages as outbox
from tapgate.messenger.services import Services
from tapgate.messenger.understanding.secret_detection import may_contain_code, may_contain_pin
from tapgate.runtime.store.work_queue import build_backlog_sql

#: Time for which the sweeps of other processes skip a new message.
_LEASE_DURATION = timedelta(seconds=2)
#: Time for which only the receiving process may handle a message with a withheld text.
_WITHHELD_LEASE_DURATION = timedelta(seconds=15)
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
        services.wake_worker(address)
    services.wake_sender()  # rate-limit replies may have been enqueued


class _PendingMessage(NamedTuple):
    row_id: int
    message: ReceivedMessage


async def _store_batch(services: Services, pending: Sequence[_PendingMessage]) -> set[str]:
    """Store one batch and return the addresses with messages to handle.

    A message over the rate limit is stored as throttled, so a redelivery of it is not handled
    either.
    """
    accepted = dict[int, str]()
    for row_id, message in pending:
        _withhold(services, row_id, message.content)
    try:
        async with services.database.transaction() as tx:
            stored = {
                row_id: message.address
                for row_id, message in pending
                if await _insert_unless_throttled(tx, services, row_id, message)
            }
        accepted = stored
    finally:
        for row_id, _ in pending:
            if row_id not in accepted:
                services.withheld_texts.pop(row_id, None)
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
    tx: asyncpg.Connection, services: Services, row_id: int, message: ReceivedMessage
) -> bool:
    is_withheld = row_id in services.withheld_texts
    if not await _insert(tx, services, row_id, message, is_withheld=is_withheld):
        return False
    # A number change comes from the channel and is exempt from the limit. Otherwise, a sender could
    # flood the inbox to suppress it and remain trusted after the number change.
    return isinstance(message.content, NumberChanged) or await _is_within_rate_limit(
        tx, services, row_id, message.address
    )


async def _insert(
    tx: asyncpg.Connection,
    services: Services,
    row_id: int,
    message: ReceivedMessage,
    *,
    is_withheld: bool,
) -> bool:
    content = TextContent(body=None) if is_withheld else message.content
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
        _seal_content(services.vault, row_id, content),
        is_withheld,
        services.process_id,
        _WITHHELD_LEASE_DURATION if is_withheld else _LEASE_DURATION,
        services.clock(),
    )
    return bool(is_new)


async def _is_within_rate_limit(
    tx: asyncpg.Connection, services: Services, row_id: int, address: str
) -> bool:
    now = services.clock()
    wait = await rate_limits.acquire(tx, address, limit=services.settings.messenger_rate, now=now)
    if wait is None:
        return True
    await complete(tx, row_id, "throttled")
    if await rate_limits.mark_notified(tx, address):
        person = await people.load_person(tx, address)
        await outbox.enqueue(tx, services, address, engine.build_rate_limit_reply(person, wait))
    return False


def _seal_content(vault: Vault, row_id: int, content: Content) -> bytes:
    return vault.seal(msgspec.json.encode(content), get_sealing_context(row_id))


def open_content(vault: Vault, row_id: int, sealed: bytes) -> Content:
    return _decoder.decode(vault.open(sealed, get_sealing_context(row_id)))


def get_sealing_context(row_id: int) -> bytes:
    return b"received %d" % row_id


async def complete(tx: asyncpg.Connection, row_id: int, status: str) -> None:
    await tx.execute(
        "UPDATE messenger.received SET status = $2, content = NULL, sealed = NULL WHERE id = $1",
        row_id,
        status,
    )
