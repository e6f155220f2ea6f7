"""Compliance decisions: which rules a transaction or a wrong PIN matches, and what alerts disclose.

A rule matches when the count or amount that it measures exceeds the threshold.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from tapgate_client import ids, money
from tapgate_client.schemas.compliance import RuleAction, RuleStatus, RuleSubject, RuleType
from tapgate_client.schemas.transactions import TransactionType

#: Rule types whose threshold is a count, not an amount.
COUNT_RULE_TYPES: Final = frozenset({RuleType.TRANSACTION_COUNT, RuleType.PIN_FAILURES})
# Plain strings, because every transaction compares them and enum members compare more slowly.
_PAYER, _PAYEE, _AGENT = (subject.value for subject in RuleSubject)
_AMOUNT_THRESHOLD: Final = RuleType.AMOUNT_THRESHOLD.value
_TRANSACTION_COUNT: Final = RuleType.TRANSACTION_COUNT.value
_PIN_FAILURES: Final = RuleType.PIN_FAILURES.value

_FIGURE_PATTERN: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,4})?")
#: Fields that compliance rules write into an alert's details, with their value validators. The
#: rule type is omitted because it is the same as the alert's type.
_RULE_DETAIL_VALIDATORS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "action": lambda value: value in list(RuleAction),
    "transaction_type": lambda value: value in list(TransactionType),
    "figure": lambda value: _FIGURE_PATTERN.fullmatch(str(value)) is not None,
    "agent_id": lambda value: isinstance(value, str) and ids.decode(ids.AGENT, value) is not None,
}


class ComplianceRule(msgspec.Struct, frozen=True, kw_only=True):
    """Rule as stored. The threshold is in minor units, or a count."""

    id: int
    name: str = ""
    type: str
    subject: str = RuleSubject.PAYER
    transaction_types: list[str]
    threshold: int
    window_seconds: int | None
    action: str
    severity: str
    status: str = RuleStatus.ACTIVE

    @property
    def is_count_based(self) -> bool:
        return self.type in COUNT_RULE_TYPES

    @property
    def public_id(self) -> str:
        return ids.encode(ids.RULE, self.id)

    def covers(self, created_at: datetime, now: datetime) -> bool:
        """Return whether the rule's time window includes a transaction."""
        return created_at >= now - timedelta(seconds=self.window_seconds or 0)


#: transaction type -> subject -> the rules that apply
RuleIndex = dict[str, dict[str, tuple[ComplianceRule, ...]]]
_NO_RULES: Final[Mapping[str, tuple[ComplianceRule, ...]]] = {}


class RuleMatch(NamedTuple):
    """A compliance rule that a transaction or a wrong PIN matches."""

    rule: ComplianceRule
    subject_id: int  # the rule's subject: a subscriber or an agent
    transaction_id: int | None
    needs_review: bool
    details: dict[str, Any]


class SubjectAccount(Protocol):
    """A payer's or payee's account."""

    id: int
    kind: str
    owner_id: int | None


AccountT = TypeVar("AccountT", bound=SubjectAccount)


class Measurements(Protocol):
    """Account activity in rule time windows, by (rule ID, account ID)."""

    window_totals: dict[tuple[int, int], tuple[int, int]]  # count and total amount
    wrong_pin_counts: dict[tuple[int, int], int]


def index_rules(rules: Iterable[ComplianceRule]) -> RuleIndex:
    """Group rules by transaction type and subject, for fast screening."""
    index: RuleIndex = {}
    for rule in rules:
        for transaction_type in rule.transaction_types:
            by_subject = index.setdefault(transaction_type, {})
            by_subject[rule.subject] = (*by_subject.get(rule.subject, ()), rule)
    return index


def get_subject_accounts(
    subject: str, payer: AccountT | None, payee: AccountT | None
) -> tuple[AccountT, ...]:
    """Return the accounts that a rule with this subject applies to."""
    if subject == _PAYER:
        return (payer,) if payer is not None and payer.kind == "wallet" else ()
    if subject == _PAYEE:
        return (payee,) if payee is not None and payee.kind == "wallet" else ()
    return tuple(
        account for account in (payer, payee) if account is not None and account.kind == "float"
    )


def find_matches(
    index: RuleIndex,
    measurements: Measurements,
    payer: SubjectAccount | None,
    payee: SubjectAccount | None,
    transaction_type: str,
    amount: int,
    currency: str,
) -> list[RuleMatch]:
    matches = []
    for subject, rules in index.get(transaction_type, _NO_RULES).items():
        for account in get_subject_accounts(subject, payer, payee):
            for rule in rules:
                value = _measure(measurements, rule, account.id, amount)
                if value > rule.threshold:
                    formatted = (
                        value if rule.is_count_based else money.format_decimal(value, currency)
                    )
                    matches.append(_build_match(rule, account, transaction_type, formatted))
    return matches


def _build_match(
    rule: ComplianceRule, account: SubjectAccount, transaction_type: str, value: str | int
) -> RuleMatch:
    assert account.owner_id is not None
    details = {
        "rule_type": rule.type,
        "action": rule.action,
        "transaction_type": transaction_type,
        "figure": value,
    }
    if rule.subject == _AGENT:
        details["agent_id"] = ids.encode(ids.AGENT, account.owner_id)
    needs_review = rule.action == RuleAction.REVIEW
    return RuleMatch(rule, account.owner_id, None, needs_review=needs_review, details=details)


def _measure(measurements: Measurements, rule: ComplianceRule, account_id: int, amount: int) -> int:
    """Return the count or amount to compare with the rule's threshold.

    It includes this transaction, except for a rule that counts wrong PINs.
    """
    if rule.type == _AMOUNT_THRESHOLD:
        return amount
    if rule.type == _PIN_FAILURES:
        return measurements.wrong_pin_counts.get((rule.id, account_id), 0)
    count, total = measurements.window_totals.get((rule.id, account_id), (0, 0))
    return count + 1 if rule.type == _TRANSACTION_COUNT else total + amount


def find_wrong_pin_matches(
    rules: Iterable[ComplianceRule],
    failure_counts: Mapping[tuple[int, int], int],
    account_id: int,
    subscriber_id: int,
) -> list[RuleMatch]:
    """Return the rules that a wrong PIN matches, which is already in `failure_counts`.

    These matches only raise alerts. A review or block applies only to later transactions.
    """
    matches = []
    for rule in rules:
        failures = failure_counts.get((rule.id, account_id), 0)
        if failures > rule.threshold:
            details = {"rule_type": rule.type, "action": rule.action, "figure": failures}
            matches.append(
                RuleMatch(rule, subscriber_id, None, needs_review=False, details=details)
            )
    return matches


def remove_personal_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the valid fields that compliance rules write; others may be personal data."""
    return {
        name: value
        for name, value in details.items()
        if name in _RULE_DETAIL_VALIDATORS and _RULE_DETAIL_VALIDATORS[name](value)
    }
