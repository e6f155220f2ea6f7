"""People in a conversation, and the context of a turn."""

from datetime import datetime
from typing import Literal

import msgspec

from tapgate.messenger.model.common import Language


class Subscriber(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriber in a conversation; stored with the conversation's state."""

    id: str
    first_name: str
    status: str
    kyc_level: int
    kyc_status: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Card offered in a conversation; stored with the conversation's state."""

    serial: str
    type: str | None
    status: str
    holder_name: str | None


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """Saved payee of a person."""

    name: str  # masked by the gateway
    card_serial: str


class Person(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    #: None if the number is hidden and not verified yet.
    phone: str | None
    language: Language | None = None
    #: False after a number change, until the person enters the correct PIN, verifies a phone number
    #: or registers. While it is False, wallet data is hidden.
    trusted: bool = True
    recipients: tuple[Recipient, ...] = ()


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of an engine pass that do not come from the person, the conversation or the event."""

    now: datetime
    #: New in each engine pass, and used if the pass starts an operation. The ID of a transfer is
    #: its `request_id` at the gateway.
    new_operation_id: str
    currency: str
    #: How the user may enter a PIN: in the channel's form, as text, or not at all.
    pin_entry_mode: Literal["form", "text", "none"]
    #: Whether the channel can send documents. If False, the reply contains a link.
    can_send_documents: bool
