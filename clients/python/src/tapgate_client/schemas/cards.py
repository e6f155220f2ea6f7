"""Card request and response bodies."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.card_proofs import CardAuthenticity, CardProof, require_card
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.fields import (
    Amount,
    CardSerial,
    Choice,
    IdRule,
    OneTimeCode,
    PersonName,
    Pin,
    Reference,
    SearchText,
    Text,
)
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.values import (
    CurrencyCode,
    Example,
    HolderName,
    Id,
    Money,
    Serial,
    Time,
)


class CardStatus(StrEnum):
    """Card status. `EXPIRED` is not stored: it is derived from `expires_at`."""

    UNASSIGNED = "UNASSIGNED"
    ACTIVE = "ACTIVE"
    BLOCKED = "BLOCKED"
    LOST = "LOST"
    EXPIRED = "EXPIRED"


class CardType(StrEnum):
    PARENT = "PARENT"
    CHILD = "CHILD"


class CardBlockReason(StrEnum):
    LOST = "lost"
    STOLEN = "stolen"
    DAMAGED = "damaged"
    FRAUD = "fraud"
    CUSTOMER_REQUEST = "customer_request"
    COMPLIANCE = "compliance"


class CardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Card as returned by the API. All fields are present; those without a value are null."""

    EXAMPLES: ClassVar = dict.fromkeys(("daily_limit", "expires_at", "parent_subscriber_id"))

    serial: Serial
    mac_address: Annotated[str, Example("04:A2:24:5B:6C:80:90")] | None
    type: CardType | None
    status: Annotated[CardStatus, Example("ACTIVE")]
    status_reason: str | None
    subscriber_id: Id | None
    holder_name: HolderName | None
    parent_subscriber_id: Id | None
    child_relationship: Annotated[str, Example("son")] | None
    daily_limit: Money | None
    spent_today: str | None
    currency: CurrencyCode
    authenticity: Annotated[CardAuthenticity, Example("sun")]
    keyset_id: Id | None
    last_counter: Annotated[int, Example(61)] | None
    expires_at: Time | None
    linked_at: Time | None
    created_at: Time
    updated_at: Time


class DisclosedCard(msgspec.Struct, frozen=True, kw_only=True):
    """Card with the fields that the caller may see.

    If the card's subscriber is restricted and hidden from the caller, only `serial`, `status`,
    `status_reason`, `subscriber_id` and `restricted` (true) are present.
    """

    EXAMPLES: ClassVar = CardRecord.EXAMPLES

    serial: Serial
    mac_address: Annotated[str, Example("04:A2:24:5B:6C:80:90")] | msgspec.UnsetType | None = (
        msgspec.UNSET
    )
    type: CardType | msgspec.UnsetType | None = msgspec.UNSET
    status: Annotated[CardStatus, Example("LOST")]
    status_reason: Annotated[str, Example("lost")] | None
    subscriber_id: Id | None
    restricted: bool | msgspec.UnsetType = msgspec.UNSET
    holder_name: HolderName | msgspec.UnsetType | None = msgspec.UNSET
    parent_subscriber_id: Id | msgspec.UnsetType | None = msgspec.UNSET
    child_relationship: Annotated[str, Example("son")] | msgspec.UnsetType | None = msgspec.UNSET
    daily_limit: Money | msgspec.UnsetType | None = msgspec.UNSET
    spent_today: str | msgspec.UnsetType | None = msgspec.UNSET
    currency: CurrencyCode | msgspec.UnsetType = msgspec.UNSET
    authenticity: Annotated[CardAuthenticity, Example("sun")] | msgspec.UnsetType = msgspec.UNSET
    keyset_id: Id | msgspec.UnsetType | None = msgspec.UNSET
    last_counter: Annotated[int, Example(61)] | msgspec.UnsetType | None = msgspec.UNSET
    expires_at: Time | msgspec.UnsetType | None = msgspec.UNSET
    linked_at: Time | msgspec.UnsetType | None = msgspec.UNSET
    created_at: Time | msgspec.UnsetType = msgspec.UNSET
    updated_at: Time | msgspec.UnsetType = msgspec.UNSET


class CardLink(msgspec.Struct, kw_only=True):
    """Card to link. `card_serial` may be absent if there is a `card_proof`."""

    subscriber_id: Reference
    card_serial: CardSerial | None = None
    card_proof: CardProof | None = None
    pin: Pin

    OMITTED_IN_EXAMPLES: ClassVar = ("card_proof",)

    def __post_init__(self) -> None:
        require_card(self.card_serial, self.card_proof)


class NewChildCard(msgspec.Struct, kw_only=True):
    """Child card to create. `card_serial` may be absent if there is a `card_proof`."""

    parent_subscriber_id: Reference
    card_serial: CardSerial | None = None
    card_proof: CardProof | None = None
    parent_pin: Pin
    child_pin: Pin
    daily_limit: Amount
    child_name: PersonName
    child_relationship: Annotated[Text, Example("son")] | None = None

    OMITTED_IN_EXAMPLES: ClassVar = ("card_proof",)

    def __post_init__(self) -> None:
        require_card(self.card_serial, self.card_proof)


class ChildCardUpdate(msgspec.Struct, kw_only=True):
    """Child card fields to change. Omitted fields keep their values."""

    daily_limit: Amount | None = None
    child_name: PersonName | None = None
    child_relationship: Annotated[Text, Example("son")] | None = None


class CardFilters(PageQuery, kw_only=True):
    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None
    status: CardStatus | None = None
    type: CardType | None = None
    search: SearchText | None = None


class CardBlock(msgspec.Struct, kw_only=True):
    reason: CardBlockReason


class CardReplacement(msgspec.Struct, kw_only=True):
    """Why a card is replaced. It is blocked permanently."""

    reason: Annotated[
        CardBlockReason,
        Choice(
            CardBlockReason.LOST,
            CardBlockReason.STOLEN,
            CardBlockReason.DAMAGED,
            name="CardReplacementReason",
        ),
    ]


class CardReplacementConfirmation(msgspec.Struct, kw_only=True):
    """New card, and the code from the customer's phone."""

    card_serial: CardSerial
    otp: OneTimeCode


class CardResponse(SuccessResponse, kw_only=True):
    card: CardRecord


class DisclosedCardResponse(SuccessResponse, kw_only=True):
    message: str = "Card blocked"
    card: DisclosedCard


class RowError(msgspec.Struct, frozen=True):
    """Rejected row of an upload file, with the reason."""

    row: int
    serial: Serial
    error: str


class UploadCardsResponse(SuccessResponse, kw_only=True):
    """Card upload result. `total` is the sum of created, skipped and failed rows."""

    total: int
    created: int
    skipped: int
    errors: list[RowError]
