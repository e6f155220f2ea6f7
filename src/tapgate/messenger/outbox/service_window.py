"""Service window: the 24 hours after a person's last message, in which plain text can be sent."""

from datetime import datetime, timedelta
from typing import Final

from tapgate.messenger.conversation import texts
from tapgate.messenger.model import OutgoingMessage, Template, TextReply
from tapgate.store.database import Database

#: Provider's error code for plain text outside the window.
WINDOW_CLOSED_CODE: Final = "131047"

#: Slightly shorter than the provider's window, for the time that sending takes.
_WINDOW: Final = timedelta(hours=24) - timedelta(minutes=1)
_TEXT_TEMPLATE: Final = "support_reply"


async def build_text_form(
    database: Database, address: str, message: OutgoingMessage, now: datetime
) -> TextReply | None:
    """Return the plain text to send instead of a template, or None.

    Only a support reply has one, while the window is open: it is part of a conversation.
    """
    if not (
        isinstance(message, Template)
        and message.name == _TEXT_TEMPLATE
        and len(message.parameters) == 1
    ):
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
    text = texts.translate(row["language"] or "en", "support.reply", text=message.parameters[0])
    return TextReply(text=text)
