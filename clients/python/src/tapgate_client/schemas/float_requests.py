"""Float requests: agents ask their super-agent or the platform for float."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import Amount, FreeText, IdempotencyKey, IdRule, Pin
from tapgate_client.schemas.pagination import OrderedPageQuery
from tapgate_client.schemas.transactions import MoneyRequest
from tapgate_client.schemas.values import (
    BalanceAmount,
    CurrencyCode,
    Example,
    Id,
    Money,
    Name,
    Time,
)


class FloatRequestStatus(StrEnum):
    OPEN = "open"
    FUNDED = "funded"
    DECLINED = "declined"
    CANCELLED = "cancelled"


class FloatProvider(StrEnum):
    """Who is asked for the float."""

    SUPER_AGENT = "super_agent"
    FINANCE = "finance"


class NewFloatRequest(Redacted, msgspec.Struct, kw_only=True):
    """An agent's request for float. `note` is shown to whoever decides."""

    OMITTED_IN_EXAMPLES: ClassVar = ("request_id",)

    amount: Amount
    note: FreeText | None = None
    request_id: IdempotencyKey | None = None


class FloatRequestFunding(MoneyRequest, kw_only=True):
    """Request to fund a float request with its amount."""


class FloatRequestTransfer(MoneyRequest, kw_only=True):
    """The super-agent's transfer to the sub-agent, with the super-agent's PIN."""

    pin: Pin


class FloatRequestDecline(Redacted, msgspec.Struct, kw_only=True):
    reason: FreeText


class FloatRequestFilters(OrderedPageQuery, kw_only=True):
    """Float request filters. `waits_for` selects open requests by who is asked now."""

    status: FloatRequestStatus | None = None
    waits_for: FloatProvider | None = None
    agent_id: Annotated[str, IdRule(ids.AGENT)] | None = None
    parent_agent_id: Annotated[str, IdRule(ids.AGENT)] | None = None


class FloatRequestRecord(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Float request.

    `waits_for` is who is asked while the request is open: a sub-agent's super-agent until
    `finance_at`, then finance. `float_balance` is the agent's current float, in responses to `GET`.
    """

    id: Annotated[Id, Example("frq_0800000000000")]
    agent_id: Id
    agent_name: Name
    amount: Money
    float_balance: BalanceAmount | msgspec.UnsetType = msgspec.UNSET
    currency: CurrencyCode
    note: Annotated[str, Example("Market day tomorrow")] | None
    status: FloatRequestStatus
    waits_for: FloatProvider | None
    finance_at: Time
    transaction_id: Id | None
    reason: Annotated[str, Example("Deposit the cash first.")] | None
    created_at: Time
    updated_at: Time
