"""Fetch and lock everything that a batch names, in a constant number of statements.

Locks are taken in one total order, so that batches never wait for each other in a circle: names of
requests, then accounts by number, then merchants' accounts by number. A batch that only credits
merchants does not lock them here at all: many pay into them at once, and `write` adds to them
last. A batch that also takes from a merchant locks all of its merchants here, at once. Who is named
by one account is locked with all accounts: the PIN and its tries are the owner's.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from tapgate.clock import Clock, platform_day
from tapgate.ledger import chart, commission, pin_failures, windows
from tapgate.ledger.commands import Command, Order, Party, decode_answer
from tapgate.ledger.pin_tries import PinState
from tapgate.ledger.rules import Rules
from tapgate.ledger.state import Account, Agent, Card, Earlier, Recorded, State

_ACCOUNT = """id, kind, owner_id, public_name, status, kyc_level, balance, held, overdraft,
              usage_day, day_used, month_used"""

_NAMED = f"""
    SELECT {_ACCOUNT}, true AS locked FROM accounts
    WHERE id = ANY (ARRAY(
        SELECT account_id FROM cards WHERE serial = ANY ($1::text[])
        UNION ALL SELECT id FROM accounts WHERE owner_id = ANY ($2::bigint[])
        UNION ALL SELECT unnest($3::bigint[])
        UNION ALL SELECT other.id FROM accounts named JOIN accounts other USING (owner_id)
                  WHERE named.id = ANY ($3::bigint[])
        UNION ALL SELECT unnest(ARRAY[from_account, to_account])
                  FROM transactions WHERE id = ANY ($4::bigint[])
        UNION ALL SELECT (SELECT commission_account_id FROM agents
                          WHERE account_id = CASE type WHEN 'agent_cashin' THEN from_account
                                                       ELSE to_account END)
                  FROM transactions
                  WHERE id = ANY ($4::bigint[]) AND left(type, 10) = 'agent_cash'
    )) AND checked"""
_IN_ORDER = "ORDER BY kind = 'settlement', id"
_MERCHANTS = f"SELECT {_ACCOUNT}, false FROM accounts WHERE owner_id = ANY ($5::bigint[])"

_FIND_ACCOUNTS = f"({_NAMED}) UNION ALL {_MERCHANTS}"
# Two processes given the same request at once: the second waits here for the first's answer.
_LOCK_ACCOUNTS = f"""
    WITH named AS ({_NAMED} AND 0 <= (
        SELECT count(pg_advisory_xact_lock(number))
        FROM (SELECT hashtextextended(name, 0) AS number FROM unnest($6::text[]) AS name
              ORDER BY number)
    ) {_IN_ORDER} FOR NO KEY UPDATE)
    SELECT * FROM named UNION ALL {_MERCHANTS}"""

_CARD_COLUMNS = 10
_AGENT_TYPES = chart.CASH_TYPES | {chart.AGENT_TRANSFER}


class LoadedTooEarlyError(Exception):
    """A card was linked, or a transaction came about, while the batch was being loaded: its account
    is not locked."""


class Names:
    """What the orders of a batch name."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.serials: set[str] = set()
        self.owners: set[int] = set()
        self.accounts: set[int] = set()
        self.merchants: set[int] = set()
        self.recorded: set[int] = set()
        self._takes_from_merchants = False
        self.requests: set[tuple[str, str]] = set()
        self.lookups: set[tuple[str, str]] = set()  # former scopes: only read, so never locked
        self.references: set[tuple[int, str]] = set()
        for order in orders:
            if isinstance(order, Command):
                self._read(order)
            else:
                self.recorded.add(order.transaction_id)
                self._takes_from_merchants = True
        if self._takes_from_merchants:
            self.owners |= self.merchants
            self.merchants.clear()

    def _read(self, command: Command) -> None:
        self._party(command.payer)
        if command.type in chart.PAYMENT_TYPES and command.payee.by == "owner":
            self.merchants.add(int(command.payee.key))
        else:
            self._party(command.payee)
        if command.original_id is not None:
            self.recorded.add(command.original_id)
        if command.request is not None:
            request = command.request
            self.requests.add((request.scope, request.request_id))
            self.lookups.update((scope, request.request_id) for scope in request.lookup_scopes)
        if command.reference is not None:
            self.references.add((command.reference.partner_id, command.reference.reference))

    def _party(self, party: Party) -> None:
        if party.by == "card":
            self.serials.add(str(party.key))
        elif party.by == "account":
            self.accounts.add(int(party.key))
            self._takes_from_merchants = True  # it may be a merchant's
        elif party.kind not in chart.PLATFORM_KINDS:
            self.owners.add(int(party.key))
            self._takes_from_merchants |= party.kind == chart.SETTLEMENT

    def of_accounts(self) -> tuple[list[Any], ...]:
        """What the accounts are found by."""
        return (
            list(self.serials),
            list(self.owners),
            list(self.accounts),
            list(self.recorded),
            list(self.merchants),
        )

    def of_requests(self) -> list[str]:
        """What only one batch at a time may work on, beside accounts."""
        return [f"{whose} {name}" for whose, name in (*self.requests, *self.references)]


async def load(
    tx: Any, orders: Sequence[Order], rules: Rules, clock: Clock, timezone: ZoneInfo
) -> State:
    names = Names(orders)
    accounts = await _lock_accounts(tx, names)
    return await _load_about(tx, accounts, names, orders, rules, clock, timezone)


async def look(
    tx: Any, orders: Sequence[Order], rules: Rules, clock: Clock, timezone: ZoneInfo
) -> State:
    """The same without locks, for what only wants to know: by then it may be different."""
    names = Names(orders)
    accounts = _accounts(await tx.fetch(_FIND_ACCOUNTS, *names.of_accounts()))
    return await _load_about(tx, accounts, names, orders, rules, clock, timezone)


async def find_account(tx: Any, owner_id: int, kind: str) -> Account | None:
    """Without a lock."""
    row = await tx.fetchrow(
        f"SELECT {_ACCOUNT} FROM accounts WHERE owner_id = $1 AND kind = $2", owner_id, kind
    )
    return None if row is None else Account(*row)


async def _lock_accounts(tx: Any, names: Names) -> dict[int, Account]:
    return _accounts(await tx.fetch(_LOCK_ACCOUNTS, *names.of_accounts(), names.of_requests()))


def _accounts(rows: Sequence[Any]) -> dict[int, Account]:
    accounts: dict[int, Account] = {}
    for row in rows:
        # A merchant that is also named as somebody who pays comes first as one that is locked.
        accounts.setdefault(row["id"], Account(*row))
    return accounts


async def _load_about(
    tx: Any,
    accounts: dict[int, Account],
    names: Names,
    orders: Sequence[Order],
    rules: Rules,
    clock: Clock,
    timezone: ZoneInfo,
) -> State:
    now = clock()
    state = State(
        now=now,
        today=platform_day(now, timezone),
        rules=rules,
        accounts=accounts,
        by_owner={},
    )
    for kind, account_id in rules.platform_accounts.items():
        accounts[account_id] = _platform_account(account_id, kind)
    state.by_owner = {
        (account.owner_id, account.kind): account
        for account in accounts.values()
        if account.owner_id is not None
    }
    # Of accounts that are locked, nothing that is read here can change before the batch is done.
    await _add_requests(tx, state, names)
    await _add_recorded(tx, state, names)
    await _add_cards(tx, state, names)
    await _add_pins(tx, state, orders)
    await _add_agents(tx, state, orders)
    await _add_cash(tx, state, orders)
    await windows.add(tx, state, orders)
    await _add_wrong_pins(tx, state, orders)
    return state


def _platform_account(account_id: int, kind: str) -> Account:
    return Account(
        id=account_id,
        kind=kind,
        owner_id=None,
        public_name="Platform",
        status="active",
        kyc_level=None,
        balance=0,
        held=0,
        overdraft=0,
        usage_day=None,
        day_used=0,
        month_used=0,
    )


async def _add_requests(tx: Any, state: State, names: Names) -> None:
    if names.requests:
        rows = await tx.fetch(
            """SELECT t.scope, t.request_id, t.fingerprint, t.to_account, t.amount, t.answer
               FROM unnest($1::text[], $2::text[]) AS asked (scope, request_id)
               JOIN transactions t
                 ON t.scope = asked.scope AND t.request_id = asked.request_id""",
            *_columns(names.requests | names.lookups),
        )
        state.requests = {
            (row["scope"], row["request_id"]): _earlier(row, row["fingerprint"]) for row in rows
        }
    if names.references:
        rows = await tx.fetch(
            """SELECT t.partner_id, t.partner_reference, t.to_account, t.amount, t.answer
               FROM unnest($1::bigint[], $2::text[]) AS asked (partner_id, reference)
               JOIN transactions t
                 ON t.partner_id = asked.partner_id AND t.partner_reference = asked.reference
                AND t.status <> 'failed'""",
            *_columns(names.references),
        )
        state.references = {
            (row["partner_id"], row["partner_reference"]): _earlier(row, None) for row in rows
        }


def _columns(pairs: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    first, second = zip(*pairs, strict=True)
    return list(first), list(second)


def _earlier(row: Any, fingerprint: bytes | None) -> Earlier:
    return Earlier(fingerprint, row["to_account"], row["amount"], decode_answer(row["answer"]))


async def _add_recorded(tx: Any, state: State, names: Names) -> None:
    if not names.recorded:
        return
    rows = await tx.fetch(
        """SELECT id, type, status, amount, fee_amount, refunded_amount, held, from_account,
                  to_account, card_serial, to_card_serial, usage_day, created_at
           FROM transactions
           WHERE id = ANY ($1::bigint[]) AND to_account IS NOT NULL""",
        list(names.recorded),
    )
    state.recorded = {row["id"]: Recorded(*row) for row in rows}
    sides = {account for row in rows for account in (row["from_account"], row["to_account"])}
    if not sides <= {None, *state.accounts}:
        raise LoadedTooEarlyError
    for row in rows:
        # A card that was declined because it had no wallet may have one by now, which is not
        # locked.
        serials = (row["from_account"] and row["card_serial"], row["to_card_serial"])
        names.serials.update(serial for serial in serials if serial)


async def _add_cards(tx: Any, state: State, names: Names) -> None:
    """With the PIN of each, which is its holder's or a child card's own."""
    if not names.serials:
        return
    rows = await tx.fetch(
        """SELECT id, serial, status, account_id, pin_holder_id, daily_limit, usage_day, day_spent,
                  day_unpinned, expires_at,
                  holder_id, key_id, salt, verifier, failures, locked_until
           FROM cards LEFT JOIN pins ON holder_id = pin_holder_id
           WHERE serial = ANY ($1::text[])""",
        list(names.serials),
    )
    state.cards = {row["serial"]: Card(*row[:_CARD_COLUMNS]) for row in rows}
    state.pins = {
        row["holder_id"]: PinState(*row[_CARD_COLUMNS:])
        for row in rows
        if row["holder_id"] is not None
    }
    if not {row["account_id"] for row in rows} <= {None, *state.accounts}:
        raise LoadedTooEarlyError


async def _add_pins(tx: Any, state: State, orders: Sequence[Order]) -> None:
    """Of those who are not named by a card."""
    holders = [
        account.owner_id
        for order in orders
        if isinstance(order, Command)
        for pin, party in ((order.payer_pin, order.payer), (order.payee_pin, order.payee))
        if pin is not None and party.by != "card"
        if (account := state.find(party)[0]) is not None and account.owner_id is not None
    ]
    if holders:
        rows = await tx.fetch(
            """SELECT holder_id, key_id, salt, verifier, failures, locked_until
               FROM pins WHERE holder_id = ANY ($1::bigint[])""",
            holders,
        )
        state.pins |= {row["holder_id"]: PinState(*row) for row in rows}


async def _add_agents(tx: Any, state: State, orders: Sequence[Order]) -> None:
    wanted = [
        account.owner_id
        for order in orders
        if isinstance(order, Command) and order.type in _AGENT_TYPES
        for party in (order.payer, order.payee)
        if (account := state.find(party)[0]) is not None and account.kind == chart.FLOAT
    ]
    wanted += [
        state.accounts[commission.pair_of(row.type, payer, payee).float_id].owner_id
        for row, payer, payee in _held_cash(state)
    ]
    if wanted:
        rows = await tx.fetch(
            """SELECT id, commission_account_id, commission_tier, parent_agent_id,
                      commission_remainder
               FROM agents WHERE id = ANY ($1::bigint[])""",
            wanted,
        )
        state.agents = {row["id"]: Agent(*row) for row in rows}


def _held_cash(state: State) -> list[tuple[Recorded, int, int]]:
    """Cash-ins and cash-outs under review that this batch may release, with their accounts."""
    return [
        (row, row.from_account, row.to_account)
        for row in state.recorded.values()
        if row.status == "under_review"
        and row.type in chart.CASH_TYPES
        and row.from_account is not None
    ]


async def _add_cash(tx: Any, state: State, orders: Sequence[Order]) -> None:
    since = {
        commission.pair_of(order.type, payer.id, payee.id): state.now
        for order in orders
        if isinstance(order, Command) and order.type in chart.CASH_TYPES
        if (payer := state.find(order.payer)[0]) is not None
        and (payee := state.find(order.payee)[0]) is not None
    }
    for row, from_account, to_account in _held_cash(state):
        pair = commission.pair_of(row.type, from_account, to_account)
        since[pair] = min(since.get(pair, state.now), row.created_at)
    if since:
        state.cash = await commission.load(
            tx,
            {
                pair: commission.window_start(requested_at, state.now)
                for pair, requested_at in since.items()
            },
        )


async def _add_wrong_pins(tx: Any, state: State, orders: Sequence[Order]) -> None:
    watches = state.rules.pin_watches
    if not watches:
        return
    payers = {
        account.id
        for order in orders
        if isinstance(order, Command)
        if (account := state.find(order.payer)[0]) is not None and account.kind == chart.WALLET
    }
    state.wrong_pins = await pin_failures.count(tx, watches, payers, state.now)
