"""Database writes of a batch, in a constant number of statements."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from tapgate.ids import IdGenerator
from tapgate.ledger import chart, commission, pin_failures, rollups
from tapgate.ledger.alerts import raise_alerts
from tapgate.ledger.commands import encode_result
from tapgate.ledger.events import enqueue_events
from tapgate.ledger.low_float import find_low_floats
from tapgate.ledger.receipts import enqueue_notifications
from tapgate.ledger.rejected_taps import store_rejected_taps
from tapgate.ledger.state import Account, Card, Decision, NewTransaction, State, StoredTransaction

_TRANSACTION_COLUMNS: Final = (
    "id", "type", "status", "channel", "amount", "fee_amount", "from_account", "to_account",
    "from_balance", "to_balance", "held", "card_serial", "to_card_serial", "original_id",
    "usage_day", "scope", "request_id", "fingerprint", "answer", "partner_id", "partner_reference",
    "failure_code", "context", "currency", "created_at", "completed_at",
)  # fmt: skip
_ENTRY_COLUMNS: Final = ("transaction_id", "position", "debit_account", "credit_account", "amount")


async def write(tx: Any, state: State, decisions: Sequence[Decision], new_id: IdGenerator) -> None:
    await _update_accounts_and_cards(tx, state)
    await _update_pins(tx, state)
    await _insert_entries(tx, decisions)
    await _insert_pin_failures(tx, state, decisions)
    await _store_commissions(tx, state, decisions)
    matches = [match for decision in decisions for match in decision.matches]
    new_alerts = await raise_alerts(tx, matches, state.now, new_id)
    rejected_taps = [decision.rejected_tap for decision in decisions if decision.rejected_tap]
    clones = await store_rejected_taps(tx, rejected_taps, state.now, new_id)
    low_floats = find_low_floats(state, decisions)
    await enqueue_events(tx, state, decisions, new_alerts, low_floats, clones, new_id)
    await enqueue_notifications(tx, state, decisions, low_floats)
    await rollups.add_to_rollups(tx, state, decisions, new_id.slot)
    # Merchants' accounts are last in the lock order and stay locked until the commit, so only
    # statements that need their balances follow.
    merchant_balances = await _credit_merchants(tx, state)
    new_rows = [decision.transaction for decision in decisions if decision.transaction is not None]
    changed_rows = [row for row in state.transactions.values() if row.is_changed]
    rows: list[NewTransaction | StoredTransaction] = [*new_rows, *changed_rows]
    for row in rows:
        _set_merchant_balance(row, state, merchant_balances)
    await _insert_transactions(tx, state, new_rows)
    await _update_transactions(tx, changed_rows)


async def _update_accounts_and_cards(tx: Any, state: State) -> None:
    """Update balances, usage and counters. One statement for both tables costs less than two."""
    accounts = [
        account for account in state.accounts.values() if account.is_changed and account.is_locked
    ]
    cards = [card for card in state.cards.values() if card.is_changed]
    if accounts and cards:
        await tx.execute(
            _UPDATE_BOTH, *_build_account_columns(accounts), state.now, *_build_card_columns(cards)
        )
    elif accounts:
        await tx.execute(_UPDATE_ACCOUNTS, *_build_account_columns(accounts), state.now)
    elif cards:
        await tx.execute(_UPDATE_CARDS.format(*range(1, 8)), *_build_card_columns(cards))


_UPDATE_ACCOUNTS: Final = """
    UPDATE accounts SET balance = new.balance, held = new.held, usage_day = new.usage_day,
           day_used = new.day_used, month_used = new.month_used, updated_at = $7
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::date[], $5::bigint[], $6::bigint[])
      AS new (id, balance, held, usage_day, day_used, month_used)
    WHERE accounts.id = new.id"""
#: Updates usage and counters. A card without an account is not locked. It has no usage of its own
#: to store, but another process may have linked it and used it, and its counter may have risen.
_UPDATE_CARDS: Final = """
    UPDATE cards
    SET usage_day = CASE WHEN new.is_locked THEN new.usage_day ELSE cards.usage_day END,
        day_spent = CASE WHEN new.is_locked THEN new.day_spent ELSE cards.day_spent END,
        day_unpinned = CASE WHEN new.is_locked THEN new.day_unpinned ELSE cards.day_unpinned END,
        last_counter = CASE WHEN cards.key_version = new.key_version
                            THEN greatest(cards.last_counter, new.last_counter)
                            ELSE cards.last_counter END
    FROM unnest(${}::bigint[], ${}::date[], ${}::bigint[], ${}::bigint[], ${}::smallint[],
                ${}::integer[], ${}::boolean[])
      AS new (id, usage_day, day_spent, day_unpinned, key_version, last_counter, is_locked)
    WHERE cards.id = new.id"""
_UPDATE_BOTH: Final = f"WITH card AS ({_UPDATE_CARDS.format(*range(8, 15))}) {_UPDATE_ACCOUNTS}"


def _build_account_columns(rows: Sequence[Account]) -> tuple[list[Any], ...]:
    return (
        [row.id for row in rows],
        [row.balance for row in rows],
        [row.held for row in rows],
        [row.usage_day for row in rows],
        [row.day_used for row in rows],
        [row.month_used for row in rows],
    )


def _build_card_columns(rows: Sequence[Card]) -> tuple[list[Any], ...]:
    return (
        [row.id for row in rows],
        [row.usage_day for row in rows],
        [row.day_spent for row in rows],
        [row.day_unpinned for row in rows],
        [row.key_version for row in rows],
        [row.last_counter for row in rows],
        [row.account_id is not None for row in rows],
    )


async def _update_pins(tx: Any, state: State) -> None:
    rows = [state.pins[holder] for holder in state.changed_pin_holders]
    if rows:
        await tx.execute(
            """UPDATE pins SET failures = new.failures, locked_until = new.locked_until
               FROM unnest($1::bigint[], $2::smallint[], $3::timestamptz[])
                 AS new (holder_id, failures, locked_until)
               WHERE pins.holder_id = new.holder_id""",
            [row.holder_id for row in rows],
            [row.failures for row in rows],
            [row.locked_until for row in rows],
        )


async def _insert_pin_failures(tx: Any, state: State, decisions: Sequence[Decision]) -> None:
    account_ids = [
        decision.wrong_pin_account_id
        for decision in decisions
        if decision.wrong_pin_account_id is not None
    ]
    if account_ids:
        await pin_failures.add_failures(tx, account_ids, state.now)


async def _store_commissions(tx: Any, state: State, decisions: Sequence[Decision]) -> None:
    agents = [agent for agent in state.agents.values() if agent.is_changed]
    if agents:
        await tx.execute(
            """UPDATE agents SET commission_remainder = new.remainder
               FROM unnest($1::bigint[], $2::integer[]) AS new (id, remainder)
               WHERE agents.id = new.id""",
            [agent.id for agent in agents],
            [agent.commission_remainder for agent in agents],
        )
    matches = [
        (decision.transaction_id, match)
        for decision in decisions
        if decision.earned_commission is not None
        for match in decision.earned_commission.matches
    ]
    if matches:
        await commission.store_matches(tx, matches, state.now)


async def _credit_merchants(tx: Any, state: State) -> dict[int, int]:
    """Credit the changed credit-only accounts, and return their new balances by account ID."""
    rows = [
        account
        for account in state.accounts.values()
        if account.is_changed and not account.is_locked and account.owner_id is not None
    ]
    if not rows:
        return {}
    updated = await tx.fetch(
        """WITH locked AS MATERIALIZED (
               SELECT id FROM accounts WHERE id = ANY ($1::bigint[]) ORDER BY id
               FOR NO KEY UPDATE
           )
           UPDATE accounts SET balance = balance + new.delta, updated_at = $3
           FROM unnest($1::bigint[], $2::bigint[]) AS new (id, delta) JOIN locked USING (id)
           WHERE accounts.id = new.id
           RETURNING accounts.id, accounts.balance""",
        [row.id for row in rows],
        [row.delta for row in rows],
        state.now,
    )
    return {row["id"]: row["balance"] for row in updated}


def _set_merchant_balance(
    row: NewTransaction | StoredTransaction, state: State, merchant_balances: dict[int, int]
) -> None:
    if row.to_balance_offset is not None and row.to_account is not None:
        merchant: Account = state.accounts[row.to_account]
        row.to_balance = merchant_balances[merchant.id] - merchant.delta + row.to_balance_offset


async def _insert_transactions(tx: Any, state: State, rows: Sequence[NewTransaction]) -> None:
    if rows:
        await tx.copy_records_to_table(
            "transactions",
            columns=_TRANSACTION_COLUMNS,
            records=[_build_row(row, state.rules.currency, state.now) for row in rows],
        )


def _build_row(row: NewTransaction, currency: str, now: datetime) -> tuple[Any, ...]:
    key, reference = row.idempotency_key, row.reference
    return (
        row.id,
        row.type,
        row.status,
        row.channel,
        row.amount,
        row.fee_amount,
        row.from_account,
        row.to_account,
        row.from_balance,
        row.to_balance,
        row.held,
        row.card_serial,
        row.to_card_serial,
        row.original_id,
        row.usage_day,
        key and key.scope,
        key and key.request_id,
        key and key.fingerprint,
        encode_result(row.result),
        reference and reference.partner_id,
        reference and reference.reference,
        row.failure_code,
        row.context,
        currency,
        now,
        now if row.status == chart.COMPLETED else None,
    )


async def _insert_entries(tx: Any, decisions: Sequence[Decision]) -> None:
    rows = [
        (decision.transaction_id, position, *posting)
        for decision in decisions
        for position, posting in enumerate(decision.postings)
    ]
    if rows:
        await tx.copy_records_to_table("entries", columns=_ENTRY_COLUMNS, records=rows)


async def _update_transactions(tx: Any, rows: Sequence[StoredTransaction]) -> None:
    if rows:
        await tx.execute(
            """UPDATE transactions SET status = new.status,
                      refunded_amount = new.refunded_amount,
                      failure_code = coalesce(new.failure_code, transactions.failure_code),
                      completed_at = coalesce(new.completed_at, transactions.completed_at),
                      from_balance = coalesce(new.from_balance, transactions.from_balance),
                      to_balance = coalesce(new.to_balance, transactions.to_balance)
               FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[],
                           $5::timestamptz[], $6::bigint[], $7::bigint[])
                 AS new (id, status, refunded_amount, failure_code, completed_at, from_balance,
                         to_balance)
               WHERE transactions.id = new.id AND transactions.id = ANY ($1::bigint[])
                 AND transactions.id >= $8 AND transactions.id <= $9""",
            [row.id for row in rows],
            [row.status for row in rows],
            [row.refunded_amount for row in rows],
            [row.failure_code for row in rows],
            [row.completed_at for row in rows],
            [row.from_balance for row in rows],
            [row.to_balance for row in rows],
            min(row.id for row in rows),
            max(row.id for row in rows),
        )
