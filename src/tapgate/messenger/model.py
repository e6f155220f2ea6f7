"""Data model shared by all parts of the messenger. No I/O.

A delivery is parsed into `ReceivedMessage` and `DeliveryStatus` objects. The conversation engine
takes an `Event` and returns the updated person and conversation, replies and at most one
`GatewayRequest`, whose outcome is the next event.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from tapgate.core.images import EncodedImage
from tapgate_client.schemas.provider_warnings import ProviderReport

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "fr")
#: Commands that a text can name. All except yes, no and cancel have a script.
Command = Literal[
    "menu",
    "help",
    "balance",
    "send",
    "history",
    "statement",
    "cards",
    "link",
    "block",
    "unblock",
    "change_pin",
    "reset_pin",
    "kyc",
    "limits",
    "add_money",
    "withdraw",
    "nearest_agent",
    "fees",
    "declined",
    "not_arrived",
    "wrong_recipient",
    "return_money",
    "keep_money",
    "dispute",
    "proof",
    "not_me",
    "opt_out",
    "opt_in",
    "pin_safety",
    "change_number",
    "airtime",
    "bills",
    "loans",
    "contact",
    "language",
    "person",
    "register",
    "confirm_cash_out",
    "agent_menu",
    "own_wallet",
    "float",
    "cash_in",
    "cash_out",
    "commission",
    "request_float",
    "float_requests",
    "yes",
    "no",
    "cancel",
]
COMMANDS: tuple[Command, ...] = get_args(Command)

#: Inactivity after which the conversation expires and the command in progress is discarded.
CONVERSATION_TIMEOUT_SECONDS = 5 * 60


class TaggedStruct(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Struct whose JSON has a tag for its type."""


class SecretStruct(msgspec.Struct, frozen=True, kw_only=True):
    """Struct that may hold a PIN or one-time code. Never stored; its repr hides all fields."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


# People, and a turn's context


class Subscriber(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriber in a conversation; stored with the conversation's state."""

    id: str
    first_name: str
    status: str
    kyc_level: int
    kyc_status: str


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Agent with the person's phone number."""

    id: str
    name: str
    status: str = "active"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Card offered in a conversation; stored with the conversation's state."""

    serial: str
    type: str | None
    status: str
    holder_name: str | None


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """Payee that a person has saved."""

    name: str  # masked by the gateway
    #: Card serial, or phone number, which starts with a plus sign.
    payee: str = msgspec.field(name="card_serial")


class Person(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    #: None if the number is hidden and not verified yet.
    phone: str | None
    language: Language | None = None
    #: False after a number change, until the person enters the correct PIN, verifies a phone number
    #: or registers. While it is False, wallet data is hidden.
    trusted: bool = True
    recipients: tuple[Recipient, ...] = ()
    #: Set while the person may have an unclosed support request: "told" once the person knows that
    #: further texts are passed on to it.
    support: Literal["open", "told"] | None = None
    #: The menu of a person with an agent's phone: an agent's or a customer's menu.
    role: Literal["agent", "wallet"] | None = None


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """Engine pass inputs that do not come from the person, the conversation or the event."""

    now: datetime
    #: New in each engine pass, and used if the pass starts an operation. A transfer's ID is
    #: its `request_id` at the gateway.
    new_operation_id: str
    currency: str
    #: How the user may enter a PIN: in the channel's form, as text, or not at all.
    pin_entry_mode: Literal["form", "text", "none"]
    #: Returns a keyed digest in letters, by which two entries of a new PIN are compared.
    digest: Callable[[str], str]
    #: Whether the channel can send documents. If False, the reply contains a link.
    can_send_documents: bool
    #: Page that checks an inclusion proof in the browser.
    verify_page_url: str
    #: Support hours and contact. The branding's contact has precedence.
    support_hours: str | None = None
    support_contact: str | None = None


# Events that the conversation engine processes


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a free-text message asks for: a command, a few candidates, or unknown."""

    command: Command | None = None
    candidates: tuple[Command, ...] = ()
    #: Whether the text is a keyword for the command. Keywords take precedence over questions.
    is_exact: bool = False
    #: Language in which the words were recognized.
    language: Language | None = None


class TextMessage(SecretStruct, frozen=True, kw_only=True):
    """Free text, which may be a PIN.

    `text` is None if it was withheld and this process does not have it (see `inbox.py`). `is_late`
    is True if the message was sent before another message that was already processed.
    """

    text: str | None
    intent: Intent = Intent()
    is_late: bool = False


class OptionChosen(TaggedStruct, frozen=True, kw_only=True, tag="Tap", omit_defaults=True):
    """Tap on a list row or a button."""

    id: str
    is_late: bool = False


class FormSubmitted(SecretStruct, frozen=True, kw_only=True):
    """Submitted PIN form."""

    operation: str
    pin: str | None = None
    new_pin: str | None = None
    code: str | None = None


class SharedContact(msgspec.Struct, frozen=True, kw_only=True):
    """Contact with its phone numbers as the channel reports them."""

    name: str
    phones: tuple[str, ...]


class ContactsShared(TaggedStruct, frozen=True, kw_only=True):
    """Contacts from the person's address book."""

    contacts: tuple[SharedContact, ...]


class PlaceShared(TaggedStruct, frozen=True, kw_only=True):
    """Position on the map. A named place may have an address."""

    latitude: float
    longitude: float
    address: str | None = None


class FormClosed(TaggedStruct, frozen=True, kw_only=True, tag="FlowReply"):
    """Notice that a form was closed. Its input arrives separately, at the data endpoint."""


class ImageReceived(msgspec.Struct, frozen=True, kw_only=True):
    """Image that was validated and re-encoded.

    `kept_count` is the number of the person's earlier images that wait for their document type.
    """

    image: EncodedImage
    kept_count: int = 0


class ImageRejected(msgspec.Struct, frozen=True, kw_only=True):
    """Image that was rejected. `reason` completes an English sentence that starts "The picture"."""

    reason: str


class NumberChanged(TaggedStruct, frozen=True, kw_only=True, tag="ChangedNumber"):
    """Notice that the user's number changed. The old number may now belong to another person."""


class UnsupportedMessage(TaggedStruct, frozen=True, kw_only=True, tag="Other"):
    """Message with an unsupported type, such as a sticker, a location or a voice message."""

    kind: str


class RequestSucceeded(msgspec.Struct, frozen=True, kw_only=True):
    """Successful gateway request. `result` is what `GatewayRequest.perform` returned."""

    result: Any


class RequestRejected(msgspec.Struct, frozen=True, kw_only=True):
    """Gateway request that was declined or rejected."""

    code: str
    message: str | None = None
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)


class GatewayUnreachable(msgspec.Struct, frozen=True, kw_only=True):
    """No usable response from the gateway. If `uncertain`, the request may have been executed."""

    uncertain: bool


#: Gateway request outcome.
RequestOutcome = RequestSucceeded | RequestRejected | GatewayUnreachable

Event = (
    TextMessage
    | OptionChosen
    | FormSubmitted
    | FormClosed
    | ImageReceived
    | ImageRejected
    | ContactsShared
    | PlaceShared
    | NumberChanged
    | UnsupportedMessage
    | RequestOutcome
)


# Messages and delivery statuses received from the channel


class TextContent(TaggedStruct, frozen=True, kw_only=True, tag="Words"):
    """Text message. `body` is None if the text may contain a PIN and was therefore withheld."""

    body: str | None


class ImageFile(TaggedStruct, frozen=True, kw_only=True):
    """Image that must be downloaded from the channel's provider."""

    media_id: str
    mime_type: str | None
    sha256: str | None


class InlineImage(TaggedStruct, frozen=True, kw_only=True, tag="PictureInside"):
    """Image contained in its message as a data URI."""

    data: str
    mimetype: str | None = None

    def __repr__(self) -> str:
        return "InlineImage(...)"


#: Received message content. Stored as JSON, so the tags must not change.
Content = (
    TextContent
    | OptionChosen
    | FormClosed
    | ImageFile
    | InlineImage
    | ContactsShared
    | PlaceShared
    | NumberChanged
    | UnsupportedMessage
)


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message from a user, or the channel's notice about a user."""

    message_id: str
    address: str
    user_id: str | None
    sent_at: int  # Unix seconds by the provider's clock; 0 if missing
    content: Content


class DeliveryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Provider's status report on a sent message."""

    channel_message_id: str
    status: Literal["sent", "delivered", "read", "failed"]
    #: Provider's error code, if the message failed.
    error_code: str | None = None


class Delivery(NamedTuple):
    """Contents of one webhook request from the provider."""

    messages: list[ReceivedMessage]
    statuses: list[DeliveryStatus]
    provider_reports: list[ProviderReport]


def build_address(phone: str | None, user_id: str | None) -> str | None:
    """Return the phone number as the address, else the user ID with a prefix, else None."""
    if phone is not None:
        return phone
    return None if user_id is None else f"user:{user_id}"


# Replies and other outgoing messages


class TextReply(TaggedStruct, frozen=True, kw_only=True, tag="Say"):
    text: str


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """Option that the user can tap. The channel sends `id` back when it is tapped."""

    id: str
    title: str
    description: str = ""


#: Channel limits. More than `MAX_BUTTONS` options are sent as a list, whose titles can be
#: longer. A list page with the "more" option has `OPTIONS_PER_PAGE` other options.
MAX_BUTTONS = 3
OPTIONS_PER_PAGE = 9
MAX_BUTTON_TITLE_LENGTH = 20
MAX_ROW_TITLE_LENGTH = 24
MAX_ROW_DESCRIPTION_LENGTH = 72
MAX_INTERACTIVE_BODY_LENGTH = 1024
MAX_TEXT_LENGTH = 4096


class OptionList(TaggedStruct, frozen=True, kw_only=True, tag="Offer"):
    """Options to choose from.

    If not all options fit, the list begins at `start`, and `more` is the option that shows the next
    ones. `button` labels the button that opens the list.
    """

    text: str
    options: tuple[Option, ...]
    button: str
    more: Option
    start: int = 0


FormKind = Literal["pin", "new_pin", "change_pin", "reset_pin"]


class PinPrompt(TaggedStruct, frozen=True, kw_only=True):
    text: str
    button: str
    form: FormKind


class PinRequest(PinPrompt, frozen=True, kw_only=True):
    """Request to enter a PIN in the channel's form. The PIN authorizes `operation`."""

    operation: str


class PinForm(PinPrompt, frozen=True, kw_only=True):
    """`PinRequest` ready to send. `token` identifies the form when it is submitted."""

    token: str


class DocumentReply(TaggedStruct, frozen=True, kw_only=True, tag="File"):
    """Document that the channel downloads from `link`."""

    link: str
    filename: str
    caption: str


Reply = TextReply | OptionList | PinRequest | DocumentReply


class Template(TaggedStruct, frozen=True, kw_only=True, omit_defaults=True):
    """Template message, rendered by the provider from `name`, `language` and `parameters`.

    `button` names its buttons (`core.message_templates.get_buttons`).
    """

    name: str
    language: str
    parameters: tuple[str, ...]
    button: str | None = None


#: Message types that the outbox can send.
OutgoingMessage = TextReply | OptionList | PinForm | DocumentReply | Template
