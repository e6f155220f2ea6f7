"""Work queue responses."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client.schemas.fields import IntegerRange
from tapgate_client.schemas.values import BalanceAmount, Example, Id, Time

#: Items beyond this number are not counted, so that counting stays fast.
MAX_COUNTED_ITEMS: Final = 100


class WorkQueueName(StrEnum):
    """Work queues, in the order of the navigation."""

    APPROVALS = "approvals"
    KYC_REVIEWS = "kyc_reviews"
    SUPPORT_REQUESTS = "support_requests"
    ALERTS = "alerts"
    HELD_PAYMENTS = "held_payments"
    FAILING_WEBHOOKS = "failing_webhooks"
    DISPUTES = "disputes"
    LOW_FLOAT = "low_float"
    FLOAT_REQUESTS = "float_requests"
    RECALLS = "recalls"
    PAYOUTS = "payouts"


class WorkQueuesQuery(msgspec.Struct, kw_only=True):
    #: Count now, instead of returning counts that may be a few seconds old.
    fresh: bool = False


class WorkQueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Number of items that wait, at most 100, and the time since which the oldest waits.

    `oldest_at` is null if nothing waits, and for agents with a low float.
    """

    name: WorkQueueName
    waiting: int
    oldest_at: Time | None


class WorkQueues(msgspec.Struct, frozen=True, kw_only=True):
    """Work queues that the caller's role may read."""

    data: list[WorkQueueRecord]


class Urgency(StrEnum):
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


class WorkItemsQuery(msgspec.Struct, kw_only=True):
    limit: Annotated[int, IntegerRange(1, 100)] = 20
    #: Read now, instead of returning items that may be a few seconds old.
    fresh: bool = False


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """Item that waits in a work queue."""

    queue: WorkQueueName
    id: Id
    urgency: Urgency
    since: Time | None
    #: Deadline: for approvals and recalls their end, for disputes when the merchant must answer.
    due_at: Time | None
    subject: Annotated[str, Example("Aminata Kamara")] | None
    detail: Annotated[str, Example("velocity")] | None
    amount: BalanceAmount | None
    is_mine: bool


class WorkItems(msgspec.Struct, frozen=True, kw_only=True):
    """Items of all work queues that the caller's role may read."""

    data: list[WorkItem]
    has_more: bool
