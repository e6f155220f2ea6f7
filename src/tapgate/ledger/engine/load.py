"""A batch's database reads and locks, in a constant number of statements.

Locks are taken in one total order, so that batches do not deadlock: idempotency keys and partner
references, then accounts by ID, then merchants' settlement accounts by ID. A batch that only
credits merchants does not lock their accounts here, because many batches credit them concurrently:
`write` locks and credits them last. A batch that may also debit a merchant locks the accounts of
all its merchants here, in one statement. A party identified by owner or account ID is locked with
all the owner's accounts, because the PIN and its failure count belong to the owner.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tapgate.ledger import chart
from tapgate.ledger.archive.archived import get_end_id
from tapgate.ledger.commands import Command, LedgerCommand, decode_result
from tapgate.ledger.decisions import earned_commission
from tapgate.ledger.decisions.state import (
    Account,
    Agent,
    Card,
    State,
    StoredPayout,
    StoredTransaction,
)
from tapgate.ledger.engine import compliance_windows, undo_loader
from tapgate.ledger.engine.batch_keys import BatchKeys
from tapgate.ledger.engine.batch_line_rows import lock_batches
from tapgate.ledger.engine.open_days import COUNT_SHARED_LOCK, OPEN_DAY_QUERY, apply_open_day
from tapgate.ledger.idempotency.idempotency_keys import build_key_query, build_reference_query
from tapgate.ledger.idempotency.replays import PriorRequest
from tapgate.ledger.pins import pin_failures
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.ledger.rules.commission import MAX_LOOKBACK, get_window_start
from tapgate.ledger.rules.loaded_rules import Rules
from tapgate.runtime.store.combined import Query, fetch_together
from tapgate.runtime.store.id_ranges import add_range
from tapgate.runtime.store.pipeline import execute_ahead
from tapgate_client.clock import Clock, get_platform_day

_ACCOUNT_COLUMNS = """id, kind, owner_id, public_name, status, kyc_level, balance, held, overdraft,
              usage_day, day_used, month_used"""

_SELECT_LOCKABLE = f"""
    SELECT {_ACCOUNT_COLUMNS}, true AS locked FROM accounts
    WHERE id = ANY (ARRAY(
        SELECT account_id FROM cards WHERE serial = ANY ($1::text[])
        UNION ALL SELECT id FROM accounts WHERE owner_id = ANY ($2::bigint[])
        UNION ALL SELECT unnest($3::bigint[])
        UNION ALL SELECT other.id FROM accounts named JOIN accounts other USING (owner_id)
                  WHERE named.id = ANY ($3::bigint[])
        UNION ALL SELECT unnest($4::bigint[])
    )) AND checked"""
_LOCK_ORDER = "ORDER BY kind = 'settlement', id"
_SELECT_CREDITED_MERCHANTS = (
    f"SELECT {_ACCOUNT_COLUMNS}, false FROM accounts WHERE owner_id = ANY ($5::bigint[])"
)

_FIND_ACCOUNTS = f"({_SELECT_LOCKABLE}) UNION ALL {_SELECT_CREDITED_MERCHANTS}"
# If two processes receive the same request concurrently, the second waits here for the first.
# The shared lock keeps the current day open until the batch commits.
_LOCK_NAMES = f"""0 <= {COUNT_SHARED_LOCK} + (
        SELECT count(pg_advisory_xact_lock(number))
        FROM (SELECT hashtextextended(name, 0) AS number FROM unnest({{names}}::text[]) AS name
              ORDER BY number))"""
_LOCK_ACCOUNTS = f"""
    WITH named AS (
        {_SELECT_LOCKABLE} AND {_LOCK_NAMES.format(names="$6")} {_LOCK_ORDER} FOR NO KEY UPDATE)
    SELECT * FROM named UNION ALL {_SELECT_CREDITED_MERCHANTS}"""
#: Returns no rows, so that it can be sent together with the statement that reads. A card may be
#: linked between the two statements: a setting tells the second which accounts are locked.
_LOCK_CARD_ACCOUNTS = f"""
    WITH named AS (
        SELECT id FROM accounts
        WHERE id = ANY (ARRAY(SELECT account_id FROM cards WHERE serial = ANY ($1::text[])))
          AND checked AND {_LOCK_NAMES.format(names="$2")} {_LOCK_ORDER} FOR NO KEY UPDATE)
    SELECT WHERE set_config('tapgate.locked_accounts',
        (SELECT coalesce(string_agg(id::text, ' '), '') FROM named), true) IS NULL"""
_SELECT_LOCKED = f"""
    SELECT {_ACCOUNT_COLUMNS}, true AS locked FROM accounts
    WHERE id = ANY (
        string_to_array(current_setting('tapgate.locked_accounts'), ' ')::bigint[])
    UNION ALL
    SELECT {_ACCOUNT_COLUMNS}, false FROM accounts WHERE owner_id = ANY ($1::bigint[])"""

_CARD_COLUMN_COUNT = 14
#: Type of a key table's first column.
_KEY_TYPES = {"idempotency_keys": "text", "partner_references": "bigint"}
#: Stored cash-in or cash-out, and its type, sender's and receiver's account.
StoredCash = tuple[StoredTransaction, tuple[str, int, int]]
_AGENT_TYPES = chart.CASH_TYPES | {chart.AGENT_TRANSFER}


class StaleLoadError(Exception):
    """An account is not locked: its card was linked or its transaction created during the load."""


async def load(
    tx: Any, commands: Sequence[LedgerCommand], rules: Rules, clock: Clock, timezone: ZoneInfo
) -> State:
    keys = BatchKeys(commands)
    if keys.has_only_cards and not _checks_restriction(commands):
        await execute_ahead(tx, _LOCK_CARD_ACCOUNTS, keys.card_serials, keys.get_lock_names())
        rows = None
    else:
        rows = await lock_accounts(tx, keys)
    return await _load_state(tx, rows, keys, commands, rules, clock, timezone)


async def load_without_locks(
    tx: Any, commands: Sequence[LedgerCommand], rules: Rules, clock: Clock, timezone: ZoneInfo
) -> State:
    """Load the same state as `load`, but without locking, so it may be out of date when used."""
    keys = BatchKeys(commands)
    arguments = await keys.get_account_arguments(tx)
    rows = await tx.fetch(_FIND_ACCOUNTS, *arguments)
    return await _load_state(tx, rows, keys, commands, rules, clock, timezone)


async def find_account(tx: Any, owner_id: int, kind: str) -> Account | None:
    """Return an owner's account by kind without locking it, or None."""
    row = await tx.fetchrow(
        f"SELECT {_ACCOUNT_COLUMNS} FROM accounts WHERE owner_id = $1 AND kind = $2", owner_id, kind
    )
    return None if row is None else Account(*row)


async def lock_accounts(tx: Any, keys: BatchKeys) -> list[Any]:
    await lock_batches(tx, keys)
    if keys.payout_ids:
        await _lock_payouts(tx, keys)
    arguments = await keys.get_account_arguments(tx)
    rows: list[Any] = await tx.fetch(_LOCK_ACCOUNTS, *arguments, keys.get_lock_names())
    return rows


async def _lock_payouts(tx: Any, keys: BatchKeys) -> None:
    """Lock payouts before all accounts: payout runs lock them too, and no account."""
    rows = await tx.fetch(
        """SELECT id, account_id, amount, fee_amount, status, transaction_id, bank_reference,
                  return_reason
           FROM payouts WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE""",
        list(keys.payout_ids),
    )
    keys.payouts = {row["id"]: StoredPayout(*row) for row in rows}
    keys.account_ids.update(payout.account_id for payout in keys.payouts.values())


async def _load_state(
    tx: Any,
    account_rows: Sequence[Any] | None,
    keys: BatchKeys,
    commands: Sequence[LedgerCommand],
    rules: Rules,
    clock: Clock,
    timezone: ZoneInfo,
) -> State:
    """Load a batch's state, including the accounts just locked if `account_rows` is None."""
    now = clock()
    state = State(
        now=now,
        today=get_platform_day(now, timezone),
        rules=rules,
        accounts={
            account_id: _build_platform_account(account_id, kind)
            for kind, account_id in rules.platform_accounts.items()
        },
        accounts_by_owner={},
    )
    state.payouts = keys.payouts
    state.payable_lines, state.held_lines = keys.payable_lines, keys.held_lines
    if account_rows is not None:
        _set_accounts(state, account_rows)
    await _load_transactions(tx, state, keys)
    open_since = await _load_rows(tx, state, keys, commands, reads_accounts=account_rows is None)
    if account_rows is None:  # a batch is not older than those whose locks it waited for
        state.now = clock()
        state.today = get_platform_day(state.now, timezone)
    apply_open_day(state, open_since, timezone)
    if keys.undone_ids:
        await undo_loader.load(tx, state, keys)
    await _load_cash_movements(tx, state, commands, keys)
    return state


def _set_accounts(state: State, rows: Sequence[Any]) -> None:
    for row in rows:
        # An account can appear twice, locked and credit-only; the locked row comes first.
        state.accounts.setdefault(row[0], Account(*row))
    state.accounts_by_owner = {
        (account.owner_id, account.kind): account
        for account in state.accounts.values()
        if account.owner_id is not None
    }


async def _load_rows(
    tx: Any,
    state: State,
    keys: BatchKeys,
    commands: Sequence[LedgerCommand],
    *,
    reads_accounts: bool,
) -> datetime | None:
    """Load everything that most batches need in one statement; return when the open day starts.

    PostgreSQL takes a statement's snapshot when the statement starts, which is after all locks
    were granted. The statement therefore sees everything that was committed under these locks, and
    the data of locked accounts that it reads cannot change before the batch commits. It must not
    be merged with the statement that locks, whose snapshot is older than its locks.
    """
    (
        open_days,
        accounts,
        by_key,
        by_reference,
        cards,
        pins,
        agents,
        wrong_pins,
        restricted,
        *window_totals,
    ) = await fetch_together(
        tx,
        [
            OPEN_DAY_QUERY,
            Query(_SELECT_LOCKED, (list(keys.merchant_ids),)) if reads_accounts else None,
            build_key_query(keys.request_keys | keys.lookup_keys),
            build_reference_query(keys.partner_references),
            _build_card_query(keys),
            _build_pin_query(state, commands),
            _build_agent_query(state, commands, keys),
            _build_wrong_pin_query(state, commands),
            _build_restricted_query(state, commands),
            *compliance_windows.build_queries(state, commands),
        ],
    )
    if reads_accounts:
        _set_accounts(state, accounts)
    if by_key or by_reference:
        key_ids, reference_ids = ({id_ for (id_,) in rows} for rows in (by_key, by_reference))
        await _load_requests(tx, state, keys, key_ids, reference_ids)
    _set_cards(state, cards)
    state.pins |= {row[0]: PinState(*row) for row in pins}
    state.agents = {row[0]: Agent(*row) for row in agents}
    state.wrong_pin_counts = {(rule, account): count for rule, account, count in wrong_pins}
    state.restricted_accounts = {account_id for (account_id,) in restricted}
    for rows in window_totals:
        for rule_id, account_id, count, total in rows:
            state.window_totals[rule_id, account_id] = (count, total)
    return open_days[0][0] if open_days else None


def _build_platform_account(account_id: int, kind: str) -> Account:
    return Account(
        id=account_id,
        kind=kind,
        owner_id=None,
        public_name="Platform",
        status=chart.ACTIVE,
        kyc_level=None,
        balance=0,
        held=0,
        overdraft=0,
        usage_day=None,
        day_used=0,
        month_used=0,
    )


async def _load_requests(
    tx: Any, state: State, keys: BatchKeys, by_key: set[int], by_reference: set[int]
) -> None:
    """Load earlier transactions, found by their idempotency keys and partner references."""
    rows = await tx.fetch(
        """SELECT id, scope, request_id, fingerprint, partner_id, partner_reference,
                  to_account, amount, answer
           FROM transactions WHERE id = ANY ($1::bigint[]) AND id >= $2 AND id <= $3""",
        *add_range(by_key | by_reference),
    )
    state.prior_requests = {
        (row["scope"], row["request_id"]): _build_prior_request(row, row["fingerprint"])
        for row in rows
        if row["id"] in by_key
    }
    state.prior_references = {
        (row["partner_id"], row["partner_reference"]): _build_prior_request(row, None)
        for row in rows
        if row["id"] in by_reference
    }
    if len(rows) < len(by_key | by_reference):
        await _load_archived_requests(tx, state, keys, {row["id"] for row in rows})


async def _load_archived_requests(
    tx: Any, state: State, keys: BatchKeys, found_ids: Collection[int]
) -> None:
    """Load archived transactions' keys, which must not be executed again."""
    archived = PriorRequest(None, None, 0, None)
    for table, columns, requested, prior in (
        ("idempotency_keys", "scope, request_id", keys.request_keys | keys.lookup_keys,
         state.prior_requests),
        ("partner_references", "partner_id, reference", keys.partner_references,
         state.prior_references),
    ):  # fmt: skip
        owners, names = [key[0] for key in requested], [key[1] for key in requested]
        rows = await tx.fetch(
            f"""SELECT {columns} FROM {table}
                WHERE ({columns}) IN (SELECT * FROM unnest($1::{_KEY_TYPES[table]}[], $2::text[]))
                  AND transaction_id <> ALL ($3::bigint[])""",
            owners,
            names,
            list(found_ids),
        )
        prior.update({tuple(row): archived for row in rows})


def _build_prior_request(row: Any, fingerprint: bytes | None) -> PriorRequest:
    return PriorRequest(fingerprint, row["to_account"], row["amount"], decode_result(row["answer"]))


async def _load_transactions(tx: Any, state: State, keys: BatchKeys) -> None:
    if not keys.transaction_ids:
        return
    rows = await tx.fetch(
        """SELECT id, type, status, amount, fee_amount, refunded_amount, held, from_account,
                  to_account, card_serial, to_card_serial, usage_day, created_at,
                  coalesce(context ? 'unpinned', false), failure_code, completed_at
           FROM transactions
           WHERE id = ANY ($1::bigint[]) AND id >= $2 AND id <= $3 AND to_account IS NOT NULL""",
        *add_range(keys.transaction_ids),
    )
    state.transactions = {row["id"]: StoredTransaction(*row) for row in rows}
    if len(rows) < len(keys.transaction_ids):
        state.archive_end = await get_end_id(tx)
    account_ids = {
        account_id for row in rows for account_id in (row["from_account"], row["to_account"])
    }
    if not account_ids <= {None, *state.accounts}:
        raise StaleLoadError
    for row in rows:
        # Skip a payer's card that was declined because it was not linked: it may have been linked
        # since, to a wallet that is not locked.
        serials = (row["from_account"] and row["card_serial"], row["to_card_serial"])
        keys.card_serials.update(serial for serial in serials if serial)


def _build_card_query(keys: BatchKeys) -> Query | None:
    """Return a query for cards with their PINs: the holder's PIN, or a child card's own.

    The keyset status is read here, because it may be retired after a proof was verified. The
    few retired keysets are read once per batch.
    """
    if not keys.card_serials:
        return None
    return Query(
        """SELECT cards.id, serial, cards.status, account_id, pin_holder_id, daily_limit, usage_day,
                  day_spent, day_unpinned, expires_at, keyset_id, key_version, last_counter,
                  keyset_id IS NOT NULL AND keyset_id = ANY (
                      ARRAY(SELECT id FROM card_keysets WHERE status = 'retired')),
                  holder_id, key_id, salt, verifier, failures, locked_until
           FROM cards LEFT JOIN pins ON holder_id = pin_holder_id
           WHERE serial = ANY ($1::text[])""",
        (list(keys.card_serials),),
    )


def _set_cards(state: State, rows: Sequence[tuple[Any, ...]]) -> None:
    for row in rows:
        card, pin = Card(*row[:_CARD_COLUMN_COUNT]), row[_CARD_COLUMN_COUNT:]
        if card.account_id is not None and card.account_id not in state.accounts:
            raise StaleLoadError
        state.cards[card.serial] = card
        if pin[0] is not None:
            state.pins[pin[0]] = PinState(*pin)


def _build_pin_query(state: State, commands: Sequence[LedgerCommand]) -> Query | None:
    """Return a query for the PINs to verify for parties that are not identified by a card."""
    holders = [
        account.owner_id
        for command in commands
        if isinstance(command, Command)
        for pin, party in ((command.payer_pin, command.payer), (command.payee_pin, command.payee))
        if pin is not None and party.by != "card"
        if (account := state.find_party(party)[0]) is not None and account.owner_id is not None
    ]
    if not holders:
        return None
    return Query(
        """SELECT holder_id, key_id, salt, verifier, failures, locked_until
           FROM pins WHERE holder_id = ANY ($1::bigint[])""",
        (holders,),
    )


def _build_agent_query(
    state: State, commands: Sequence[LedgerCommand], keys: BatchKeys
) -> Query | None:
    """Return a query for agents, which are never identified by a card."""
    agent_ids = [
        account.owner_id
        for command in commands
        if isinstance(command, Command) and command.type in _AGENT_TYPES
        for party in (command.payer, command.payee)
        if (account := state.find_party(party)[0]) is not None and account.kind == chart.FLOAT
    ]
    cash = [*_list_held_cash(state), *_list_undone_cash(state, keys)]
    agent_ids += [earned_commission.get_agent_id(state, *accounts) for _, accounts in cash]
    if not agent_ids:
        return None
    return Query(
        """SELECT id, commission_account_id, commission_tier, parent_agent_id, commission_remainder
           FROM agents WHERE id = ANY ($1::bigint[])""",
        (agent_ids,),
    )


def _list_undone_cash(state: State, keys: BatchKeys) -> list[StoredCash]:
    return [
        (row, (row.type, row.from_account, row.to_account))
        for row in undo_loader.list_cash(state, keys)
        if row.from_account is not None
    ]


def _list_held_cash(state: State) -> list[StoredCash]:
    """Return the cash-ins and cash-outs under review that this batch may release."""
    return [
        (row, (row.type, row.from_account, row.to_account))
        for row in state.transactions.values()
        if row.status == chart.UNDER_REVIEW
        and row.type in chart.CASH_TYPES
        and row.from_account is not None
    ]


async def _load_cash_movements(
    tx: Any, state: State, commands: Sequence[LedgerCommand], keys: BatchKeys
) -> None:
    since = {
        earned_commission.get_pair(state, command.type, payer.id, payee.id): state.now
        for command in commands
        if isinstance(command, Command) and command.type in chart.CASH_TYPES
        if (payer := state.find_party(command.payer)[0]) is not None
        and (payee := state.find_party(command.payee)[0]) is not None
    }
    for row, accounts in _list_held_cash(state):
        pair = earned_commission.get_pair(state, *accounts)
        since[pair] = min(since.get(pair, state.now), row.created_at)
    for _, accounts in _list_undone_cash(state, keys):
        # All movements that any later cash movement can be matched with.
        since[earned_commission.get_pair(state, *accounts)] = state.now - MAX_LOOKBACK
    if since:
        state.cash_movements = await earned_commission.load_movements(
            tx,
            {
                pair: get_window_start(requested_at, state.now)
                for pair, requested_at in since.items()
            },
        )


def _build_wrong_pin_query(state: State, commands: Sequence[LedgerCommand]) -> Query | None:
    pin_rules = state.rules.pin_failure_rules
    if not pin_rules:
        return None
    payers = [command.payer for command in commands if isinstance(command, Command)]
    wallet_ids = {
        account.id
        for payer in payers
        if (account := state.find_party(payer)[0]) is not None and account.kind == chart.WALLET
    }
    serials = {str(payer.key) for payer in payers if payer.by == "card"}
    return pin_failures.build_count_query(pin_rules, wallet_ids, state.now, serials)


def _build_restricted_query(state: State, commands: Sequence[LedgerCommand]) -> Query | None:
    """Return a query for restricted subscribers' accounts, if a command checks its payee."""
    if not _checks_restriction(commands):
        return None
    return Query(
        "SELECT account_id FROM subscribers WHERE account_id = ANY ($1::bigint[]) AND restricted",
        ([account.id for account in state.accounts.values() if account.kind == chart.WALLET],),
    )


def _checks_restriction(commands: Sequence[LedgerCommand]) -> bool:
    return any(isinstance(command, Command) and command.checks_restriction for command in commands)
