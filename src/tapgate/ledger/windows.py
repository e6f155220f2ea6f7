"""Transaction counts and volumes per subject in the time windows of compliance rules."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from tapgate import ids
from tapgate.ledger.commands import Command, LedgerCommand
from tapgate.ledger.state import Account, State
from tapgate.rules.compliance import ComplianceRule, get_subject_accounts
from tapgate.schemas.compliance import RuleSubject

#: More than the time of a new ID can be ahead of the clock.
_MAX_CLOCK_LEAD: Final = timedelta(hours=1)

_SELECT_SENT: Final = (
    "SELECT id, amount, type, status FROM transactions WHERE from_account = subject.id"
)
#: `|| ''` prevents the use of the index on the type, so that the planner searches by account.
_SELECT_RECEIVED: Final = """SELECT id, amount, type || '' AS type, status FROM transactions
                      WHERE to_account = subject.id"""
#: subject -> query for the subject's transactions
_SELECT_BY_SUBJECT: Final = {
    RuleSubject.PAYER: _SELECT_SENT,
    RuleSubject.PAYEE: _SELECT_RECEIVED,
    RuleSubject.AGENT: f"{_SELECT_SENT} UNION ALL {_SELECT_RECEIVED}",
}
#: OFFSET 0 is an optimization fence: the types are split once per rule, not once per transaction.
#: $5 and $6 are the start of the longest window and a time after now, so that PostgreSQL opens only
#: the partitions in between.
_COUNT_BY_SUBJECT: Final = {
    subject: f"""
        SELECT rule.id, subject.id, totals.count, totals.total
        FROM unnest($1::bigint[]) AS subject (id)
        CROSS JOIN (SELECT id, since, string_to_array(types, ' ') AS types
                    FROM unnest($2::bigint[], $3::bigint[], $4::text[])
                      AS parameters (id, since, types) OFFSET 0) AS rule
        CROSS JOIN LATERAL (
            SELECT count(*), sum(amount)::bigint AS total FROM ({transactions}) AS t
            WHERE t.id >= $5 AND t.id < $6 AND t.id >= rule.since
              AND t.type = ANY (rule.types) AND t.status <> 'failed'
        ) AS totals WHERE totals.count > 0"""
    for subject, transactions in _SELECT_BY_SUBJECT.items()
}


async def load_windows(tx: Any, state: State, commands: Sequence[LedgerCommand]) -> None:
    """Load the window totals for a batch, with at most one statement per kind of subject."""
    for subject, sql in _COUNT_BY_SUBJECT.items():
        rules = state.rules.list_window_rules(subject)
        accounts = _get_subject_account_ids(state, commands, subject, rules) if rules else None
        if not accounts:
            continue
        since = [
            ids.first_id_at(state.now - timedelta(seconds=rule.window_seconds or 0))
            for rule in rules
        ]
        rows = await tx.fetch(
            sql,
            list(accounts),
            [rule.id for rule in rules],
            since,
            [" ".join(rule.transaction_types) for rule in rules],
            min(since),
            ids.first_id_at(state.now + _MAX_CLOCK_LEAD),
        )
        for rule_id, account_id, count, total in rows:
            state.window_totals[rule_id, account_id] = (count, total)


def _get_subject_account_ids(
    state: State, commands: Sequence[LedgerCommand], subject: str, rules: Sequence[ComplianceRule]
) -> set[int]:
    screened_types = {kind for rule in rules for kind in rule.transaction_types}
    return {
        account.id
        for command in commands
        if isinstance(command, Command) and command.type in screened_types
        for account in get_subject_accounts(
            subject,
            None if subject == RuleSubject.PAYEE else state.find_party(command.payer)[0],
            None if subject == RuleSubject.PAYER else _find_payee(state, command),
        )
    }


def _find_payee(state: State, command: Command) -> Account | None:
    original = state.transactions.get(command.original_id or 0)
    if original is not None:  # a refund goes back to the original payer
        return state.accounts.get(original.from_account or 0)
    return state.find_party(command.payee)[0]
