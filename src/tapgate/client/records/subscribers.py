"""Subscriber, KYC document and message records."""

from tapgate.client.records.base import Confirmation, Record


class Subscriber(Record, frozen=True, kw_only=True):
    """A person with a wallet on the platform."""

    id: str
    phone_number: str
    first_name: str
    last_name: str
    email: str | None
    date_of_birth: str | None
    address: str | None
    id_type: str | None
    id_number: str | None
    category: str
    kyc_level: int
    kyc_status: str
    restricted: bool
    status: str
    status_reason: str | None
    account_id: str
    balance: str
    currency: str
    cards_count: int
    max_child_cards: int | None
    pin_locked_until: str | None
    created_at: str
    updated_at: str


class DisclosedSubscriber(Record, frozen=True, kw_only=True):
    """A subscriber, with the fields that the caller may see.

    While a restricted subscriber is hidden from the caller, all fields except `id`, `restricted`,
    `status` and `status_reason` are None.
    """

    id: str
    phone_number: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    date_of_birth: str | None = None
    address: str | None = None
    id_type: str | None = None
    id_number: str | None = None
    category: str | None = None
    kyc_level: int | None = None
    kyc_status: str | None = None
    restricted: bool
    status: str
    status_reason: str | None
    account_id: str | None = None
    balance: str | None = None
    currency: str | None = None
    cards_count: int | None = None
    max_child_cards: int | None = None
    pin_locked_until: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


class LimitUsage(Record, frozen=True, kw_only=True):
    """Usage of a daily or monthly limit."""

    limit: str
    used: str
    remaining: str
    resets_at: str


class SubscriberLimits(Record, frozen=True, kw_only=True):
    kyc_level: int
    currency: str
    per_transaction: str
    daily: LimitUsage
    monthly: LimitUsage
    max_balance: str


class RegisterSubscriberResponse(Confirmation, frozen=True, kw_only=True):
    subscriber_id: str
    subscriber: Subscriber


class SubscriberResponse(Confirmation, frozen=True, kw_only=True):
    """Response to unblocking or closing a subscriber."""

    subscriber: Subscriber


class BlockSubscriberResponse(Confirmation, frozen=True, kw_only=True):
    subscriber: DisclosedSubscriber


class VerifyPinResponse(Confirmation, frozen=True, kw_only=True):
    verified: bool


class RestrictedAccessGrant(Record, frozen=True, kw_only=True):
    """Temporary access of an admin to a restricted subscriber."""

    success: bool
    expires_at: str


class AddKycDocumentResponse(Record, frozen=True, kw_only=True):
    document_id: str
    document_type: str
    kyc_status: str


class Message(Record, frozen=True, kw_only=True):
    """A message sent to a subscriber's phone, without its text."""

    message_id: str
    template: str
    language: str
    status: str
    error_code: str | None
    created_at: str
    updated_at: str | None


class KycDocument(Record, frozen=True, kw_only=True):
    """A KYC document, without its image."""

    document_id: str
    document_type: str
    created_at: str
