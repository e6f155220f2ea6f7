"""Which compliance rules a transaction, or a wrong PIN, matches. What is more than a threshold
matches."""

from collections.abc import Iterable, Mapping

from tapgate import ids, money
from tapgate.ledger import chart
from tapgate.ledger.rules import PIN_FAILURES, ComplianceRule
from tapgate.ledger.state import Account, Match, State, subjects

_NONE: Mapping[str, tuple[ComplianceRule, ...]] = {}


def matches(
    state: State, payer: Account | None, payee: Account | None, transaction_type: str, amount: int
) -> list[Match]:
    found = []
    for subject, rules in state.rules.screening.get(transaction_type, _NONE).items():
        for account in subjects(subject, payer, payee):
            for rule in rules:
                figure = _figure(state, rule, account.id, amount)
                if figure > rule.threshold:
                    shown = figure if rule.counts else money.plain(figure, state.rules.currency)
                    found.append(_match(rule, account, transaction_type, shown))
    return found


def _match(
    rule: ComplianceRule, account: Account, transaction_type: str, figure: str | int
) -> Match:
    assert account.owner_id is not None
    details = {
        "rule_type": rule.type,
        "action": rule.action,
        "transaction_type": transaction_type,
        "figure": figure,
    }
    if rule.subject == chart.AGENT:
        details["agent_id"] = ids.show(ids.AGENT, account.owner_id)
    return Match(rule, account.owner_id, None, review=rule.action == "review", details=details)


def _figure(state: State, rule: ComplianceRule, account_id: int, amount: int) -> int:
    """What the rule compares with its threshold, this transaction included."""
    if rule.type == "AMOUNT_THRESHOLD":
        return amount
    if rule.type == PIN_FAILURES:
        return state.wrong_pins.get((rule.id, account_id), 0)
    count, total = state.windows.get((rule.id, account_id), (0, 0))
    return count + 1 if rule.type == "TRANSACTION_COUNT" else total + amount


def wrong_pin_matches(
    watches: Iterable[ComplianceRule],
    wrong_pins: Mapping[tuple[int, int], int],
    account_id: int,
    subscriber_id: int,
) -> list[Match]:
    """A wrong PIN is only noticed here; what the rule does, it does to the next transaction."""
    found = []
    for rule in watches:
        failures = wrong_pins.get((rule.id, account_id), 0)
        if failures > rule.threshold:
            details = {"rule_type": rule.type, "action": rule.action, "figure": failures}
            found.append(Match(rule, subscriber_id, None, review=False, details=details))
    return found
