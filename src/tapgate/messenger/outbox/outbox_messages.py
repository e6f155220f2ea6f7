"""Messages in the outbox: enqueuing, encryption and listing."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any

import asyncpg
import msgspec
from msgspec.structs import replace

from tapgate.core.vault import Vault, VaultError
from tapgate.messenger.channel.render import RenderError, render_payloads, render_plain_text
from tapgate.messenger.model import OutgoingMessage, Template
from tapgate.messenger.outbox import sms_fallback, statuses
from tapgate.messenger.services import Services
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.messages import MessageChannel

_KEY_PATTERN = re.compile(r"[!-~]{1,200}", re.ASCII)
_decoder: msgspec.json.Decoder[OutgoingMessage] = msgspec.json.Decoder(OutgoingMessage)


class UnreadableError(Exception):
    """The content is missing, sealed with a different secret key, or in an unknown format."""


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message in the outbox. Content fields are absent if the content is erased or unreadable."""

    message_id: str
    to: str
    template: str | None = None
    language: str | None = None
    parameters: tuple[str, ...] | None = None
    text: str | None = None
    #: Request bodies for the channel's provider, including buttons and lists.
    payloads: list[dict[str, Any]] | None = None
    status: Annotated[
        str,
        msgspec.Meta(extra_json_schema={"enum": ["queued", "sent", "delivered", "read", "failed"]}),
    ]
    channel: MessageChannel
    created_at: Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


async def enqueue(
    tx: asyncpg.Connection,
    services: Services,
    address: str,
    message: OutgoingMessage,
    *,
    key: str | None = None,
) -> tuple[int, bool]:
    """Enqueue a message and return its ID and whether it is new.

    The caller wakes the sender after committing `tx`. If the outbox has a message with the same
    idempotency key, nothing is enqueued, and the ID of that message is returned.
    """
    key = None if key is None else _to_storable_key(key)
    route = await sms_fallback.choose_route(tx, services, address, message)
    while True:
        row_id = services.new_id()
        is_new = await tx.fetchval(
            """INSERT INTO messenger.outbox (id, address, content, key, next_attempt_at, created_at,
                                             channel, status, sms_at)
               VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8)
               ON CONFLICT (key) DO NOTHING RETURNING true""",
            row_id,
            address,
            seal_message(services.vault, row_id, message),
            key,
            services.clock(),
            *route,
        )
        if is_new:
            return row_id, True
        # None if the first message was deleted between the two statements.
        first = await tx.fetchval("SELECT id FROM messenger.outbox WHERE key = $1", key)
        if first is not None:
            return first, False


def _to_storable_key(key: str) -> str:
    """Return the key, or its hash if it is too long or not printable ASCII without spaces."""
    if _KEY_PATTERN.fullmatch(key):
        return key
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def seal_message(vault: Vault, row_id: int, message: OutgoingMessage) -> bytes:
    return vault.seal(msgspec.json.encode(message), get_sealing_context(row_id))


def open_message(vault: Vault, row_id: int, content: bytes) -> OutgoingMessage:
    try:
        return _decoder.decode(vault.open(content, get_sealing_context(row_id)))
    except (VaultError, msgspec.DecodeError) as error:
        raise UnreadableError(type(error).__name__) from None


def get_sealing_context(row_id: int) -> bytes:
    """Return the sealing context, which binds the content to its row."""
    return b"outbox %d" % row_id


async def list_recent(
    database: Database, vault: Vault, address: str, limit: int = 50
) -> list[OutboxMessage]:
    """Return the latest messages to an address, newest first, for tests, demos and the CLI."""
    rows = await database.fetch(
        f"""SELECT job.id, job.content, job.created_at, job.channel,
                   {statuses.OVERALL_STATUS_SQL} AS status
            FROM messenger.outbox job WHERE job.address = $1 ORDER BY job.id DESC LIMIT $2""",
        address,
        limit,
    )
    return [
        _to_record(_open_content(vault, row["id"], row["content"]), address, row) for row in rows
    ]


def _open_content(vault: Vault, row_id: int, content: bytes | None) -> OutgoingMessage | None:
    if content is None:
        return None
    try:
        return open_message(vault, row_id, content)
    except UnreadableError:
        return None


def _to_record(
    message: OutgoingMessage | None, address: str, row: Mapping[str, Any]
) -> OutboxMessage:
    outbox_message = OutboxMessage(
        message_id=ids.encode(ids.MESSAGE, row["id"]),
        to=address,
        status=row["status"],
        channel=MessageChannel(row["channel"]),
        created_at=format_rfc3339(row["created_at"]),
    )
    if message is None:
        return outbox_message
    outbox_message = replace(outbox_message, payloads=_render_payloads(message, address))
    if isinstance(message, Template):
        return replace(
            outbox_message,
            template=message.name,
            language=message.language,
            parameters=message.parameters,
        )
    return replace(outbox_message, text=render_plain_text((message,)))


def _render_payloads(message: OutgoingMessage, address: str) -> list[dict[str, Any]] | None:
    """Return the provider payloads, or None for an invalid message, which the sender logs."""
    try:
        return render_payloads(message, address)
    except RenderError:
        return None
