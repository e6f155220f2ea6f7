"""Requests and responses for processors, their terminals and their signing keys."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client.schemas.common import Redacted, SuccessResponse
from tapgate_client.schemas.fields import (
    Amount,
    BusinessName,
    Description,
    Email,
    Label,
    Phone,
    Reference,
    SearchText,
)
from tapgate_client.schemas.pagination import NamedPageQuery
from tapgate_client.schemas.transactions import MoneyRequest, Receipt
from tapgate_client.schemas.values import (
    AccountBalance,
    BalanceAmount,
    CurrencyCode,
    EmailAddress,
    Example,
    Id,
    Money,
    Name,
    PhoneNumber,
    ShownSecret,
    Time,
)


class ProcessorStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"


class TerminalStatus(StrEnum):
    ACTIVE = "active"
    BLOCKED = "blocked"


class ProcessorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Processor as returned by the API. All fields are present; those without a value are null."""

    id: Id
    name: Name
    phone_number: PhoneNumber
    email: EmailAddress
    status: ProcessorStatus
    suspend_reason: str | None
    account_id: Id
    balance: AccountBalance
    currency: CurrencyCode
    created_at: Time
    updated_at: Time


class NewProcessor(msgspec.Struct, kw_only=True):
    name: BusinessName
    phone_number: Phone
    email: Email


class ProcessorFilters(NamedPageQuery, kw_only=True):
    status: ProcessorStatus | None = None
    search: SearchText | None = None


class ProcessorCreated(Redacted, SuccessResponse, kw_only=True):
    """Response to creating a processor. The secret is returned only here."""

    message: str = "Processor created"
    processor_id: Id
    processor: ProcessorRecord
    api_key_id: Id
    hmac_secret: ShownSecret


class ProcessorResponse(SuccessResponse, kw_only=True):
    processor: ProcessorRecord


class ProcessorTransfer(MoneyRequest, kw_only=True):
    subscriber_id: Reference
    amount: Amount
    description: Description | None = None


class ProcessorTransferReceipt(Receipt, kw_only=True):
    amount: Money
    processor_balance: BalanceAmount


class TerminalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Terminal as returned by the API. All fields are present; those without a value are null."""

    id: Id
    processor_id: Id
    name: Annotated[str, Example("Till 1")]
    status: TerminalStatus
    api_key_id: Id | None
    last_seen_at: Time | None
    created_at: Time


class NewTerminal(msgspec.Struct, kw_only=True):
    name: Label


class TerminalAdded(Redacted, msgspec.Struct, kw_only=True):
    """Response to adding a terminal. The secret is returned only here."""

    terminal: TerminalRecord
    api_key_id: Id
    hmac_secret: ShownSecret


class TerminalResponse(SuccessResponse, kw_only=True):
    terminal: TerminalRecord


class NewSigningKey(msgspec.Struct, kw_only=True):
    """Signing key to create. With `terminal_id`, the key belongs to that terminal."""

    terminal_id: Reference | None = None


class SigningKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    api_key_id: Id
    terminal_id: Id | None
    terminal_name: str | None
    created_at: Time
    #: Null for keys that were created before this was recorded.
    created_by: str | None
    created_by_name: str | None
    last_used_at: Time | None
