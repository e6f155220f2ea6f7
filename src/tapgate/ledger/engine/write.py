"""A batch's database writes, in a constant number of statements."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger.alerts import raise_alerts
from tapgate.ledger.card_proofs.rejected_taps import store_rejected_taps
from tapgate.ledger.commands import encode_result
from tapgate.ledger.decisions import earned_commission
from tapgate.ledger.decisions.state import Decision, NewTransaction, State, StoredTransaction
from tapgate.ledger.effects import rollups
from tapgate.ledger.effects.batch_events import enqueue_events
from tapgate.ledger.effects.book_transfer_rows import store_book_transfers
from tapgate.ledger.effects.low_float import find_low_floats
from tapgate.ledger.effects.pending_notifications import PendingNotification, build_notifications
from tapgate.ledger.effects.recall_rows import store_recalls
from tapgate.ledger.engine.batch_line_rows import write_batch_lines
from tapgate.ledger.engine.payout_rows import has_payouts, write_payouts
from tapgate.ledger.pins import pin_failures
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate.ledger.pins.wrong_pins import record_wrong_pins
from tapgate.runtime.store.pipeline import fetch_and_commit

#: Updates balances, usage and counters for locked accounts and their cards, and inserts entries.
_WRITE_LOCKED: Final = f"""
    cards_written AS (
        UPDATE cards
        SET usage_day = new.usage_day, day_spent = new.day_spent, day_unpinned = new.day_unpinned,
            last_counter = CASE WHEN cards.key_version = new.key_version
                                THEN greatest(cards.last_counter, new.last_counter)
                                ELSE cards.last_counter END
        FROM unnest($1::batch_card[]) AS new WHERE cards.id = new.id RETURNING 1
    ), accounts_written AS (
        UPDATE accounts SET balance = new.balance, held = new.held, usage_day = new.usage_day,
               day_used = new.day_used, month_used = new.month_used, updated_at = $3
        FROM unnest($2::batch_account[]) AS new WHERE accounts.id = new.id RETURNING 1
    ), entries_written AS (
        INSERT INTO entries (transaction_id, position, debit_account, credit_account, amount)
        SELECT transaction_id, position, debit_account, credit_account, amount
        FROM unnest($4::batch_entry[]) RETURNING 1
    ), rollups_written AS (
        INSERT INTO figures (quarter, type, outcome, failure_code, slot, count, amount, fees)
        SELECT quarter, type, outcome, failure_code, $6, count, amount, fees
        FROM unnest($5::batch_figure[]) {rollups.ON_CONFLICT_ADD} RETURNING 1
    )"""
#: PostgreSQL decides in which order it executes the parts of a statement. The condition on the
#: counts makes it write everything else before it locks the merchants' accounts. They are last in
#: the lock order, after the rollups, which two processes may share, and many batches wait for them.
_CREDIT_MERCHANTS: Final = """
    locked AS MATERIALIZED (
        SELECT id FROM accounts
        WHERE id = ANY ($7::bigint[]) AND 0 <= (SELECT count(*) FROM cards_written)
            + (SELECT count(*) FROM accounts_written) + (SELECT count(*) FROM entries_written)
            + (SELECT count(*) FROM rollups_written) {count_notifications}
        ORDER BY id FOR NO KEY UPDATE
    ), credited AS (
        UPDATE accounts SET balance = balance + new.delta, updated_at = $3
        FROM unnest($7::bigint[], $8::bigint[]) AS new (id, delta) JOIN locked USING (id)
        WHERE accounts.id = new.id
        RETURNING accounts.id, accounts.balance
    )"""
_INSERT_TRANSACTIONS: Final = """
    transactions_written AS (
        INSERT INTO transactions (
            id, type, status, channel, amount, fee_amount, from_account, to_account, from_balance,
            to_balance, held, card_serial, to_card_serial, original_id, usage_day, scope,
            request_id, fingerprint, answer, partner_id, partner_reference, failure_code, context,
            currency, created_at, completed_at)
        SELECT new.id, type, status, channel, amount, fee_amount, from_account, to_account,
               from_balance, coalesce(to_balance, credited.balance + to_balance_offset), held,
               card_serial, to_card_serial, original_id, usage_day, scope, request_id, fingerprint,
               answer, partner_id, partner_reference, failure_code, context, $10, $3,
               CASE status WHEN 'completed' THEN $3 END
        FROM unnest($9::batch_transaction[]) AS new LEFT JOIN credited ON credited.id = to_account
    )"""
_INSERT_NOTIFICATIONS: Final = """
    notifications_written AS (
        INSERT INTO notices (transaction_id, kind, subscriber_id)
        SELECT * FROM unnest($11::bigint[], $12::text[], $13::bigint[]) RETURNING 1
    )"""
_COUNT_NOTIFICATIONS: Final = "+ (SELECT count(*) FROM notifications_written)"
#: Returns credited merchants' new balances.
_WRITE: Final = (
    f"WITH {_WRITE_LOCKED}, {_CREDIT_MERCHANTS.format(count_notifications='')},"
    f" {_INSERT_TRANSACTIONS} SELECT id, balance FROM credited"
)
#: A separate statement, because most batches have no notifications, and every part takes time.
_WRITE_WITH_NOTIFICATIONS: Final = (
    f"WITH {_WRITE_LOCKED}, {_INSERT_NOTIFICATIONS},"
    f" {_CREDIT_MERCHANTS.format(count_notifications=_COUNT_NOTIFICATIONS)},"
    f" {_INSERT_TRANSACTIONS} SELECT id, balance FROM credited"
)


async def write(
    tx: Any,
    state: State,
    decisions: Sequence[Decision],
    new_id: IdGenerator,
    wrong_pin_limit: WrongPinLimit | None = None,
    *,
    commits: bool = False,
) -> None:
    """Write the decisions. With `commits`, commit in the last round trip if that is possible."""
    await update_unlinked_cards(tx, state)
    await _update_pins(tx, state)
    await _insert_pin_failures(tx, state, decisions)
    await _store_commissions(tx, state, decisions)
    matches = [match for decision in decisions for match in decision.matches]
    new_alerts = await raise_alerts(tx, matches, state.now, new_id)
    if wrong_pin_limit is not None:
        wrong_pins = [decision.wrong_pin for decision in decisions if decision.wrong_pin]
        new_alerts += await record_wrong_pins(tx, wrong_pin_limit, wrong_pins, state.now, new_id)
    rejected_taps = [decision.rejected_tap for decision in decisions if decision.rejected_tap]
    clones = await store_rejected_taps(tx, rejected_taps, state.now, new_id)
    await store_recalls(tx, decisions, state)
    await store_book_transfers(tx, decisions, state)
    await write_batch_lines(tx, state, decisions)
    low_floats = find_low_floats(state, decisions)
    await enqueue_events(tx, state, decisions, new_alerts, low_floats, clones, new_id)
    notifications = build_notifications(state, decisions, low_floats)
    # Merchants' accounts stay locked until the commit, so only statements that need their balances
    # follow.
    commits = commits and not any(row.is_changed for row in state.transactions.values())
    commits = commits and not has_payouts(state, decisions)
    merchant_balances = await _write_rows(
        tx, state, decisions, notifications, new_id.slot, commits=commits
    )
    await _update_transactions(tx, state, merchant_balances)
    await write_payouts(tx, state, decisions)


async def _write_rows(
    tx: Any,
    state: State,
    decisions: Sequence[Decision],
    notifications: Sequence[PendingNotification],
    slot: int,
    *,
    commits: bool,
) -> dict[int, int]:
    """Write what every batch writes; return the merchants' new balances by account ID."""
    cards = [
        (card.id, card.usage_day, card.day_spent, card.day_unpinned, card.key_version,
         card.last_counter)
        for card in state.cards.values()
        if card.is_changed and card.account_id is not None
    ]  # fmt: skip
    changed = [account for account in state.accounts.values() if account.is_changed]
    accounts = [
        (row.id, row.balance, row.held, row.usage_day, row.day_used, row.month_used)
        for row in changed
        if row.is_locked
    ]
    merchants = [row for row in changed if not row.is_locked and row.owner_id is not None]
    rollup_rows = rollups.build_rollup_rows(state, decisions)
    if not (cards or changed or rollup_rows or notifications):
        return {}
    fetch = partial(fetch_and_commit, tx) if commits else tx.fetch
    rows = await fetch(
        _WRITE_WITH_NOTIFICATIONS if notifications else _WRITE,
        cards,
        accounts,
        state.now,
        _build_entries(decisions),
        rollup_rows,
        slot,
        [row.id for row in merchants],
        [row.delta for row in merchants],
        [_build_row(row.transaction, state) for row in decisions if row.transaction is not None],
        state.rules.currency,
        *map(list, zip(*notifications, strict=True)),
    )
    return {row["id"]: row["balance"] for row in rows}


def _build_entries(decisions: Sequence[Decision]) -> list[tuple[int, ...]]:
    return [
        (decision.transaction_id, position, *posting)
        for decision in decisions
        for position, posting in enumerate(decision.postings)
    ]


def _build_row(row: NewTransaction, state: State) -> tuple[Any, ...]:
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
        _get_balance_offset(row, state),
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
    )


def _get_balance_offset(row: NewTransaction | StoredTransaction, state: State) -> int | None:
    """Return the difference to the balance that a credit-only payee has after the batch."""
    if row.to_balance_offset is None or row.to_account is None:
        return None
    return row.to_balance_offset - state.accounts[row.to_account].delta


async def update_unlinked_cards(tx: Any, state: State) -> None:
    """Update counters for cards without an account, which are not locked.

    Another process may have linked such a card and used it, and its counter may have risen. A
    separate statement, before all others that wait for locks.
    """
    cards = [card for card in state.cards.values() if card.is_changed and card.account_id is None]
    if cards:
        await tx.execute(
            """UPDATE cards SET last_counter = greatest(cards.last_counter, new.last_counter)
               FROM unnest($1::bigint[], $2::smallint[], $3::integer[])
                 AS new (id, key_version, last_counter)
               WHERE cards.id = new.id AND cards.key_version = new.key_version""",
            [card.id for card in cards],
            [card.key_version for card in cards],
            [card.last_counter for card in cards],
        )


async def _update_pins(tx: Any, state: State) -> None:
    rows = [state.pins[holder] for holder in state.changed_pin_holders]
    if rows:
        await tx.execute(
            """UPDATE pins SET key_id = new.key_id, salt = new.salt, verifier = new.verifier,
                      failures = new.failures, locked_until = new.locked_until
               FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[], $5::smallint[],
                           $6::timestamptz[])
                 AS new (holder_id, key_id, salt, verifier, failures, locked_until)
               WHERE pins.holder_id = new.holder_id""",
            *map(list, zip(*map(msgspec.structs.astuple, rows), strict=True)),
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
        (decision.transaction_id, match.movement.transaction_id, match.amount)
        for decision in decisions
        if decision.earned_commission is not None
        for match in decision.earned_commission.matches
    ]
    matches += [
        (decision.transaction_id, *share)
        for decision in decisions
        for share in decision.cash_shares
    ]
    if matches:
        await earned_commission.store_matches(tx, matches, state.now)


async def _update_transactions(tx: Any, state: State, merchant_balances: Mapping[int, int]) -> None:
    """Update refunded transactions, and those that were released or rejected after a review."""
    rows = [row for row in state.transactions.values() if row.is_changed]
    for row in rows:
        offset = _get_balance_offset(row, state)
        if offset is not None:
            row.to_balance = merchant_balances[row.to_account] + offset
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
