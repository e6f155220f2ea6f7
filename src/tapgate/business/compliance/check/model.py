"""Results of compliance checks, and risk scoring."""

from typing import Final

from tapgate.ledger.decisions.assess import Assessment
from tapgate_client.errors import TABLE, Code
from tapgate_client.schemas.compliance import ComplianceCheckResult, RuleAction, Severity, Violation

#: risk level -> (minimum score, maximum score)
_SCORE_RANGES: Final = {
    Severity.LOW: (10, 29),
    Severity.MEDIUM: (30, 59),
    Severity.HIGH: (60, 84),
    Severity.CRITICAL: (85, 100),
}
_SCORE_PER_FURTHER_FINDING: Final = 5

#: Limit breaches are routine (MEDIUM); acting while blocked is suspicious (HIGH).
_BLOCKED_SEVERITY: Final = Severity.HIGH
_LIMIT_SEVERITY: Final = Severity.MEDIUM

_ACTION_TEXTS: Final = {
    RuleAction.ALERT: "An alert would be raised.",
    RuleAction.REVIEW: "The transaction would be held for review.",
}


def build_result(assessment: Assessment) -> ComplianceCheckResult:
    """Build a check result.

    A transaction is allowed if it passes all assessed checks, regardless of available funds. The
    violations also include the rules that would hold the transaction or raise an alert.

    The risk level is the highest severity found: a rule's own severity, HIGH for an inactive
    subscriber, MEDIUM for a limit. Each additional finding raises the score within the level.
    """
    violations, severities = [], []
    rejections = [
        rejection
        for rejection in assessment.rejections
        if rejection.code != Code.INSUFFICIENT_FUNDS
    ]
    for rejection in rejections:
        violations.append(Violation(str(rejection.code), TABLE[rejection.code][1]))
        if rejection.code == Code.SUBSCRIBER_BLOCKED:
            severities.append(_BLOCKED_SEVERITY)
        elif rejection.code != Code.COMPLIANCE_REJECTED:  # its rules are in `matches`
            severities.append(_LIMIT_SEVERITY)
    for match in assessment.matches:
        action = RuleAction(match.rule.action)
        severities.append(Severity(match.rule.severity))
        if action in _ACTION_TEXTS:
            message = f"Exceeds the threshold of a compliance rule. {_ACTION_TEXTS[action]}"
            violations.append(Violation(match.rule.type, message))
    level, score = _rate_risk(severities)
    return ComplianceCheckResult(
        allowed=not rejections, risk_level=level, score=score, violations=violations
    )


def _rate_risk(severities: list[Severity]) -> tuple[Severity, int]:
    if not severities:
        return Severity.LOW, 0
    worst = max(severities, key=list(Severity).index)
    lowest, highest = _SCORE_RANGES[worst]
    return worst, min(highest, lowest + _SCORE_PER_FURTHER_FINDING * (len(severities) - 1))
