"""Request and response bodies for subscribers, their messages and their KYC documents."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

import msgspec

from tapgate_client.schemas.common import SuccessResponse, build_missing_field_error
from tapgate_client.schemas.fields import (
    AddressText,
    BirthDate,
    Email,
    IntegerRange,
    InvalidValueError,
    NewPin,
    OneTimeCode,
    PersonName,
    Phone,
    PhoneRule,
    Pin,
    ReasonText,
    Rule,
    SearchText,
    Text,
    TextRule,
)
from tapgate_client.schemas.pagination import NamedPageQuery, PageQuery
from tapgate_client.schemas.values import (
    AccountBalance,
    Address,
    BalanceAmount,
    BirthDay,
    CurrencyCode,
    EmailAddress,
    Example,
    FirstName,
    Id,
    LastName,
    Money,
    PhoneNumber,
    Time,
)


class SubscriberStatus(StrEnum):
    ACTIVE = "ACTIVE"
    BLOCKED = "BLOCKED"
    CLOSED = "CLOSED"


class SubscriberCategory(StrEnum):
    STANDARD = "standard"
    VIP = "vip"
    CORPORATE = "corporate"


class IdType(StrEnum):
    NATIONAL_ID = "NATIONAL_ID"
    PASSPORT = "PASSPORT"
    DRIVERS_LICENSE = "DRIVERS_LICENSE"


class KycStatus(StrEnum):
    NONE = "NONE"
    PENDING = "PENDING"
    VERIFIED = "VERIFIED"
    REJECTED = "REJECTED"


class KycDocumentType(StrEnum):
    ID_FRONT = "id_front"
    ID_BACK = "id_back"
    SELFIE = "selfie"
    PROOF_OF_ADDRESS = "proof_of_address"


class KycDocumentStatus(StrEnum):
    PENDING = "pending"
    REVIEWED = "reviewed"
    REJECTED = "rejected"


class KycDecision(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    MORE_NEEDED = "more_needed"


class SubscriberLanguage(StrEnum):
    EN = "en"
    FR = "fr"


class MessagePreference(StrEnum):
    """Which messages a subscriber gets: all, or only those that are not receipts."""

    ALL = "all"
    ESSENTIAL = "essential"


MAX_KYC_LEVEL: Final = 3

KycLevelField = Annotated[int, IntegerRange(1, MAX_KYC_LEVEL)]

_IMAGE_PREFIXES: Final = ("data:image/jpeg;base64,", "data:image/png;base64,")


class SubscriberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriber as returned by the API. All fields are present; those without a value are null."""

    EXAMPLES: ClassVar = {"pin_locked_until": None}

    id: Id
    phone_number: PhoneNumber
    first_name: FirstName
    last_name: LastName
    email: EmailAddress | None
    date_of_birth: BirthDay | None
    address: Address | None
    id_type: IdType | None
    id_number: Annotated[str, Example("SL-1234567")] | None
    category: SubscriberCategory
    language: SubscriberLanguage
    messages: MessagePreference
    kyc_level: int
    kyc_status: KycStatus
    kyc_pending_since: str | None
    restricted: bool
    status: SubscriberStatus
    status_reason: str | None
    account_id: Id
    balance: AccountBalance
    currency: CurrencyCode
    cards_count: int
    max_child_cards: int | None
    pin_locked_until: Time | None
    created_at: Time
    updated_at: Time


class DisclosedSubscriber(msgspec.Struct, frozen=True, kw_only=True):
    """Subscriber with the fields that the caller may see.

    For a restricted subscriber hidden from the caller, only `id`, `restricted`, `status` and
    `status_reason` are present.
    """

    id: Id
    phone_number: PhoneNumber | msgspec.UnsetType = msgspec.UNSET
    first_name: FirstName | msgspec.UnsetType = msgspec.UNSET
    last_name: LastName | msgspec.UnsetType = msgspec.UNSET
    email: EmailAddress | msgspec.UnsetType | None = msgspec.UNSET
    date_of_birth: BirthDay | msgspec.UnsetType | None = msgspec.UNSET
    address: Address | msgspec.UnsetType | None = msgspec.UNSET
    id_type: IdType | msgspec.UnsetType | None = msgspec.UNSET
    id_number: Annotated[str, Example("SL-1234567")] | msgspec.UnsetType | None = msgspec.UNSET
    category: SubscriberCategory | msgspec.UnsetType = msgspec.UNSET
    language: SubscriberLanguage | msgspec.UnsetType = msgspec.UNSET
    messages: MessagePreference | msgspec.UnsetType = msgspec.UNSET
    kyc_level: int | msgspec.UnsetType = msgspec.UNSET
    kyc_status: KycStatus | msgspec.UnsetType = msgspec.UNSET
    kyc_pending_since: str | msgspec.UnsetType | None = msgspec.UNSET
    restricted: bool
    status: Annotated[SubscriberStatus, Example("BLOCKED")]
    status_reason: Annotated[str, Example("Requested by the customer")] | None
    account_id: Id | msgspec.UnsetType = msgspec.UNSET
    balance: AccountBalance | msgspec.UnsetType = msgspec.UNSET
    currency: CurrencyCode | msgspec.UnsetType = msgspec.UNSET
    cards_count: int | msgspec.UnsetType = msgspec.UNSET
    max_child_cards: int | msgspec.UnsetType | None = msgspec.UNSET
    pin_locked_until: Time | msgspec.UnsetType | None = msgspec.UNSET
    created_at: Time | msgspec.UnsetType = msgspec.UNSET
    updated_at: Time | msgspec.UnsetType = msgspec.UNSET


class Registration(msgspec.Struct, kw_only=True):
    phone_number: Phone
    first_name: PersonName
    last_name: PersonName
    pin: Pin
    email: Email | None = None
    date_of_birth: BirthDate | None = None
    address: AddressText | None = None
    id_type: IdType | None = None
    id_number: Annotated[Text, Example("SL-1234567")] | None = None
    category: SubscriberCategory = SubscriberCategory.STANDARD
    language: SubscriberLanguage = SubscriberLanguage.EN


class SubscriberUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their values."""

    phone_number: Phone | None = None
    first_name: PersonName | None = None
    last_name: PersonName | None = None
    email: Email | None = None
    date_of_birth: BirthDate | None = None
    address: AddressText | None = None
    id_type: IdType | None = None
    id_number: Annotated[Text, Example("SL-1234567")] | None = None
    category: SubscriberCategory | None = None
    language: SubscriberLanguage | None = None
    messages: MessagePreference | None = None
    kyc_level: KycLevelField | None = None
    kyc_status: KycStatus | None = None
    restricted: bool | None = None


class PhoneQueryRule(PhoneRule):
    """Phone number in a query string. A leading space is accepted as an unencoded `+`."""

    def check(self, value: str) -> str:
        return super().check(f"+{value[1:]}" if value.startswith(" ") else value)


class SubscriberFilters(NamedPageQuery, kw_only=True):
    phone_number: Annotated[str, PhoneQueryRule()] | None = None
    replaced_phone_number: Annotated[str, PhoneQueryRule()] | None = None
    status: SubscriberStatus | None = None
    kyc_level: KycLevelField | None = None
    kyc_status: KycStatus | None = None
    search: SearchText | None = None


class PhoneChangeDispute(msgspec.Struct, kw_only=True):
    """Objection to a phone number change, by the number that was replaced."""

    phone_number: Phone


class PhoneChangeDisputed(msgspec.Struct, frozen=True, kw_only=True):
    """Blocked subscriber, and the support request that was opened."""

    subscriber_id: Id
    status: SubscriberStatus
    status_reason: Annotated[str, Example("phone_change_disputed")] | None
    support_request_id: Annotated[Id, Example("req_0800000000000")]


class LimitUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Daily or monthly limit usage. `remaining` is zero if `used` exceeds the limit."""

    limit: Money
    used: BalanceAmount
    remaining: Money
    resets_at: Time


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    kyc_level: int
    currency: CurrencyCode
    per_transaction: Money
    daily: LimitUsage
    monthly: LimitUsage
    max_balance: Money


class PinVerification(msgspec.Struct, kw_only=True):
    pin: Pin


class PinChange(msgspec.Struct, kw_only=True):
    old_pin: Pin
    new_pin: NewPin


class PinReset(msgspec.Struct, kw_only=True):
    otp: OneTimeCode
    new_pin: NewPin


class OneTimeCodeVerification(msgspec.Struct, kw_only=True):
    otp: OneTimeCode


class SubscriberRegistered(SuccessResponse, kw_only=True):
    message: str = "Subscriber registered"
    subscriber_id: Id
    subscriber: SubscriberRecord


class SubscriberResponse(SuccessResponse, kw_only=True):
    subscriber: SubscriberRecord


class DisclosedSubscriberResponse(SuccessResponse, kw_only=True):
    message: str = "Subscriber blocked"
    subscriber: DisclosedSubscriber


class PinVerified(msgspec.Struct, kw_only=True):
    success: bool = True
    verified: bool = True
    message: str = "PIN verified"


class AccessGranted(msgspec.Struct, kw_only=True):
    success: bool = True
    expires_at: Time


class MessageFilters(PageQuery, kw_only=True):
    template: Annotated[str, TextRule(64)] | None = None


class ImageRule(Rule):
    """JPEG or PNG image as a data URI.

    Only the media type is checked here. The image is decoded later, in a thread pool, because
    decoding would block the event loop.
    """

    example = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="  # noqa: E501

    def check(self, value: str) -> str:
        if not value[:64].lower().startswith(_IMAGE_PREFIXES):
            raise InvalidValueError(
                "must be a data URI with a JPEG or PNG: data:image/jpeg;base64,..."
            )
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": "^data:image/(jpeg|png);base64,"}


class NewDocument(msgspec.Struct, kw_only=True):
    document_type: KycDocumentType
    image: Annotated[str, ImageRule()]


class DocumentRecord(msgspec.Struct, frozen=True, kw_only=True):
    document_id: Id
    document_type: KycDocumentType
    status: KycDocumentStatus
    created_at: Time


class DocumentAdded(msgspec.Struct, kw_only=True):
    document_id: Id
    document_type: KycDocumentType
    kyc_status: KycStatus


class KycDecisionRequest(msgspec.Struct, kw_only=True):
    OMITTED_IN_EXAMPLES: ClassVar = ("kyc_level", "reason")

    decision: KycDecision
    kyc_level: KycLevelField | None = None
    reason: ReasonText | None = None

    def __post_init__(self) -> None:
        if self.decision == KycDecision.REJECT and self.reason is None:
            raise build_missing_field_error("reason")
