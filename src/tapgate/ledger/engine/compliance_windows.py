"""Transaction counts and volumes per subject in compliance rule time windows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from tapgate.core.id_generator import first_id_at
from tapgate.ledger.commands import Command, LedgerCommand
from tapgate.ledger.decisions.state import Account, State
from tapgate.ledger.rules.compliance import ComplianceRule, get_subject_accounts
from tapgate.runtime.store.combined import Query
from tapgate_client.schemas.compliance import RuleSubject

#: More than a new ID's time can be ahead of the clock.
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
#: $5 and $6 are the start of the longest window and a time after now, so that PostgreSQL opens only
#: the partitions in between. $7 are cards, whose accounts are read in the same statement as the
#: cards themselves. Each subject's transactions are read once for all rules: OFFSET 0 is an
#: optimization fence. The types are split once per rule.
_COUNT_BY_SUBJECT: Final = {
    subject: f"""
        WITH rule AS MATERIALIZED (
            SELECT id, since, string_to_array(types, ' ') AS types
            FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS parameters (id, since, types)
        )
        SELECT rule.id, subject.id, count(*), sum(t.amount)::bigint
        FROM (SELECT unnest($1::bigint[])
              UNION SELECT account_id FROM cards WHERE serial = ANY ($7::text[])) AS subject (id)
        CROSS JOIN LATERAL (
            SELECT * FROM ({transactions}) AS moved
            WHERE moved.id >= $5 AND moved.id < $6 AND moved.status <> 'failed' OFFSET 0
        ) AS t
        JOIN rule ON t.id >= rule.since AND t.type = ANY (rule.types)
        GROUP BY rule.id, subject.id"""
    for subject, transactions in _SELECT_BY_SUBJECT.items()
}


def build_queries(state: State, commands: Sequence[LedgerCommand]) -> list[Query | None]:
    """Return a query for window totals by subject kind, or None if not needed.

    Its rows are a rule ID, an account ID, the count and the total amount. The cards are not loaded
    yet: parties that are identified by a card are subjects by card serial.
    """
    return [_build_query(state, commands, subject) for subject in _COUNT_BY_SUBJECT]


def _build_query(
    state: State, commands: Sequence[LedgerCommand], subject: RuleSubject
) -> Query | None:
    rules = state.rules.list_window_rules(subject)
    if not rules:
        return None
    account_ids, card_serials = _find_subjects(state, commands, subject, rules)
    if not account_ids and not card_serials:
        return None
    since = [first_id_at(state.now - timedelta(seconds=rule.window_seconds or 0)) for rule in rules]
    return Query(
        _COUNT_BY_SUBJECT[subject],
        (
            list(account_ids),
            [rule.id for rule in rules],
            since,
            [" ".join(rule.transaction_types) for rule in rules],
            min(since),
            first_id_at(state.now + _MAX_CLOCK_LEAD),
            list(card_serials),
        ),
    )


def _find_subjects(
    state: State, commands: Sequence[LedgerCommand], subject: str, rules: Sequence[ComplianceRule]
) -> tuple[set[int], set[str]]:
    """Return account IDs and card serials, which always belong to wallets."""
    screened_types = {kind for rule in rules for kind in rule.transaction_types}
    account_ids: set[int] = set()
    card_serials: set[str] = set()
    for command in commands:
        if not isinstance(command, Command) or command.type not in screened_types:
            continue
        payer = None if subject == RuleSubject.PAYEE else state.find_party(command.payer)[0]
        payee = None if subject == RuleSubject.PAYER else _find_payee(state, command)
        account_ids.update(account.id for account in get_subject_accounts(subject, payer, payee))
        party = command.payer if subject == RuleSubject.PAYER else command.payee
        if party.by == "card" and subject != RuleSubject.AGENT:
            card_serials.add(str(party.key))
    return account_ids, card_serials


def _find_payee(state: State, command: Command) -> Account | None:
    original = state.transactions.get(command.original_id or 0)
    if original is not None:  # a refund goes back to the original payer
        return state.accounts.get(original.from_account or 0)
    return state.find_party(command.payee)[0]
