"""Service window: the 24 hours after a person's last message, in which plain text can be sent."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from tapgate.messenger import texts
from tapgate.messenger.model import LANGUAGES, OutgoingMessage, Template, TextReply
from tapgate.runtime.store.database import Database

#: Provider's error code for plain text outside the window.
WINDOW_CLOSED_CODE: Final = "131047"

#: Slightly shorter than the provider's window, for the time that sending takes.
_WINDOW: Final = timedelta(hours=24) - timedelta(minutes=1)
#: Templates that are part of a conversation, with the key of their plain text.
_TEXT_KEYS: Final = {"support_reply": "support.reply", "support_closed": "support.closed"}


async def build_text_form(
    database: Database, address: str, message: OutgoingMessage, now: datetime
) -> TextReply | None:
    """Return the plain text to send instead of a template, or None.

    Only messages of support have one, while the window is open.
    """
    if not (isinstance(message, Template) and message.name in _TEXT_KEYS):
        return None
    row = await database.fetchrow(
        """SELECT p.language FROM messenger.conversations c
           LEFT JOIN messenger.people p ON p.address = c.address
           WHERE c.address = $1 AND c.heard_until >= $2""",
        address,
        int((now - _WINDOW).timestamp()),
    )
    if row is None:
        return None
    # Without a choice in the chat, the template's language applies, which may be a code like en_US.
    preferred = row["language"] or message.language
    language = next((name for name in LANGUAGES if name == preferred), LANGUAGES[0])
    text = "".join(message.parameters[:1])
    return TextReply(text=texts.translate(language, _TEXT_KEYS[message.name], text=text))


async def requeue_as_template(
    tx: asyncpg.Connection, outbox_ids: Collection[int], now: datetime
) -> set[int]:
    """Requeue messages whose text the provider accepted but could not deliver in a closed window.

    They are sent once more, as the template, and a further failure is final. The status of the
    text no longer counts. Returns the IDs of these messages.
    """
    rows = await tx.fetch(
        """WITH requeued AS (
               UPDATE messenger.outbox o
               SET status = 'waiting', text_form = 'failed', channel_message_id = NULL,
                   next_attempt_at = $2, report_at = NULL
               WHERE o.id = ANY ($1::bigint[]) AND o.status = 'sent' AND o.text_form = 'sent'
                 AND EXISTS (SELECT FROM messenger.statuses s WHERE s.outbox_id = o.id
                             AND s.status = 'failed' AND s.error_code = $3)
               RETURNING o.id)
           UPDATE messenger.statuses s SET outbox_id = NULL
           FROM requeued WHERE s.outbox_id = requeued.id RETURNING requeued.id""",
        list(outbox_ids),
        now,
        WINDOW_CLOSED_CODE,
    )
    return {row["id"] for row in rows}


async def erase_delivered_texts(tx: asyncpg.Connection, outbox_ids: Collection[int]) -> None:
    """Erase the content after a text was delivered: its template is no longer needed."""
    await tx.execute(
        """UPDATE messenger.outbox o SET content = NULL
           WHERE o.id = ANY ($1::bigint[]) AND o.text_form = 'sent' AND o.status = 'sent'""",
        list(outbox_ids),
    )
