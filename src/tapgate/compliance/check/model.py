"""Compliance check requests and results, and risk scoring."""

from typing import Annotated, Final

import msgspec

from tapgate.compliance.severity import SEVERITIES, Severity
from tapgate.errors import TABLE, Code
from tapgate.ledger import chart
from tapgate.ledger.assess import Assessment
from tapgate.schemas.fields import Amount, Choice, Currency, Text

#: Transaction types that involve a subscriber. Refunds are excluded, because the decision depends
#: on the original payment.
_CHECKED_TYPES: Final = tuple(
    kind
    for kind in chart.TRANSACTION_TYPES
    if kind in chart.LIMITED_TYPES | chart.RECEIVE_ONLY_TYPES
)

#: risk level -> (minimum score, maximum score)
_SCORE_RANGES: Final = {
    "LOW": (10, 29),
    "MEDIUM": (30, 59),
    "HIGH": (60, 84),
    "CRITICAL": (85, 100),
}
_SCORE_PER_FURTHER_FINDING: Final = 5

#: Limit breaches are routine (MEDIUM); acting while blocked is suspicious (HIGH).
_BLOCKED_SEVERITY: Final = "HIGH"
_LIMIT_SEVERITY: Final = "MEDIUM"

_ACTION_TEXTS: Final = {
    "alert": "An alert would be raised.",
    "review": "The transaction would be held for review.",
}


class ComplianceCheckRequest(msgspec.Struct, kw_only=True):
    subscriber_id: Text
    amount: Amount
    transaction_type: Annotated[str, Choice(*_CHECKED_TYPES)]
    currency: Currency | None = None


class Violation(msgspec.Struct, frozen=True):
    code: str
    message: str


class ComplianceCheckResult(msgspec.Struct, frozen=True, kw_only=True):
    allowed: bool
    risk_level: Severity
    score: int
    violations: list[Violation]


def build_result(assessment: Assessment) -> ComplianceCheckResult:
    """Build the result of a check.

    A transaction is allowed if it passes all assessed checks, regardless of available funds. The
    violations also include the rules that would hold the transaction or raise an alert.

    The risk level is the highest severity found: a rule's own severity, HIGH for an inactive
    subscriber, MEDIUM for a limit. Each additional finding raises the score within the level.
    """
    violations, severities = [], []
    for rejection in assessment.rejections:
        violations.append(Violation(str(rejection.code), TABLE[rejection.code][1]))
        if rejection.code == Code.SUBSCRIBER_BLOCKED:
            severities.append(_BLOCKED_SEVERITY)
        elif rejection.code != Code.COMPLIANCE_REJECTED:  # its rules are in `matches`
            severities.append(_LIMIT_SEVERITY)
    for match in assessment.matches:
        severities.append(match.rule.severity)
        if match.rule.action in _ACTION_TEXTS:
            message = (
                f"Exceeds the threshold of a compliance rule. {_ACTION_TEXTS[match.rule.action]}"
            )
            violations.append(Violation(match.rule.type, message))
    level, score = _rate_risk(severities)
    return ComplianceCheckResult(
        allowed=not assessment.rejections, risk_level=level, score=score, violations=violations
    )


def _rate_risk(severities: list[str]) -> tuple[str, int]:
    if not severities:
        return "LOW", 0
    worst = max(severities, key=SEVERITIES.index)
    lowest, highest = _SCORE_RANGES[worst]
    return worst, min(highest, lowest + _SCORE_PER_FURTHER_FINDING * (len(severities) - 1))
