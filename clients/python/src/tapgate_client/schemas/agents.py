"""Agents: records, requests and receipts."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final

import msgspec

from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.fields import (
    AddressText,
    Amount,
    BusinessName,
    Description,
    Email,
    IdRule,
    IntegerRange,
    Phone,
    Pin,
    Reference,
    SearchText,
)
from tapgate_client.schemas.pagination import NamedPageQuery
from tapgate_client.schemas.subscribers import PhoneQueryRule
from tapgate_client.schemas.transactions import (
    CustomerMoneyRequest,
    DepositReference,
    MoneyRequest,
    Receipt,
)
from tapgate_client.schemas.values import (
    Address,
    BalanceAmount,
    CurrencyCode,
    EmailAddress,
    Example,
    Id,
    Money,
    Name,
    PhoneNumber,
    Time,
)


class AgentType(StrEnum):
    SUB_AGENT = "sub_agent"
    SUPER_AGENT = "super_agent"


class AgentStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    TERMINATED = "terminated"


CommissionTier = Annotated[int, IntegerRange(1, 3)]
DEFAULT_COMMISSION_TIER: Final = 1


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Agent as returned by the API. All fields are present; those without a value are null."""

    EXAMPLES: ClassVar = {"parent_agent_id": None}

    id: Id
    agent_type: AgentType
    parent_agent_id: Id | None
    name: Name
    business_name: Name | None
    phone_number: PhoneNumber
    email: EmailAddress | None
    address: Address | None
    commission_tier: int
    status: AgentStatus
    account_id: Id
    float_balance: BalanceAmount
    commission_balance: BalanceAmount
    currency: CurrencyCode
    created_at: Time
    updated_at: Time


class AgentBalance(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: Id
    float_balance: BalanceAmount
    commission_balance: BalanceAmount
    currency: CurrencyCode


class AgentRegistration(msgspec.Struct, kw_only=True):
    agent_type: AgentType
    name: BusinessName
    phone_number: Phone
    pin: Pin
    parent_agent_id: Reference | None = None
    business_name: BusinessName | None = None
    email: Email | None = None
    address: AddressText | None = None
    commission_tier: CommissionTier = DEFAULT_COMMISSION_TIER

    def __post_init__(self) -> None:
        # Checked here so that this error takes precedence over field validation errors.
        if self.agent_type == AgentType.SUB_AGENT and self.parent_agent_id is None:
            raise ApiError(Code.MISSING_PARENT)


class AgentUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their values."""

    name: BusinessName | None = None
    business_name: BusinessName | None = None
    phone_number: Phone | None = None
    email: Email | None = None
    address: AddressText | None = None
    commission_tier: CommissionTier | None = None


class AgentFilters(NamedPageQuery, kw_only=True):
    phone_number: Annotated[str, PhoneQueryRule()] | None = None
    address: AddressText | None = None
    status: AgentStatus | None = None
    agent_type: AgentType | None = None
    parent_agent_id: Annotated[str, IdRule(ids.AGENT)] | None = None
    search: SearchText | None = None
    #: Whether the agent is active and its float is below `TAPGATE_FLOAT_LOW`.
    low_float: bool | None = None


class AgentPinChange(msgspec.Struct, kw_only=True):
    old_pin: Pin
    new_pin: Pin


class AgentRegistered(SuccessResponse, kw_only=True):
    message: str = "Agent registered"
    agent_id: Id
    agent: AgentRecord


class AgentResponse(SuccessResponse, kw_only=True):
    agent: AgentRecord


class FloatFunding(MoneyRequest, kw_only=True):
    """Float funding. `reference` is the deposit's reference on the bank statement."""

    amount: Amount
    reference: DepositReference | None = None
    description: Description | None = None


class CashIn(CustomerMoneyRequest, kw_only=True):
    agent_id: Reference
    amount: Amount
    agent_pin: Pin


class CashOut(CashIn, kw_only=True):
    """Cash-out request. `pin` is the subscriber's PIN, or the card's own PIN for a child card."""

    pin: Pin


class FloatTransfer(MoneyRequest, kw_only=True):
    from_agent_id: Reference
    to_agent_id: Reference
    amount: Amount
    pin: Pin
    description: Description | None = None


class CommissionPayout(MoneyRequest, kw_only=True):
    """Request to pay out the agent's entire commission balance. `pin` is the agent's."""

    OMITTED_IN_EXAMPLES: ClassVar = ("pin",)

    pin: Pin | None = None


class FundingReceipt(Receipt, kw_only=True):
    amount: Money
    new_balance: BalanceAmount


class CashReceipt(Receipt, kw_only=True):
    """Receipt for a cash-in or cash-out.

    `commission_earned` is zero while the transaction is under review. After a cash-in,
    `subscriber_balance` is null if the caller lost access to the subscriber during the request.
    """

    amount: Money
    agent_balance: BalanceAmount
    subscriber_balance: BalanceAmount | None
    commission_earned: Annotated[Money, Example("5.00")]


class FloatTransferReceipt(Receipt, kw_only=True):
    amount: Money
    from_balance: BalanceAmount
    to_balance: BalanceAmount


class PayoutReceipt(Receipt, kw_only=True):
    amount: Money
    float_balance: BalanceAmount
