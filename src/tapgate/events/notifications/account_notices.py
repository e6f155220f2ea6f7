"""Notices: messages to the person on whose account someone else may have acted.

A notice is enqueued in the database transaction of the change, whoever made the change and
whatever the receipt settings are. It contains masked names, phone numbers and card serials, and
no PIN or code.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from tapgate.core.message_templates import TEMPLATES, Notice
from tapgate.core.phone_numbers import mask_phone_number
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.runtime.store.transaction import Transaction

_MASK: Final = "••••"

Language = Literal["en", "fr"]

#: What to do about a phone number change, by whether the recipient can object to it.
_PHONE_ACTIONS: Final[Mapping[str, Mapping[bool, str]]] = {
    "en": {
        True: "write NOT ME in the chat within 24 hours, or call support.",
        False: "call support.",
    },
    "fr": {
        True: "écrivez PAS MOI dans le chat sous 24 heures, ou appelez l'assistance.",
        False: "appelez l'assistance.",
    },
}
_PIN_TEXTS: Final[Mapping[str, Mapping[bool, str]]] = {
    "en": {True: "the PIN of card {}", False: "your PIN"},
    "fr": {True: "le code PIN de la carte {}", False: "votre code PIN"},
}


class NoticeRecipient(NamedTuple):
    """Person on whose account someone acted."""

    phone_number: str
    name: str  # masked
    language: str = "en"


async def send_notice(
    tx: Transaction,
    recipient: NoticeRecipient,
    notice: Notice,
    *parameters: str,
    button: str | None = None,
) -> None:
    """Enqueue a notice with the recipient's name and the parameters."""
    await enqueue_message(
        tx,
        tx.vault,
        to=recipient.phone_number,
        template=notice,
        parameters=[recipient.name, *parameters],
        language=recipient.language,
        expires_at=tx.now() + TEMPLATES[notice].lifetime,
        button=button,
    )


async def send_phone_changed(
    tx: Transaction, recipient: NoticeRecipient, old_number: str, *, can_object: bool
) -> None:
    """Tell the old and the new phone number about the change.

    `can_object` is whether the old number may object in the chat.
    """
    numbers = (mask_phone_number(old_number), mask_phone_number(recipient.phone_number))
    for number in (old_number, recipient.phone_number):
        has_veto = can_object and number == old_number
        await send_notice(
            tx,
            recipient._replace(phone_number=number),
            Notice.PHONE_CHANGED,
            *numbers,
            _PHONE_ACTIONS[recipient.language][has_veto],
            button="veto" if has_veto else None,
        )


async def send_pin_changed(
    tx: Transaction, recipient: NoticeRecipient, card: str | None = None
) -> None:
    """Tell a PIN owner, or the parent of the child whose masked card is given."""
    text = _PIN_TEXTS[recipient.language][card is not None].format(card)
    await send_notice(tx, recipient, Notice.PIN_CHANGED, text)


async def get_language(tx: Transaction, phone_number: str) -> str:
    """Return the language of the subscriber who has a phone number; English if nobody has."""
    language: str | None = await tx.fetchval(
        "SELECT language FROM subscribers WHERE phone_number = $1", phone_number
    )
    return language or "en"


def mask_card_serial(serial: str) -> str:
    """Return a card serial with only its last four characters visible: `••••0001`."""
    return _MASK + serial[-4:]
