"""Public records and validation of compliance rules."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.core.records import build_record
from tapgate.ledger import chart
from tapgate.ledger.rules.compliance import COUNT_RULE_TYPES, ComplianceRule
from tapgate_client import money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.compliance import (
    NewRule,
    RuleAction,
    RuleRecord,
    RuleSubject,
    RuleType,
    RuleUpdate,
)

#: Fields that an update can change. The type of a rule is fixed.
UPDATABLE_FIELDS: Final = (
    "name", "subject", "transaction_types", "threshold", "window_seconds", "action", "severity",
    "status",
)  # fmt: skip

_MAX_COUNT = 1_000_000
MAX_RULES: Final = 100  # each rule adds latency to every transaction that it screens

_UNSUPPORTED_TYPES_MESSAGES: Final[Mapping[str, str]] = {
    RuleSubject.PAYER: "must not include types that a subscriber never pays:",
    RuleSubject.PAYEE: "must not include types that a subscriber never receives:",
    RuleSubject.AGENT: "must not include types without an agent:",
}


def to_record(rule: ComplianceRule, currency: str) -> RuleRecord:
    threshold = rule.threshold
    return build_record(
        RuleRecord,
        rule,
        id=rule.public_id,
        threshold=threshold if rule.is_count_based else money.format_decimal(threshold, currency),
        currency=None if rule.is_count_based else currency,
    )


def build_rule(rule_id: int, new: NewRule, currency: str) -> ComplianceRule:
    """Return the rule to store, or raise an ApiError if it is invalid."""
    _require_currency(new.currency, currency)
    if new.type == RuleType.AMOUNT_THRESHOLD and new.window_seconds is not None:
        raise _build_window_error(new.type)
    if new.type != RuleType.AMOUNT_THRESHOLD and new.window_seconds is None:
        raise invalid_field("window_seconds", f"is required for a rule of type {new.type}")
    parse = _parse_count if new.type in COUNT_RULE_TYPES else _parse_amount
    fields = {name: getattr(new, name) for name in ("type", *UPDATABLE_FIELDS)}
    fields["transaction_types"] = list(dict.fromkeys(new.transaction_types))
    fields["threshold"] = parse(new.threshold, currency)
    rule = ComplianceRule(id=rule_id, **fields)
    _require_consistent(rule, new)
    return rule


def apply_update(rule: ComplianceRule, update: RuleUpdate, currency: str) -> ComplianceRule:
    """Return the updated rule, or raise an ApiError if the update is invalid."""
    _require_currency(update.currency, currency)
    changes: dict[str, Any] = {
        name: value for name in UPDATABLE_FIELDS if (value := getattr(update, name)) is not None
    }
    if update.window_seconds is not None and rule.window_seconds is None:
        raise _build_window_error(rule.type)
    if update.transaction_types is not None:
        changes["transaction_types"] = list(dict.fromkeys(update.transaction_types))
    if update.threshold is not None:
        parse = _parse_count if rule.is_count_based else _parse_amount
        changes["threshold"] = parse(update.threshold, currency)
    after = msgspec.structs.replace(rule, **changes)
    _require_consistent(after, update)
    return after


def _require_currency(value: str | None, currency: str) -> None:
    if value not in (None, currency):
        raise ApiError(Code.CURRENCY_NOT_SUPPORTED)


def _build_window_error(kind: str) -> ApiError:
    return invalid_field("window_seconds", f"must not be set for a rule of type {kind}")


def _require_consistent(rule: ComplianceRule, request: NewRule | RuleUpdate) -> None:
    """Reject field combinations that could never match or whose action could not be applied.

    Combinations with `transaction_types` are checked only if the request sets one of the combined
    fields, so that other fields can still be changed in an older, inconsistent rule.
    """
    sets_types_or_subject = request.subject is not None or request.transaction_types is not None
    if sets_types_or_subject:
        field = "subject" if request.transaction_types is None else "transaction_types"
        supported = chart.SUBJECT_TYPES[rule.subject]
        unsupported = [kind for kind in rule.transaction_types if kind not in supported]
        if unsupported:
            raise invalid_field(
                field, f"{_UNSUPPORTED_TYPES_MESSAGES[rule.subject]} {', '.join(unsupported)}"
            )
    if rule.type == RuleType.PIN_FAILURES and rule.subject != RuleSubject.PAYER:
        raise invalid_field(
            "subject", f"must be {RuleSubject.PAYER} for a rule of type {rule.type}"
        )
    holds_refunds = rule.action == RuleAction.REVIEW and chart.REFUND in rule.transaction_types
    if holds_refunds and (sets_types_or_subject or request.action is not None):
        field = "action" if request.transaction_types is None else "transaction_types"
        raise invalid_field(field, "cannot hold refunds for review")


def _parse_amount(threshold: str | int, currency: str) -> int:
    if not isinstance(threshold, str):
        raise invalid_field("threshold", "must be a string", Code.INVALID_REQUEST)
    try:
        return money.parse(threshold, currency, allow_zero=True)
    except money.AmountError as error:
        raise invalid_field("threshold", str(error)) from None


def _parse_count(threshold: str | int, _currency: str) -> int:
    """Parse a count given as an integer or a digit string."""
    if isinstance(threshold, str):
        is_valid = threshold.isascii() and threshold.isdigit() and len(threshold) <= 9
        threshold = int(threshold) if is_valid else -1
    if not 0 <= threshold <= _MAX_COUNT:
        raise invalid_field("threshold", f"must be a whole number from 0 to {_MAX_COUNT}")
    return threshold


def require_below_limit(count: int) -> None:
    if count >= MAX_RULES:
        raise ApiError(
            Code.VALIDATION_FAILED, f"The limit of {MAX_RULES} rules is reached. Delete one first."
        )
