"""Which messages go out as SMS, and when.

A notice, a one-time code or a question goes out as SMS if its chat message failed or was not
delivered in time, and immediately if its receiver has never used the chat. Until then, `sms_at` is
the time for it, and the outbox keeps the content. The row then leaves the chat queue: its status
becomes `sms_waiting`, for which a chat sender that is still busy with it records no result.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import asyncpg

from tapgate.core.message_templates import TEMPLATES
from tapgate.messenger.model import OutgoingMessage, Template
from tapgate.messenger.services import Services
from tapgate.runtime.store.database import Database

CHAT: Final = "chat"
SMS: Final = "sms"
#: Status of messages that wait for the SMS sender.
SMS_WAITING: Final = "sms_waiting"
_BATCH_SIZE: Final = 500


class Route(NamedTuple):
    """How a new message goes out first, and when it goes out as SMS otherwise."""

    channel: str
    status: str
    sms_at: datetime | None = None


_CHAT_ONLY: Final = Route(CHAT, "waiting")


async def choose_route(
    tx: asyncpg.Connection, services: Services, address: str, message: OutgoingMessage
) -> Route:
    if services.sms is None or not address.startswith("+") or not _can_be_sms(message):
        return _CHAT_ONLY
    if not await _has_used_chat(tx, address):
        return Route(SMS, SMS_WAITING)
    delay = timedelta(seconds=services.settings.sms_after)
    return Route(CHAT, "waiting", services.clock() + delay)


def _can_be_sms(message: OutgoingMessage) -> bool:
    template = TEMPLATES.get(message.name) if isinstance(message, Template) else None
    return template is not None and template.can_be_sms


async def _has_used_chat(tx: asyncpg.Connection, address: str) -> bool:
    has_used: bool = await tx.fetchval(
        """SELECT EXISTS (SELECT FROM messenger.conversations WHERE address = $1)
               OR EXISTS (SELECT FROM messenger.people WHERE address = $1)""",
        address,
    )
    return has_used


async def move_due(database: Database, now: datetime) -> int:
    """Move due messages to the SMS queue, and return their number."""
    rows = await database.fetch(
        """UPDATE messenger.outbox
           SET status = $2, channel = $3, sms_at = NULL, attempts = 0, problem = NULL,
               channel_message_id = NULL, next_attempt_at = $1
           WHERE id = ANY (ARRAY(
               SELECT id FROM messenger.outbox WHERE sms_at <= $1
               ORDER BY sms_at LIMIT $4 FOR UPDATE SKIP LOCKED))
           RETURNING id""",
        now,
        SMS_WAITING,
        SMS,
        _BATCH_SIZE,
    )
    return len(rows)
