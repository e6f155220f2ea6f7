"""Commission on cash-in and cash-out: matches with earlier movements, posting and storage.

The wallet is locked during the decision, and the matches are stored in the same database
transaction. `ledger/rules/commission.py` has the rules.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tapgate.core.id_generator import first_id_at
from tapgate.ledger import chart
from tapgate.ledger.decisions.state import Account, CashPair, EarnedCommission, Posting, State
from tapgate.ledger.rules.commission import (
    CashMovement,
    calculate_commission,
    get_window_start,
    match_movements,
)

#: More than an ID's time can differ from the transaction's.
_ID_TIME_TOLERANCE: Final = timedelta(hours=1)


def get_agent_id(state: State, transaction_type: str, from_account: int, to_account: int) -> int:
    """Return the agent of a cash-in or cash-out, whose accounts are loaded."""
    float_id = from_account if transaction_type == chart.AGENT_CASHIN else to_account
    owner_id = state.accounts[float_id].owner_id
    assert owner_id is not None
    return owner_id


def get_pair(state: State, transaction_type: str, from_account: int, to_account: int) -> CashPair:
    agent = state.agents[get_agent_id(state, transaction_type, from_account, to_account)]
    wallet_id = to_account if transaction_type == chart.AGENT_CASHIN else from_account
    return CashPair(wallet_id, agent.family_id)


def earn_commission(
    state: State,
    transaction_type: str,
    payer: Account,
    payee: Account,
    amount: int,
    requested_at: datetime,
) -> EarnedCommission:
    """Calculate the commission with the rules in effect now.

    The matching window is relative to the request, see `get_window_start`.
    """
    since = get_window_start(requested_at, state.now)
    pair = get_pair(state, transaction_type, payer.id, payee.id)
    matches = match_movements(state.cash_movements.get(pair, ()), transaction_type, amount, since)
    agent = state.agents[get_agent_id(state, transaction_type, payer.id, payee.id)]
    commission, remainder = calculate_commission(
        state.rules.commissions.get((transaction_type, agent.commission_tier)),
        amount,
        sum(match.amount for match in matches),
        agent.commission_remainder,
    )
    return EarnedCommission(pair, agent.id, matches, commission, remainder)


def build_posting(state: State, earned: EarnedCommission) -> Posting:
    """Return the posting with which the platform pays the commission."""
    expense = state.rules.platform_accounts[chart.COMMISSION_EXPENSE]
    account_id = state.agents[earned.agent_id].commission_account_id
    return Posting(expense, account_id, earned.amount)


async def load_movements(
    tx: Any, since: Mapping[CashPair, datetime]
) -> dict[CashPair, list[CashMovement]]:
    """Return each pair's completed movements since its start time, oldest first.

    $4 is the first ID at that time, so that PostgreSQL opens only the newest partitions. Movements
    that completed after a review may have an older ID; they have a separate table. A wallet has far
    fewer recent transactions than an agent family, so its indexes are used.
    """
    rows = await tx.fetch(
        """SELECT pair.wallet_id, pair.family_id, moved.id, moved.type, moved.completed_at,
                  (CASE moved.type WHEN 'agent_cashout' THEN moved.amount
                                   ELSE coalesce(own.amount, 0) END
                   - coalesce(used.amount, 0))::bigint AS unmatched
           FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[])
             AS pair (wallet_id, family_id, since)
           CROSS JOIN LATERAL (
               SELECT id, type, amount, completed_at, to_account AS float_id FROM transactions
               WHERE from_account = pair.wallet_id AND left(type, 10) = 'agent_cash'
                 AND completed_at >= pair.since AND id >= $4
               UNION ALL
               SELECT id, type, amount, completed_at, from_account FROM transactions
               WHERE to_account = pair.wallet_id AND left(type, 10) = 'agent_cash'
                 AND completed_at >= pair.since AND id >= $4
               UNION ALL
               SELECT transaction_id, type, amount, completed_at,
                      CASE type WHEN 'agent_cashin' THEN from_account ELSE to_account END
               FROM released_cash
               WHERE CASE type WHEN 'agent_cashin' THEN to_account ELSE from_account END
                     = pair.wallet_id
                 AND completed_at >= pair.since AND transaction_id < $4
           ) AS moved
           LEFT JOIN LATERAL (SELECT sum(amount) AS amount FROM cash_matches
                              WHERE transaction_id = moved.id) AS own ON true
           LEFT JOIN LATERAL (SELECT sum(amount) AS amount FROM cash_matches
                              WHERE matched_id = moved.id) AS used ON true
           WHERE pair.family_id = (SELECT coalesce(parent_agent_id, id) FROM agents
                                   WHERE account_id = moved.float_id)
           ORDER BY moved.completed_at, moved.id""",
        [pair.wallet_id for pair in since],
        [pair.family_id for pair in since],
        list(since.values()),
        first_id_at(min(since.values()) - _ID_TIME_TOLERANCE),
    )
    movements: dict[CashPair, list[CashMovement]] = {}
    for wallet_id, family_id, *movement in rows:
        movements.setdefault(CashPair(wallet_id, family_id), []).append(CashMovement(*movement))
    return movements


async def store_matches(tx: Any, matches: Collection[tuple[int, int, int]], now: datetime) -> None:
    """Insert a batch's matches: transaction ID, matched transaction ID and amount."""
    await tx.execute(
        """INSERT INTO cash_matches (transaction_id, matched_id, amount, matched_at)
           SELECT *, $4::timestamptz FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])""",
        *map(list, zip(*matches, strict=True)),
        now,
    )
