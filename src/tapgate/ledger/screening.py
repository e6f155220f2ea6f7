"""Which compliance rules a transaction, or a wrong PIN, matches. What is more than a threshold
matches."""

from collections.abc import Iterable, Mapping

from tapgate import money
from tapgate.ledger.rules import PIN_FAILURES, ComplianceRule
from tapgate.ledger.state import Account, Match, State


def matches(state: State, payer: Account, transaction_type: str, amount: int) -> list[Match]:
    found = []
    for rule in state.rules.compliance:
        if transaction_type not in rule.transaction_types or payer.owner_id is None:
            continue
        figure = _figure(state, rule, payer.id, amount)
        if figure > rule.threshold:
            shown = figure if rule.counts else money.plain(figure, state.rules.currency)
            found.append(
                Match(
                    rule=rule,
                    subscriber_id=payer.owner_id,
                    transaction_id=None,
                    review=rule.action == "review",
                    details={
                        "rule_type": rule.type,
                        "action": rule.action,
                        "transaction_type": transaction_type,
                        "figure": shown,
                    },
                )
            )
    return found


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
