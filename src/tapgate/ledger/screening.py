"""Compliance rules that a transaction or a wrong PIN matches.

A rule matches when the count or amount that it measures exceeds the threshold.
"""

from collections.abc import Iterable, Mapping

from tapgate import ids, money
from tapgate.ledger import chart
from tapgate.ledger.rules import PIN_FAILURES, ComplianceRule
from tapgate.ledger.state import Account, RuleMatch, State, get_subject_accounts

_NO_RULES: Mapping[str, tuple[ComplianceRule, ...]] = {}


def find_matches(
    state: State, payer: Account | None, payee: Account | None, transaction_type: str, amount: int
) -> list[RuleMatch]:
    matches = []
    for subject, rules in state.rules.screening.get(transaction_type, _NO_RULES).items():
        for account in get_subject_accounts(subject, payer, payee):
            for rule in rules:
                value = _measure(state, rule, account.id, amount)
                if value > rule.threshold:
                    formatted = (
                        value
                        if rule.is_count_based
                        else money.format_decimal(value, state.rules.currency)
                    )
                    matches.append(_build_match(rule, account, transaction_type, formatted))
    return matches


def _build_match(
    rule: ComplianceRule, account: Account, transaction_type: str, value: str | int
) -> RuleMatch:
    assert account.owner_id is not None
    details = {
        "rule_type": rule.type,
        "action": rule.action,
        "transaction_type": transaction_type,
        "figure": value,
    }
    if rule.subject == chart.AGENT:
        details["agent_id"] = ids.encode(ids.AGENT, account.owner_id)
    return RuleMatch(
        rule, account.owner_id, None, needs_review=rule.action == "review", details=details
    )


def _measure(state: State, rule: ComplianceRule, account_id: int, amount: int) -> int:
    """Return the count or amount to compare with the rule's threshold.

    It includes this transaction, except for a rule that counts wrong PINs.
    """
    if rule.type == "AMOUNT_THRESHOLD":
        return amount
    if rule.type == PIN_FAILURES:
        return state.wrong_pin_counts.get((rule.id, account_id), 0)
    count, total = state.window_totals.get((rule.id, account_id), (0, 0))
    return count + 1 if rule.type == "TRANSACTION_COUNT" else total + amount


def find_wrong_pin_matches(
    rules: Iterable[ComplianceRule],
    failure_counts: Mapping[tuple[int, int], int],
    account_id: int,
    subscriber_id: int,
) -> list[RuleMatch]:
    """Return the rule matches of a wrong PIN, which `failure_counts` already includes.

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
