"""Approval rules, stored approvals, and the records that clients receive."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from tapgate.auth.disclosure import Subject
from tapgate.business.approval_rules.model import Rule
from tapgate.business.approval_rules.people import LinkedPeople
from tapgate.core.secret_names import is_secret_name
from tapgate.events.audit.entry import MASK
from tapgate_client import clock, ids, money
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.admin import AdminRole, Invitation
from tapgate_client.schemas.approvals import (
    AMOUNT_OPERATIONS,
    ApprovalDecision,
    ApprovalRecord,
    ApprovalRule,
    ApprovalRules,
    ApprovalStatus,
    ApprovalVerdict,
    Operation,
)

#: Period over which the amounts of a maker's requests are added.
SUM_PERIOD: Final = timedelta(hours=24)
#: Request fields that are never stored.
NEVER_STORED_FIELDS: Final = frozenset({"pin", "agent_pin", "new_pin", "password", "otp"})
#: Longest text that approvers see. Longer ones are files in data URIs.
_MAX_SHOWN_LENGTH: Final = 4096
#: Fields that approvers do not need to see.
_UNSHOWN_FIELDS: Final = frozenset({"request_id", "currency"})
#: Result fields with links, in addition to fields whose name indicates a secret.
_LINK_FIELDS: Final = frozenset({"invitation", "url"})
#: Request fields that can identify a subscriber, and the identifier they contain.
_SUBJECT_KINDS: Final = {
    "subscriber_id": "subscriber",
    "card_serial": "card",
    "from_account_id": "account",
    "to_account_id": "account",
}
#: What a request changes, by record ID prefix.
_RESOURCE_KINDS: Final = {
    ids.SUBSCRIBER: "subscriber",
    ids.TRANSACTION: "transaction",
    ids.ALERT: "alert",
}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Admin's decision, with the admin's current role and status."""

    admin_id: int
    admin_name: str
    person: str
    decision: ApprovalVerdict
    reason: str | None
    decided_at: datetime
    role: str
    is_active: bool


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    operation: Operation
    operations: list[Operation]  # all that the request counts as
    summary: str
    reason: str | None
    changes: dict[str, Any]
    amount: int | None
    resource_id: str | None
    maker_id: int
    maker_name: str
    maker_person: str
    #: People besides the maker who hold the API key that made the request.
    other_makers: list[str]
    #: Person or owner whose sums include the amount.
    counted_for: str
    fingerprint: bytes | None
    #: The admin with whose approval the request was executed.
    executed_by: int | None
    #: The admin who receives the secrets in the result.
    result_for: int | None
    roles: list[AdminRole]
    required_approvers: int
    status: ApprovalStatus
    code: str | None
    result: dict[str, Any] | None
    has_secrets: bool
    attempts: int
    created_at: datetime
    expires_at: datetime
    updated_at: datetime

    @property
    def public_id(self) -> str:
        return ids.encode(ids.APPROVAL, self.id)

    def get_status(self, now: datetime) -> ApprovalStatus:
        """Return the status; a pending approval expires even if this is not stored yet."""
        if self.status == ApprovalStatus.PENDING and self.expires_at <= now:
            return ApprovalStatus.EXPIRED
        return self.status

    def is_made_by(self, person: str, linked: LinkedPeople) -> bool:
        """Return whether a person may have made the request, directly or with an API key."""
        makers = (self.maker_person, *self.other_makers)
        return any(linked.may_be_same(person, maker) for maker in makers)

    def has_enough_approvals(self, decisions: Collection[Decision], linked: LinkedPeople) -> bool:
        """Return whether enough different people who still may approve have approved."""
        approvers = {
            decision.person
            for decision in decisions
            if decision.decision == ApprovalVerdict.APPROVE
            and decision.is_active
            and decision.role in self.roles
            and not self.is_made_by(decision.person, linked)
        }
        return linked.count(approvers) >= self.required_approvers


def get_seal_context(approval_id: int, part: str) -> bytes:
    return f"approval {part} {approval_id}".encode()


def require_valid_rules(body: ApprovalRules, currency: str) -> None:
    """Raise an error for the first invalid rule."""
    seen = set()
    for index, rule in enumerate(body.data):
        if rule.above is not None and rule.operation not in AMOUNT_OPERATIONS:
            raise invalid_field(f"data[{index}].above", "requires an operation with an amount")
        key = (rule.operation, rule.above and money.parse(rule.above, currency, allow_zero=True))
        if key in seen:
            raise invalid_field(
                f"data[{index}].operation", "has another rule with the same `above`"
            )
        seen.add(key)


def parse_rules(rules: Sequence[ApprovalRule], currency: str) -> list[Rule]:
    """Return new rules, numbered in their order."""
    return [
        Rule(
            id=number,
            operation=rule.operation,
            above=None
            if rule.above is None
            else money.parse(rule.above, currency, allow_zero=True),
            roles=rule.roles,
            approvers=rule.approvers,
            expires_in=rule.expires_in,
        )
        for number, rule in enumerate(rules, 1)
    ]


def to_rule_record(rule: Rule, currency: str) -> ApprovalRule:
    return ApprovalRule(
        operation=rule.operation,
        above=None if rule.above is None else money.format_decimal(rule.above, currency),
        roles=rule.roles,
        approvers=rule.approvers,
        expires_in=rule.expires_in,
    )


def select_rule(rules: Sequence[Rule], total: int | None) -> Rule | None:
    """Return the operation's strictest rule that requires approval for a request, or None."""
    holding = [rule for rule in rules if rule.holds(total)]
    return max(holding, key=lambda rule: (rule.approvers, rule.above or 0), default=None)


def get_stored_fields(body: Any) -> dict[str, Any]:
    """Return the body fields to store: no PINs, passwords or idempotency key."""
    fields: dict[str, Any] = {} if body is None else msgspec.to_builtins(body)
    for name in NEVER_STORED_FIELDS | {"request_id"}:
        fields.pop(name, None)
    return fields


def build_changes(body: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the old and new values of the fields that a request sets, without secrets."""
    return {
        name: [_to_shown(name, before.get(name)), _to_shown(name, value)]
        for name, value in body.items()
        if name not in _UNSHOWN_FIELDS
        and value is not None
        and (is_secret_name(name) or value != before.get(name))
    }


def _to_shown(name: str, value: Any) -> Any:
    """Mask a secret, and replace a file by a hash."""
    if value is not None and is_secret_name(name):
        return MASK
    if isinstance(value, str) and len(value) > _MAX_SHOWN_LENGTH:
        return f"sha256:{sha256(value.encode()).hexdigest()}"
    return value


def hide_secrets(value: Any, *, has_link: bool = False) -> Any:
    """Return a result without the values that are shown only once."""
    if isinstance(value, Mapping):
        return {
            name: MASK
            if item is not None and (is_secret_name(name) or (has_link and name in _LINK_FIELDS))
            else hide_secrets(item)
            for name, item in value.items()
        }
    return [hide_secrets(item) for item in value] if isinstance(value, list) else value


def has_link(response: Any) -> bool:
    """Return whether a response has a link with which an admin sets a password."""
    if isinstance(response, Invitation):
        return True
    fields = getattr(response, "__struct_fields__", ())
    return any(isinstance(getattr(response, name), Invitation) for name in fields)


def to_record(
    approval: Approval,
    decisions: Sequence[Decision],
    *,
    currency: str,
    now: datetime,
    masked: bool = False,
) -> ApprovalRecord:
    """Return the record for clients, without the secrets in the result."""
    changes = {name: [MASK, MASK] for name in approval.changes} if masked else approval.changes
    amount = approval.amount
    return ApprovalRecord(
        id=approval.public_id,
        operation=approval.operation,
        summary=approval.summary,
        reason=None if masked else approval.reason,
        changes=changes,
        amount=None if amount is None else money.format_decimal(amount, currency),
        resource_id=approval.resource_id,
        maker=ids.encode(ids.ADMIN, approval.maker_id),
        maker_name=approval.maker_name,
        approvers=[
            ids.encode(ids.ADMIN, decision.admin_id)
            for decision in decisions
            if decision.decision == ApprovalVerdict.APPROVE
        ],
        required_approvers=approval.required_approvers,
        roles=approval.roles,
        decisions=[_to_decision_record(decision) for decision in decisions],
        status=approval.get_status(now),
        code=approval.code,
        result=None if masked else approval.result,
        created_at=clock.format_rfc3339(approval.created_at),
        expires_at=clock.format_rfc3339(approval.expires_at),
        updated_at=clock.format_rfc3339(approval.updated_at),
        masked=masked or msgspec.UNSET,
    )


def _to_decision_record(decision: Decision) -> ApprovalDecision:
    return ApprovalDecision(
        admin_id=ids.encode(ids.ADMIN, decision.admin_id),
        admin_name=decision.admin_name,
        decision=decision.decision,
        reason=decision.reason,
        at=clock.format_rfc3339(decision.decided_at),
    )


def list_subjects(approval: Approval) -> list[Subject]:
    """Return the subscribers whose data the changes or result contain: a receipt has balances."""
    subjects = [
        Subject(kind, approval.changes[name][1])
        for name, kind in _SUBJECT_KINDS.items()
        if name in approval.changes
    ]
    kind = _RESOURCE_KINDS.get(ids.get_prefix(approval.resource_id or ""))
    return subjects if kind is None else [*subjects, Subject(kind, str(approval.resource_id))]


def get_phone_owner(approval: Approval) -> str | None:
    """Return the subscriber's or agent's public ID if its phone number changes, or None."""
    return approval.resource_id if "phone_number" in approval.changes else None
