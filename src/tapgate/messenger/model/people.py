"""Who is spoken to, where, and what is remembered of them."""

from datetime import datetime
from typing import Literal

import msgspec

from tapgate.messenger.model.common import Language, TaggedStruct


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whom a person has sent money to and wants to find again."""

    name: str  # masked, as the gateway shows it
    card_serial: str


class Person(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    #: None: does not show a number and has not proved one yet.
    phone: str | None
    language: Language | None = None
    #: False after the number changed hands: nothing is shown before the PIN was right once.
    trusted: bool = True
    recipients: tuple[Recipient, ...] = ()


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when a step of the conversation takes place."""

    now: datetime
    #: A new id each time; becomes a `request_id` of the gateway when money is to move.
    new_operation_id: str
    currency: str
    #: How a PIN may be given here: in a form of the channel, as text, or not at all.
    pin_entry_mode: Literal["form", "text", "none"]
    #: Whether a document can be sent, or only a link to it.
    can_send_documents: bool


class SetLanguage(TaggedStruct, frozen=True, kw_only=True):
    language: Language


class SetTrusted(TaggedStruct, frozen=True, kw_only=True):
    trusted: bool


class SetVerifiedPhone(TaggedStruct, frozen=True, kw_only=True):
    """The person at this address has the phone with this number."""

    phone: str


class SaveRecipient(TaggedStruct, frozen=True, kw_only=True):
    recipient: Recipient


class RemoveRecipient(TaggedStruct, frozen=True, kw_only=True):
    card_serial: str


Effect = SetLanguage | SetTrusted | SetVerifiedPhone | SaveRecipient | RemoveRecipient
