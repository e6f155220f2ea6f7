"""What was sent to somebody, so that tests and demos can read a code."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from tapgate import ids
from tapgate.clock import format_rfc3339
from tapgate.messenger.channel.plain_text import as_text
from tapgate.messenger.channel.render import RenderError, payloads
from tapgate.messenger.model.replies import Outgoing, Template
from tapgate.messenger.outbox import statuses
from tapgate.messenger.outbox.sealed import UnreadableError, opened
from tapgate.store.database import Database
from tapgate.vault import Vault


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as `GET /api/v1/messages/outbox` shows it. Its content may be gone already."""

    message_id: str
    to: str
    template: str | None = None
    language: str | None = None
    parameters: tuple[str, ...] | None = None
    text: str | None = None
    #: As it goes to the channel's provider, with what can be tapped on.
    payloads: list[dict[str, Any]] | None = None
    status: Annotated[
        str,
        msgspec.Meta(extra_json_schema={"enum": ["queued", "sent", "delivered", "read", "failed"]}),
    ]
    created_at: Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


async def recent(
    database: Database, vault: Vault, address: str, limit: int = 50
) -> list[OutboxMessage]:
    """The newest first."""
    rows = await database.fetch(
        f"""SELECT o.id, o.content, o.created_at, {statuses.OVERALL} AS status
            FROM messenger.outbox o WHERE o.address = $1 ORDER BY o.id DESC LIMIT $2""",
        address,
        limit,
    )
    return [_shown(_opened(vault, row["id"], row["content"]), address, row) for row in rows]


def _opened(vault: Vault, row_id: int, content: bytes | None) -> Outgoing | None:
    if content is None:
        return None
    try:
        return opened(vault, row_id, content)
    except UnreadableError:
        return None


def _shown(message: Outgoing | None, address: str, row: Mapping[str, Any]) -> OutboxMessage:
    shown = OutboxMessage(
        message_id=ids.encode(ids.MESSAGE, row["id"]),
        to=address,
        status=row["status"],
        created_at=format_rfc3339(row["created_at"]),
    )
    if message is None:
        return shown
    shown = replace(shown, payloads=_payloads(message, address))
    if isinstance(message, Template):
        return replace(
            shown,
            template=message.name,
            language=message.language,
            parameters=message.parameters,
        )
    return replace(shown, text=as_text((message,)))


def _payloads(message: Outgoing, address: str) -> list[dict[str, Any]] | None:
    """None for what can never be sent; the sender says so in the log."""
    try:
        return payloads(message, address)
    except RenderError:
        return None
