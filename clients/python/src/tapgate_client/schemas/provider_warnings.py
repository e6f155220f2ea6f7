"""Messaging provider warnings about templates, the account and the phone number."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client.schemas.fields import ListLength, TextRule, Timestamp
from tapgate_client.schemas.values import Example, Time

MAX_WARNINGS: Final = 100
MAX_SUBJECT_LENGTH: Final = 200
MAX_STATE_LENGTH: Final = 64
MAX_REASON_LENGTH: Final = 255
WarningReason = Annotated[str, TextRule(MAX_REASON_LENGTH, example="Requested by the customer")]


class ProviderWarningKind(StrEnum):
    TEMPLATE = "template"
    ACCOUNT = "account"
    PHONE_NUMBER = "phone_number"


class ProviderReport(msgspec.Struct, kw_only=True):
    """Template, account or phone number state, as the provider reports it."""

    kind: ProviderWarningKind
    subject: Annotated[str, TextRule(MAX_SUBJECT_LENGTH)]
    state: Annotated[str, TextRule(MAX_STATE_LENGTH)]
    reason: (
        Annotated[str, TextRule(MAX_REASON_LENGTH), Example("Requested by the customer")] | None
    ) = None
    resolved: bool
    occurred_at: Timestamp


class ProviderReports(msgspec.Struct, kw_only=True):
    data: Annotated[list[ProviderReport], ListLength(1, MAX_WARNINGS)]


class ProviderReportsResponse(msgspec.Struct, kw_only=True):
    updated: int


class ProviderWarningRecord(msgspec.Struct, frozen=True, kw_only=True):
    kind: ProviderWarningKind
    subject: str
    state: str
    reason: str | None
    occurred_at: Time


class ProviderWarnings(msgspec.Struct, frozen=True, kw_only=True):
    data: list[ProviderWarningRecord]
