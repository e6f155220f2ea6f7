"""Approval rules and approvals."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.admin import AdminRole, PlatformRole
from tapgate_client.schemas.fields import (
    AmountOrZero,
    Choice,
    IdRule,
    IntegerRange,
    InvalidValueError,
    ListLength,
    Rule,
    Text,
)
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.values import Example, Id, Money, Time, Word

MIN_EXPIRY_SECONDS: Final = 60
MAX_EXPIRY_SECONDS: Final = 604_800
DEFAULT_EXPIRY_SECONDS: Final = 86_400


class Operation(StrEnum):
    """Operation that approval rules can guard. A rule change has no separate rule."""

    AGENT_FUND = "agent_fund"
    PARTNER_FUND = "partner_fund"
    WALLET_TRANSFER = "wallet_transfer"
    PROCESSOR_TRANSFER = "processor_transfer"
    FEE_RULES = "fee_rules"
    COMMISSION_RULES = "commission_rules"
    ACCOUNT_RULES = "account_rules"
    COMPLIANCE_RULES = "compliance_rules"
    ADMIN_USERS = "admin_users"
    API_KEYS = "api_keys"
    KEYSETS = "keysets"
    REFUNDS = "refunds"
    OVERDRAFT_LIMITS = "overdraft_limits"
    SUBSCRIBER_PHONE = "subscriber_phone"
    AGENT_PHONE = "agent_phone"
    MERCHANT_KEYS = "merchant_keys"
    REVIEW_RELEASE = "review_release"
    KYC_LEVEL = "kyc_level"
    CARD_LIMITS = "card_limits"
    WEBHOOK_ENDPOINTS = "webhook_endpoints"
    BRANDING = "branding"
    REVERSALS = "reversals"
    PAYOUTS = "payouts"
    BATCHES = "batches"
    BANK_ACCOUNTS = "bank_accounts"
    APPROVAL_RULES = "approval_rules"


#: Operations that rules can name.
GUARDABLE_OPERATIONS: Final = tuple(
    operation for operation in Operation if operation is not Operation.APPROVAL_RULES
)
#: Operations with an amount. Rules of other operations cannot have `above`.
AMOUNT_OPERATIONS: Final = (
    Operation.AGENT_FUND,
    Operation.PARTNER_FUND,
    Operation.WALLET_TRANSFER,
    Operation.PROCESSOR_TRANSFER,
    Operation.REFUNDS,
    Operation.OVERDRAFT_LIMITS,
    Operation.CARD_LIMITS,
    Operation.REVERSALS,
    Operation.PAYOUTS,
    Operation.BATCHES,
)


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"  # waits for its execution
    EXECUTED = "executed"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class ApprovalVerdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"


OperationField = Annotated[Operation, Choice(*Operation, name="ApprovalOperation")]
GuardableOperationField = Annotated[
    Operation, Choice(*GUARDABLE_OPERATIONS, name="GuardableOperation")
]


class RolesRule(Rule):
    """List of at least one role. Duplicates are removed."""

    example = (AdminRole.SYSTEM_ADMIN, AdminRole.FINANCE_USER)

    def check(self, value: list[str]) -> list[str]:
        if not value:
            raise InvalidValueError("must have at least one role")
        return list(dict.fromkeys(value))

    def to_json_schema(self) -> dict[str, Any]:
        return {"minItems": 1}


class ApprovalRule(msgspec.Struct, kw_only=True):
    """Rule that holds an operation until `approvers` admins with one of the roles approve it.

    With `above`, it applies only to requests that exceed this amount together with the maker's
    other requests in the last 24 hours.
    """

    operation: GuardableOperationField
    above: AmountOrZero | None = None
    roles: Annotated[list[PlatformRole], RolesRule()]
    approvers: Annotated[int, IntegerRange(1, 2)] = 1
    expires_in: Annotated[int, IntegerRange(MIN_EXPIRY_SECONDS, MAX_EXPIRY_SECONDS)] = (
        DEFAULT_EXPIRY_SECONDS
    )


class ApprovalRules(msgspec.Struct, kw_only=True):
    data: Annotated[list[ApprovalRule], ListLength(0, 100)]


class ApprovalSuspension(msgspec.Struct, frozen=True, kw_only=True):
    """Approval rule suspension by a server operator."""

    reason: Annotated[str, Example("Requested by the customer")]
    suspended_by: str
    suspended_at: Time


class RuleApprovers(msgspec.Struct, frozen=True, kw_only=True):
    """The people who could approve requests under a rule today.

    `names` are the names of active admins with one of the roles. `available` counts the people
    among them who could approve requests of `maker`, the admin with the fewest approvers. If
    `available` is less than `approvers`, such requests cannot be approved. `maker` is null if no
    active admin may make the request.
    """

    EXAMPLES: ClassVar = {"names": ["Fatmata Sesay", "Ibrahim Conteh"]}

    operation: OperationField
    names: list[str]
    approvers: Annotated[int, Example(1)]
    available: Annotated[int, Example(2)]
    maker: Annotated[str, Example("Ada Kamara")] | None


class ApprovalRulesRecord(msgspec.Struct, kw_only=True):
    """The approval rules, and the operations that rules can guard.

    `people` has the people for each rule in `data`, and last the people for rule changes.
    `suspended` is null unless a server operator has suspended the rules.
    """

    data: list[ApprovalRule]
    operations: list[GuardableOperationField]
    people: list[RuleApprovers]
    suspended: ApprovalSuspension | None


class ApprovalFilters(PageQuery, kw_only=True):
    status: ApprovalStatus | None = None
    operation: OperationField | None = None
    maker: Annotated[str, IdRule(ids.ADMIN)] | None = None
    resource_id: Text | None = None


class ApprovalDecision(msgspec.Struct, frozen=True, kw_only=True):
    admin_id: str
    admin_name: str
    decision: ApprovalVerdict
    reason: str | None
    at: Word


class ApprovalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Admin request that waits, or waited, for approval by other admins.

    `reason` is why the maker made the request, from the header `Approval-Reason`. `changes` has the
    old and the new value of each field that the request sets. `resource_id` is
    the changed record's ID. `approvers` are the IDs of the admins who have approved it, and
    `required_approvers` is the number that it needs.

    `result` is the executed request's response. Secrets in it are shown once: an API key to the
    maker, in the first response of `GET /approvals/{id}`, an invitation or reset link to the
    approver who executed the request, in the response of `POST /approvals/{id}/approve`.
    `disclosed` is true if this response shows them. If the request failed, `result` is the error
    and `code` its code.

    `masked` is true if the request concerns a restricted subscriber and the admin has not verified
    a one-time code. The values of `changes` are then hidden, and `result` is null.
    """

    EXAMPLES: ClassVar = {"changes": {"status": ["ACTIVE", "BLOCKED"]}}

    id: Id
    operation: OperationField
    summary: str
    reason: Annotated[str, Example("Fees of the new price list")] | None
    changes: dict[str, Any]
    amount: Money | None
    resource_id: str | None
    maker: str
    maker_name: str
    approvers: list[str]
    required_approvers: int
    roles: list[AdminRole]
    decisions: list[ApprovalDecision]
    status: ApprovalStatus
    code: Word | None
    result: dict[str, Any] | None
    created_at: Time
    expires_at: Time
    updated_at: Time
    masked: bool | msgspec.UnsetType = msgspec.UNSET
    disclosed: bool | msgspec.UnsetType = msgspec.UNSET


class ApprovalResponse(msgspec.Struct, kw_only=True):
    """Response to a request that an approval rule holds. Nothing was executed."""

    approval: ApprovalRecord
