"""Disputes: cardholders contest card payments."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import Amount, FreeText, IdempotencyKey, IdRule
from tapgate_client.schemas.pagination import OrderedPageQuery
from tapgate_client.schemas.values import Example, HolderName, Id, Money, Time


class DisputeReason(StrEnum):
    NOT_RECOGNIZED = "not_recognized"
    NOT_RECEIVED = "not_received"
    WRONG_AMOUNT = "wrong_amount"
    DUPLICATE = "duplicate"
    OTHER = "other"


class DisputeStatus(StrEnum):
    OPEN = "open"  # waits for the merchant
    ANSWERED = "answered"  # waits for the decision
    REFUNDED = "refunded"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


class DisputeDecision(StrEnum):
    REFUND = "refund"
    REJECT = "reject"


class NewDispute(Redacted, msgspec.Struct, kw_only=True):
    """A cardholder's dispute. Without `amount`, the rest of the payment is disputed."""

    OMITTED_IN_EXAMPLES: ClassVar = ("amount",)

    transaction_id: Annotated[str, IdRule(ids.TRANSACTION)]
    reason: DisputeReason
    description: FreeText | None = None
    amount: Amount | None = None
    request_id: IdempotencyKey | None = None


class DisputeResponse(Redacted, msgspec.Struct, kw_only=True):
    """The merchant's response. With `accept`, the disputed amount is refunded at once."""

    text: FreeText
    accept: bool = False


class DisputeDecisionRequest(Redacted, msgspec.Struct, kw_only=True):
    decision: DisputeDecision
    reason: FreeText


class DisputeFilters(OrderedPageQuery, kw_only=True):
    """Dispute filters. `overdue` selects open disputes whose merchant has not answered in time."""

    status: DisputeStatus | None = None
    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None
    processor_id: Annotated[str, IdRule(ids.PROCESSOR)] | None = None
    transaction_id: Annotated[str, IdRule(ids.TRANSACTION)] | None = None
    overdue: bool | None = None


class DisputeRecord(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Dispute. `due_at` is when the merchant must have answered.

    Only staff get `subscriber_name`. For a restricted subscriber, `masked` is true, and
    `subscriber_name`, `description` and `merchant_response` are null until the admin verifies a
    one-time code.
    """

    id: Annotated[Id, Example("dsp_0800000000000")]
    transaction_id: Id
    subscriber_id: Id
    subscriber_name: HolderName | msgspec.UnsetType | None = msgspec.UNSET
    processor_id: Id
    processor_name: Annotated[str, Example("Corner shop")]
    amount: Money
    currency: Annotated[str, Example("SLE")]
    reason: DisputeReason
    description: Annotated[str, Example("I never got the goods.")] | None
    status: DisputeStatus
    merchant_response: Annotated[str, Example("Delivered on 3 March.")] | None
    decision_reason: Annotated[str, Example("The receipt is signed.")] | None
    overdue: bool
    due_at: Time
    created_at: Time
    updated_at: Time
    masked: bool | msgspec.UnsetType = msgspec.UNSET
