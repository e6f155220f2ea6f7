"""Agents whose float drops below the threshold."""

from collections.abc import Sequence
from typing import NamedTuple

from tapgate.ledger import chart
from tapgate.ledger.decisions.state import Decision, State


class LowFloat(NamedTuple):
    transaction_id: int  # the transaction that debited the float
    agent_id: int


def find_low_floats(state: State, decisions: Sequence[Decision]) -> list[LowFloat]:
    """Return each time that an agent's float drops below the threshold, in order.

    Postings are applied one by one, so the result does not depend on how commands are batched.
    """
    floats = {
        account.id: account.balance - account.delta
        for account in state.accounts.values()
        if account.kind == chart.FLOAT and account.is_changed
    }
    if not floats:
        return []
    threshold = state.rules.low_float_threshold
    found: list[LowFloat] = []
    for decision in decisions:
        for posting in decision.postings:
            if posting.credit in floats:
                floats[posting.credit] += posting.amount
            if posting.debit in floats:
                previous_balance = floats[posting.debit]
                floats[posting.debit] = previous_balance - posting.amount
                if previous_balance >= threshold > floats[posting.debit]:
                    agent_id = state.accounts[posting.debit].owner_id
                    assert agent_id is not None
                    found.append(LowFloat(decision.transaction_id, agent_id))
    return found
