"""Recalls: a sender asks for a transfer to the wrong person back."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client.schemas.fields import FreeText, IdempotencyKey, Pin
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.values import Example, HolderName, Id, Money, Time, Word


class RecallStatus(StrEnum):
    OPEN = "open"
    RETURNED = "returned"  # by the receiver
    KEPT = "kept"  # by the receiver
    EXPIRED = "expired"
    DECIDED = "decided"  # by staff


class RecallVerdict(StrEnum):
    RETURN = "return"
    RELEASE = "release"


class RecallTransfer(msgspec.Struct, kw_only=True):
    """A recall. `pin` is the sender's PIN, which a service must send."""

    reason: FreeText | None = None
    pin: Pin | None = None
    request_id: IdempotencyKey | None = None


class ReturnTransfer(msgspec.Struct, kw_only=True):
    """The receiver's consent, with the receiver's PIN."""

    pin: Pin


class RecallResolution(msgspec.Struct, kw_only=True):
    decision: RecallVerdict
    reason: FreeText


class RecallFilters(PageQuery, kw_only=True):
    status: RecallStatus | None = None
    transaction_id: Id | None = None


class RecallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A recall.

    `amount` is the recalled transfer's amount, and `held_amount` what the receiver still had: it is
    held while the recall is open, and returned if the receiver agrees or staff decide so.
    `decided_by` is the admin who decided, or null. The sender and the receiver are in responses to
    `GET`; if one of them is a restricted subscriber, `masked` is true, and both names and the
    reasons are null until the admin verifies a one-time code.
    """

    id: Id
    transaction_id: Id
    sender_id: Annotated[Id, Example("sub_0800000000000")] | msgspec.UnsetType = msgspec.UNSET
    sender_name: HolderName | msgspec.UnsetType | None = msgspec.UNSET
    receiver_id: Annotated[Id, Example("sub_0800000000001")] | msgspec.UnsetType = msgspec.UNSET
    receiver_name: HolderName | msgspec.UnsetType | None = msgspec.UNSET
    amount: Money
    held_amount: Money
    currency: Word
    reason: Annotated[str, Example("Sent to the wrong number")] | None
    status: Annotated[RecallStatus, Example("open")]
    decision: RecallVerdict | None
    decided_by: Id | None
    decision_reason: str | None
    reversal_id: Id | None
    created_at: Time
    expires_at: Time
    masked: bool | msgspec.UnsetType = msgspec.UNSET


class PendingRecall(msgspec.Struct, frozen=True, kw_only=True):
    """An open recall that waits for the receiver's answer. The sender's name is abbreviated."""

    id: Id
    transaction_id: Id
    amount: Money
    held_amount: Money
    currency: Word
    sender_name: Annotated[str, Example("Aminata K.")]
    expires_at: Time


class PendingRecalls(msgspec.Struct, frozen=True, kw_only=True):
    data: list[PendingRecall]
