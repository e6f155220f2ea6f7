"""Which compliance rules a transaction matches. What is more than a threshold matches."""

from tapgate import money
from tapgate.ledger.rules import ComplianceRule
from tapgate.ledger.state import Account, Match, State


def matches(state: State, payer: Account, transaction_type: str, amount: int) -> list[Match]:
    found = []
    for rule in state.rules.compliance:
        if transaction_type not in rule.transaction_types or payer.owner_id is None:
            continue
        figure = _figure(state, rule, payer.id, amount)
        if figure is not None and figure > rule.threshold:
            found.append(
                Match(
                    rule=rule,
                    subscriber_id=payer.owner_id,
                    transaction_id=0,
                    review=rule.action == "review",
                    details=_details(state, rule, transaction_type, figure),
                )
            )
    return found


def _figure(state: State, rule: ComplianceRule, account_id: int, amount: int) -> int | None:
    """What the rule compares with its threshold, this transaction included."""
    if rule.type == "AMOUNT_THRESHOLD":
        return amount
    count, total = state.windows.get((rule.id, account_id), (0, 0))
    if rule.type == "TRANSACTION_COUNT":
        return count + 1
    if rule.type == "CUMULATIVE_AMOUNT":
        return total + amount
    return None


def _details(
    state: State, rule: ComplianceRule, transaction_type: str, figure: int
) -> dict[str, object]:
    counted = rule.type == "TRANSACTION_COUNT"
    shown = figure if counted else money.plain(figure, state.rules.currency)
    return {"rule_type": rule.type, "transaction_type": transaction_type, "figure": shown}
