"""Outbox queries, with which tests, demos and the CLI read messages such as one-time codes."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from tapgate import ids
from tapgate.clock import format_rfc3339
from tapgate.messenger.channel.plain_text import render_plain_text
from tapgate.messenger.channel.render import RenderError, render_payloads
from tapgate.messenger.model import OutgoingMessage, Template
from tapgate.messenger.outbox import statuses
from tapgate.messenger.outbox.sealing import UnreadableError, open_message
from tapgate.store.database import Database
from tapgate.vault import Vault


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
    created_at: Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


async def list_recent(
    database: Database, vault: Vault, address: str, limit: int = 50
) -> list[OutboxMessage]:
    """Return the latest messages to an address, newest first."""
    rows = await database.fetch(
        f"""SELECT job.id, job.content, job.created_at, {statuses.OVERALL_STATUS_SQL} AS status
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
