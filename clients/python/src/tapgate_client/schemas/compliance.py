"""Requests and responses of compliance: alerts, rules, checks and account rules."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.assignees import AssigneeFilter
from tapgate_client.schemas.clearable_fields import OrEmptyRule
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.fields import (
    Amount,
    AmountOrZero,
    AmountRule,
    CardSerial,
    Choice,
    Currency,
    CurrencyReference,
    FreeText,
    IdRule,
    IntegerRange,
    Label,
    ListLength,
    Metadata,
    Reference,
    Rule,
    Text,
)
from tapgate_client.schemas.pagination import OrderedPageQuery
from tapgate_client.schemas.transactions import TransactionType
from tapgate_client.schemas.values import (
    AdminId,
    AdminName,
    CurrencyCode,
    Example,
    Id,
    Money,
    Time,
    Word,
)

#: Upper bound of every rule's window.
MAX_WINDOW_SECONDS: Final = 366 * 86_400


class Severity(StrEnum):
    """Alert or rule severity, in ascending order."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class AlertStatus(StrEnum):
    OPEN = "open"
    INVESTIGATING = "investigating"
    RESOLVED = "resolved"
    FALSE_POSITIVE = "false_positive"


class TransactionDecision(StrEnum):
    """Review decision on the transaction that an alert holds."""

    RELEASE = "release"
    REJECT = "reject"


class RuleType(StrEnum):
    AMOUNT_THRESHOLD = "AMOUNT_THRESHOLD"
    TRANSACTION_COUNT = "TRANSACTION_COUNT"
    CUMULATIVE_AMOUNT = "CUMULATIVE_AMOUNT"
    PIN_FAILURES = "PIN_FAILURES"


class RuleSubject(StrEnum):
    """Whose transactions a rule screens."""

    PAYER = "payer"
    PAYEE = "payee"
    AGENT = "agent"


class RuleAction(StrEnum):
    ALERT = "alert"
    REVIEW = "review"
    BLOCK = "block"


class RuleStatus(StrEnum):
    ACTIVE = "active"
    INACTIVE = "inactive"


RESOLVED_STATUSES: Final = (AlertStatus.RESOLVED, AlertStatus.FALSE_POSITIVE)


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Alert as returned by the API.

    `masked` is present, and true, if the alert concerns a restricted subscriber and the caller has
    not verified a one-time code. Then `details` contains only the fields written by a compliance
    rule, and `investigation_notes` and `resolution_notes` are null.
    """

    EXAMPLES: ClassVar = {"resolved_at": None}

    id: Id
    subscriber_id: Id | None
    transaction_id: Id | None
    rule_id: Id | None
    alert_type: Annotated[Word, Example("UNUSUAL_AMOUNT")]
    severity: Severity
    status: AlertStatus
    details: dict[str, Any]
    occurrences: int
    assignee: AdminId | None
    assignee_name: AdminName | None
    investigation_notes: str | None
    resolution_notes: str | None
    resolved_by: str | None
    resolved_at: Time | None
    created_at: Time
    updated_at: Time
    masked: bool | msgspec.UnsetType = msgspec.UNSET


class AlertFilters(OrderedPageQuery, kw_only=True):
    status: AlertStatus | None = None
    severity: Severity | None = None
    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None
    transaction_id: Annotated[str, IdRule(ids.TRANSACTION)] | None = None
    assignee: AssigneeFilter | None = None
    #: Whether the alert holds a transaction until it is resolved.
    held: bool | None = None
    card_serial: CardSerial | None = None


class NewAlert(msgspec.Struct, kw_only=True):
    subscriber_id: Reference | None = None
    transaction_id: Reference | None = None
    alert_type: Annotated[Reference, Example("UNUSUAL_AMOUNT")]
    severity: Severity = Severity.MEDIUM
    details: Metadata
    rule_id: Reference | None = None


class Investigation(msgspec.Struct, kw_only=True):
    note: Annotated[FreeText, Example("Called the customer")] | None = None


class Resolution(msgspec.Struct, kw_only=True):
    status: Annotated[AlertStatus, Choice(*RESOLVED_STATUSES, name="AlertResolution")]
    resolution_notes: Annotated[FreeText, Example("Confirmed by the customer")]
    transaction_decision: TransactionDecision | None = None


class AlertCreated(SuccessResponse, kw_only=True):
    alert_id: Id
    alert: AlertRecord


class AlertResponse(SuccessResponse, kw_only=True):
    alert: AlertRecord


class ThresholdRule(Rule):
    """Threshold as an amount or a count. Which one is required depends on the rule's type."""

    example = "500000.00"

    def check(self, value: str | int) -> str | int:
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "A decimal amount or a count, depending on the rule's type"}


TransactionTypes = Annotated[list[TransactionType], ListLength(1, 50)]
Threshold = Annotated[str | int, ThresholdRule()]
WindowSeconds = Annotated[int, IntegerRange(1, MAX_WINDOW_SECONDS)]


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    name: Annotated[str, Example("Large payments")]
    type: RuleType
    subject: RuleSubject
    transaction_types: list[TransactionType]
    threshold: Annotated[str, Example("500.00")] | int
    currency: CurrencyCode | None
    window_seconds: int | None
    action: RuleAction
    severity: Severity
    status: RuleStatus


class NewRule(msgspec.Struct, kw_only=True):
    """Rule to create. `AMOUNT_THRESHOLD` excludes `window_seconds`; all other types require it."""

    name: Label
    type: RuleType
    subject: RuleSubject = RuleSubject.PAYER
    transaction_types: TransactionTypes
    threshold: Threshold
    currency: CurrencyReference | None = None
    window_seconds: WindowSeconds | None = None
    action: RuleAction
    severity: Severity = Severity.MEDIUM
    status: RuleStatus = RuleStatus.ACTIVE


class RuleUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their value."""

    name: Label | None = None
    subject: RuleSubject | None = None
    transaction_types: TransactionTypes | None = None
    threshold: Threshold | None = None
    currency: CurrencyReference | None = None
    window_seconds: WindowSeconds | None = None
    action: RuleAction | None = None
    severity: Severity | None = None
    status: RuleStatus | None = None


#: Transaction types that involve a subscriber. Refunds are excluded, because the decision depends
#: on the original payment.
CHECKED_TYPES: Final = (
    TransactionType.TRANSFER_P2P,
    TransactionType.TRANSFER,
    TransactionType.AGENT_CASHIN,
    TransactionType.AGENT_CASHOUT,
    TransactionType.POS_PAYMENT,
    TransactionType.ONLINE_PAYMENT,
    TransactionType.PARTNER_FUND,
    TransactionType.PROCESSOR_TRANSFER,
)


class ComplianceCheckRequest(msgspec.Struct, kw_only=True):
    subscriber_id: Reference
    amount: Amount
    transaction_type: Annotated[TransactionType, Choice(*CHECKED_TYPES)]
    currency: Currency | None = None


class Violation(msgspec.Struct, frozen=True):
    code: Word
    message: str


class ComplianceCheckResult(msgspec.Struct, frozen=True, kw_only=True):
    allowed: bool
    risk_level: Severity
    score: int
    violations: list[Violation]


class AccountRuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    kyc_level: int
    currency: CurrencyCode
    max_balance: Money
    max_transaction: Money
    daily_limit: Money
    monthly_limit: Money
    no_pin_limit: Money
    proof_required_above: Annotated[Money, Example("10000.00")] | None
    requirements: list[str]


Requirement = Annotated[Text, Example("A verified identity document")]


class AccountRuleUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their value."""

    currency: CurrencyReference | None = None
    max_balance: Amount | None = None
    max_transaction: Amount | None = None
    daily_limit: Amount | None = None
    monthly_limit: Amount | None = None
    no_pin_limit: AmountOrZero | None = None
    proof_required_above: Annotated[str, OrEmptyRule(AmountRule(allow_zero=True))] | None = None
    requirements: (
        Annotated[list[Annotated[Text, Example("A verified identity document")]], ListLength(0, 20)]
        | None
    ) = None
