"""SQL queries that read transactions.

The table may hold hundreds of millions of rows, in a partition for each month. `list_page` uses
indexes whose last column is the ID, scans them backward from the cursor, and stops after one page.
Every query has an ID range, so that PostgreSQL opens only the partitions in that range.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import asyncpg

from tapgate.auth.disclosure import build_hidden_condition, find_hidden_accounts
from tapgate.auth.owners import Owner
from tapgate.auth.principals import Principal
from tapgate.business.customers.subscribers.restriction import exclude_hidden_accounts
from tapgate.business.payments.transactions.model import (
    Transaction,
    TransactionSide,
    User,
    parse_approval_code,
    to_record,
)
from tapgate.core.id_generator import first_id_at, get_time
from tapgate.http.api.services import Services
from tapgate.ledger.archive.archived import get_end_id
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.id_ranges import MAX_ID, IdRange, add_range, fetch_newest, fetch_oldest
from tapgate_client.errors import ApiError, Code, invalid_field, require_found
from tapgate_client.schemas.pagination import INVALID_CURSOR
from tapgate_client.schemas.periods import parse_period_end, parse_period_start
from tapgate_client.schemas.transactions import (
    FLOW_TYPES,
    TransactionFilters,
    TransactionOrder,
    TransactionRecord,
)

#: Payer and payee columns, in the field order of `TransactionSide`.
_SIDE_COLUMNS: Final = """
    t.{0}_account, {0}_side.kind, {0}_side.owner_id, {0}_side.holder_name, {0}_side.public_name,
    t.{1}, t.{0}_balance"""
#: A held transaction's stored fee is immutable, but it is charged only on release. Declined
#: transactions are stored without a fee.
_FEE_AMOUNT: Final = "CASE t.status WHEN 'failed' THEN 0 ELSE t.fee_amount END"
#: Merchants always pay the fee for a payment. `held` is the amount that was held for a review,
#: including a fee that the sender pays. Otherwise the fee entry tells who paid it; a scalar
#: subquery always looks it up by the primary key.
_FEE_PAYER: Final = """
    CASE WHEN t.status = 'failed' OR t.fee_amount = 0 THEN NULL
         WHEN t.type IN ('pos_payment', 'online_payment') THEN 'receiver'
         WHEN CASE t.held WHEN 0 THEN t.from_account = (
                  SELECT debit_account FROM entries
                  WHERE transaction_id = t.id AND transaction_id BETWEEN {first} AND {last}
                    AND credit_account = (
                      SELECT id FROM accounts WHERE owner_id IS NULL AND kind = 'fees'))
              ELSE t.held > t.amount END THEN 'sender'
         ELSE 'receiver' END"""
#: The fee that a refund, a reversal or a returned payout returned, from its entries.
_FEE_REFUNDED: Final = """
    CASE WHEN t.type NOT IN ('refund', 'reversal', 'payout_return') THEN 0 ELSE coalesce((
        SELECT sum(amount) FROM entries
        WHERE transaction_id = t.id AND transaction_id BETWEEN {first} AND {last}
          AND debit_account = (
            SELECT id FROM accounts WHERE owner_id IS NULL AND kind = 'fees')), 0) END::bigint"""
#: OFFSET 0 fixes the plan: one lookup per account. PostgreSQL could otherwise read all accounts in
#: the order of their IDs.
_PARTY: Final = """
    SELECT kind, owner_id, holder_name, public_name FROM accounts
    WHERE id = t.{}_account OFFSET 0"""
#: The columns are in the order of the fields of `Transaction`. All transaction IDs are between
#: `{first}` and `{last}`.
_SELECT: Final = f"""
    SELECT t.id, t.type, t.status, t.channel, t.amount, {_FEE_AMOUNT}, {_FEE_PAYER},
           {_FEE_REFUNDED}, t.refunded_amount, t.currency, t.card_serial, t.original_id,
           t.request_id, t.failure_code, t.created_at, t.completed_at,
           CASE t.status WHEN 'failed' THEN t.answer END, t.context,
           {_SIDE_COLUMNS.format("from", "card_serial")},
           {_SIDE_COLUMNS.format("to", "to_card_serial")}"""
_JOIN_SIDES: Final = f"""
    LEFT JOIN LATERAL ({_PARTY.format("from")}) from_side ON true
    LEFT JOIN LATERAL ({_PARTY.format("to")}) to_side ON true"""
_HIDDEN_ACCOUNTS: Final = """
    ARRAY(SELECT s.account_id FROM subscribers s
          WHERE s.account_id = ANY (ARRAY[t.from_account, t.to_account]) AND {})"""
SELECT_BY_IDS: Final = f"""
    {_SELECT.format(first="$2", last="$3")}
    FROM transactions t {_JOIN_SIDES}
    WHERE t.id = ANY ($1::bigint[]) AND t.id >= $2 AND t.id <= $3
    ORDER BY t.id DESC"""
_SIDE_COLUMN_COUNT: Final = len(TransactionSide._fields)
_OWN_COLUMN_COUNT: Final = 18

_SUM_SQL: Final = """
    SELECT count(*), coalesce(sum(amount) FILTER (WHERE moved), 0),
           coalesce(sum(fee_amount) FILTER (WHERE moved), 0)
    FROM (SELECT amount, fee_amount, status NOT IN ('failed', 'under_review') AS moved
          FROM transactions WHERE id = ANY ($1::bigint[]) AND id >= $2 AND id <= $3) AS found"""

#: Transactions that are sorted by amount, for which there is no index.
MAX_SORTED: Final = 10_000
_SORT_SQL: Final = """
    SELECT id FROM transactions
    WHERE id = ANY ($1::bigint[]) AND id >= $2 AND id <= $3 AND (amount, id) < ($4, $5)
    ORDER BY amount DESC, id DESC LIMIT $6"""

#: Upper bound on the difference between the time in an ID and `created_at`. Without clock skew, the
#: difference is at most a few seconds.
ID_TIME_TOLERANCE: Final = timedelta(hours=1)
#: ID bits within a period of the receipt indexes.
_PERIOD_SHIFT: Final = 49
_MAX_RECEIPTS: Final = 200
_HAS_APPROVAL_NUMBER: Final = """
    approval_number(t.id) = $3 AND t.type IN ('pos_payment', 'online_payment')
    AND t.status NOT IN ('failed', 'under_review')"""


class TransactionSums(NamedTuple):
    transactions: int
    amount: int  # of completed transactions
    fees: int
    is_complete: bool


async def get(reader: Database | asyncpg.Connection, transaction_id: int) -> Transaction:
    row = await reader.fetchrow(SELECT_BY_IDS, *add_range([transaction_id]))
    if row is None and transaction_id < await get_end_id(reader):
        raise ApiError(Code.TRANSACTION_NOT_FOUND, "The transactions of that month are archived.")
    return _build_transaction(require_found(row, Code.TRANSACTION_NOT_FOUND))


async def list_undoing(database: Database, transaction_id: int, *, limit: int) -> list[Transaction]:
    """Return a transaction's refunds or reversals, oldest first, including declined ones."""
    rows = await database.fetch(
        """SELECT id FROM transactions
           WHERE original_id = $1 AND id >= $3 ORDER BY id LIMIT $2""",
        transaction_id,
        limit,
        get_first_id(get_time(transaction_id) - ID_TIME_TOLERANCE),
    )
    return (await list_by_ids(database, [row["id"] for row in rows]))[::-1]


async def list_by_ids(
    reader: Database | asyncpg.Connection, transaction_ids: Collection[int]
) -> list[Transaction]:
    """Return the transactions with these IDs that are not archived, newest first."""
    if not transaction_ids:
        return []
    rows = await reader.fetch(SELECT_BY_IDS, *add_range(transaction_ids))
    return [_build_transaction(row) for row in rows]


async def find_ids_by_receipt(database: Database, text: str, now: datetime) -> list[int]:
    """Return up to 200 transactions with this approval code, and with this merchant's reference.

    The indexes are divided into periods (migration 0053), which are read newest first until there
    are enough matches. The ID range selects a period's partition. Without an order within a period,
    PostgreSQL always uses the index, also before it has statistics about it.
    """
    newest = get_first_id(now + ID_TIME_TOLERANCE) >> _PERIOD_SHIFT
    conditions: dict[str, str | int] = {"t.context ->> 'transaction_ref' = $3": text}
    approval_number = parse_approval_code(text)
    if approval_number is not None:
        conditions[_HAS_APPROVAL_NUMBER] = approval_number
    found: list[int] = []
    for condition, value in conditions.items():
        rows = await database.fetch(
            f"""SELECT found.id
                FROM generate_series($1::bigint, (SELECT min(id) FROM transactions)
                                     >> {_PERIOD_SHIFT}, -1) AS period
                CROSS JOIN LATERAL (
                    SELECT t.id FROM transactions t
                    WHERE t.id >> {_PERIOD_SHIFT} = period AND t.id >= period << {_PERIOD_SHIFT}
                      AND t.id < (period + 1) << {_PERIOD_SHIFT} AND {condition}
                    LIMIT $2) AS found
                LIMIT $2""",
            newest,
            _MAX_RECEIPTS,
            value,
        )
        found += [row["id"] for row in rows]
    return found


async def load_records(
    services: Services, transaction_ids: Collection[int]
) -> dict[int, TransactionRecord]:
    """Return records with public names by ID, for event payloads."""
    return {
        transaction.id: to_record(transaction)
        for transaction in await list_by_ids(services.database, transaction_ids)
    }


async def list_account_ids(
    database: Database, user: User, caller: Principal, now: datetime
) -> tuple[list[int], bool]:
    """Return a user's account IDs, and whether the user is hidden from the caller.

    There are no IDs if the user does not exist.
    """
    conditions = Conditions()
    owner, kinds = conditions.bind(user.id), conditions.bind(list(user.kind.accounts))
    hidden = build_hidden_condition(conditions, caller, now) or "false"
    rows = await database.fetch(
        f"""SELECT a.id, EXISTS (SELECT FROM subscribers s
                                 WHERE s.account_id = a.id AND {hidden}) AS is_hidden
            FROM accounts a WHERE a.owner_id = {owner} AND a.kind = ANY ({kinds}::text[])""",
        *conditions.values,
    )
    return [row["id"] for row in rows], any(row["is_hidden"] for row in rows)


async def list_owner_accounts(database: Database, owner: Owner) -> list[int]:
    """Return the account IDs of a processor, partner or agent."""
    rows = await database.fetch("SELECT id FROM accounts WHERE owner_id = $1", owner.id)
    return [row["id"] for row in rows]


async def get_card_account_id(database: Database, serial: str) -> int | None:
    account_id: int | None = await database.fetchval(
        "SELECT account_id FROM cards WHERE serial = $1", serial
    )
    return account_id


class TransactionQuery:
    """Query for the transactions that match all conditions and, if there are branches, any branch.

    Each branch corresponds to an index. A transaction that matches several branches is listed once.
    """

    def __init__(self, since: datetime | None = None) -> None:
        self.conditions = Conditions()
        self.since = since  # earlier transactions never match
        self._branches: list[str] = []

    def include_accounts(self, account_ids: Sequence[int]) -> None:
        for account_id in account_ids:
            account = self.conditions.bind(account_id)
            self._branches += [f"t.from_account = {account}", f"t.to_account = {account}"]

    def include_types(self, types: Sequence[str]) -> None:
        """Include transactions of these types, or filter by them if there are branches already."""
        conditions = [f"t.type = '{name}'" for name in types]
        if self._branches:
            self.conditions.add(f"({' OR '.join(conditions)})")
        else:
            self._branches = conditions

    def include_card(self, serial: str, account_id: int | None) -> None:
        """Include a card's transactions.

        Once linked, a card stays with one wallet. Transactions that were declined before the card
        was linked have no account for it.
        """
        card = self.conditions.bind(serial)
        paid, received = f"t.card_serial = {card}", f"t.to_card_serial = {card}"
        self._branches += [
            f"t.from_account IS NULL AND {paid}",
            f"t.to_account IS NULL AND {received}",
        ]
        if account_id is not None:
            account = self.conditions.bind(account_id)
            self._branches += [
                f"t.from_account = {account} AND {paid}",
                f"t.to_account = {account} AND {received}",
            ]

    def filter_by_accounts(self, account_ids: Sequence[int]) -> None:
        accounts = self.conditions.bind(list(account_ids))
        self.conditions.add(
            f"(t.from_account = ANY ({accounts}) OR t.to_account = ANY ({accounts}))"
        )

    def filter_by_card(self, serial: str) -> None:
        self.conditions.where("{0} IN (t.card_serial, t.to_card_serial)", serial)

    def build_query(self, columns: str, *, oldest: bool = False) -> str:
        """Return a query for the newest or oldest matching transactions in a range.

        The values of the conditions are followed by the range and the limit. Each branch skips
        transactions of earlier branches: to remove duplicates with UNION, PostgreSQL would read all
        rows before it sorts them.
        """
        first, end, limit = self.range_parameters
        order_and_limit = f"ORDER BY id {'ASC' if oldest else 'DESC'} LIMIT {limit}"
        branches = self._branches or ["true"]
        selects = []
        for number, branch in enumerate(branches):
            skipped = "".join(f" AND ({earlier}) IS NOT TRUE" for earlier in branches[:number])
            selects.append(
                f"(SELECT {columns} FROM transactions t WHERE {branch}{skipped}"
                f" AND {self.conditions} AND t.id >= {first} AND t.id < {end} {order_and_limit})"
            )
        return f"{' UNION ALL '.join(selects)} {order_and_limit if len(selects) > 1 else ''}"

    @property
    def range_parameters(self) -> tuple[str, str, str]:
        """Return the placeholders for the range and the limit."""
        count = len(self.conditions.values)
        return f"${count + 1}", f"${count + 2}", f"${count + 3}"


async def list_page(
    database: Database,
    scope: TransactionQuery,
    filters: TransactionFilters,
    caller: Principal,
    *,
    now: datetime,
    zone: ZoneInfo,
) -> tuple[list[Transaction], set[int]]:
    """Return a page of matching transactions in their order, plus one row if there are more.

    For admins, the list includes the transactions of hidden subscribers, which the calling code
    must mask: their accounts are returned, too. For other callers, the list omits them.
    """
    id_range = _add_filters(scope, filters, caller, now=now, zone=zone)
    if filters.order == TransactionOrder.AMOUNT:
        async with database.generic_plans() as reader:
            found = await _fetch_ids(reader, scope, id_range, MAX_SORTED, now)
            page = await _sort_by_amount(reader, found, filters)
            transactions = {item.id: item for item in await list_by_ids(reader, page)}
            accounts = {account for item in transactions.values() for account in item.account_ids}
            hidden = (
                await find_hidden_accounts(reader, caller, now, accounts)
                if caller.kind == "admin"
                else set[int]()
            )
        return [transactions[number] for number in page if number in transactions], hidden
    oldest = filters.order == TransactionOrder.OLDEST
    sql = _build_page_query(scope, caller, now, oldest=oldest)
    fetch = fetch_oldest if oldest else fetch_newest
    rows = await fetch(
        lambda part, limit: database.fetch_generic(sql, *scope.conditions.values, *part, limit),
        filters.limit + 1,
        newest=first_id_at(now),
        first=id_range.first,
        end=min(id_range.end, get_first_id(now + ID_TIME_TOLERANCE)),
    )
    hidden = {account for row in rows for account in row["hidden"] or ()}
    return [_build_transaction(row) for row in rows], hidden


def _build_page_query(
    scope: TransactionQuery, caller: Principal, now: datetime, *, oldest: bool
) -> str:
    """Return a query for the newest or oldest matching transactions in a range.

    The transactions are selected first, so that PostgreSQL looks up accounts for one page only.
    For admins, the last column contains the accounts of hidden subscribers.
    """
    condition = (
        build_hidden_condition(scope.conditions, caller, now) if caller.kind == "admin" else None
    )
    hidden = "NULL" if condition is None else _HIDDEN_ACCOUNTS.format(condition)
    first, end, _ = scope.range_parameters
    return f"""
        WITH t AS MATERIALIZED ({scope.build_query("t.*", oldest=oldest)})
        {_SELECT.format(first=first, last=end)}, {hidden} AS hidden
        FROM t {_JOIN_SIDES}
        ORDER BY t.id {"ASC" if oldest else "DESC"}"""


def get_position(filters: TransactionFilters, transaction: Transaction) -> int | tuple[int, int]:
    """Return a transaction's position in the list with these filters."""
    if filters.order == TransactionOrder.AMOUNT:
        return transaction.amount, transaction.id
    return transaction.id


async def _sort_by_amount(
    reader: asyncpg.Connection, found: Collection[int], filters: TransactionFilters
) -> list[int]:
    """Return one page of transaction IDs, largest amount first."""
    if len(filters.position) not in (0, 2):
        raise invalid_field("cursor", INVALID_CURSOR)
    if not found:
        return []
    position = filters.position or (MAX_ID, MAX_ID)
    rows = await reader.fetch(_SORT_SQL, *add_range(found), *position, filters.limit + 1)
    return [row["id"] for row in rows]


async def sum_newest(
    database: Database,
    scope: TransactionQuery,
    filters: TransactionFilters,
    caller: Principal,
    *,
    now: datetime,
    zone: ZoneInfo,
) -> TransactionSums:
    """Return totals over the newest matching transactions, at most `filters.limit`."""
    id_range = _add_filters(scope, filters, caller, now=now, zone=zone)
    async with database.generic_plans() as reader:
        limit = MAX_SORTED if filters.order == TransactionOrder.AMOUNT else filters.limit + 1
        found = await _fetch_ids(reader, scope, id_range, limit, now)
        if not found:
            return TransactionSums(0, 0, 0, is_complete=True)
        row = await reader.fetchrow(_SUM_SQL, *add_range(found[: filters.limit]))
    transactions, amount, fees = map(int, row)
    return TransactionSums(transactions, amount, fees, is_complete=len(found) <= filters.limit)


async def _fetch_ids(
    reader: asyncpg.Connection,
    scope: TransactionQuery,
    id_range: IdRange,
    limit: int,
    now: datetime,
) -> list[int]:
    """Return the IDs of the newest matching transactions."""
    sql = scope.build_query("t.id")
    rows = await fetch_newest(
        lambda part, limit: reader.fetch(sql, *scope.conditions.values, *part, limit),
        limit,
        newest=first_id_at(now),
        first=id_range.first,
        end=id_range.end,
    )
    return [row["id"] for row in rows]


def _add_filters(
    scope: TransactionQuery,
    filters: TransactionFilters,
    caller: Principal,
    *,
    now: datetime,
    zone: ZoneInfo,
) -> IdRange:
    """Add the conditions for a list, and return the ID range that the filters select."""
    conditions = scope.conditions
    first_id, end_id = 0, MAX_ID
    if filters.order == TransactionOrder.OLDEST:
        first_id = min(filters.after_id + 1, MAX_ID)
    elif filters.order != TransactionOrder.AMOUNT:
        end_id = filters.before_id
    conditions.where_word("t.type", filters.type)
    if filters.flow is not None:
        scope.include_types(FLOW_TYPES[filters.flow])
    conditions.where_word("t.status", filters.status)
    conditions.where("t.failure_code = {}", filters.failure_code)
    start, end = parse_period_start(filters.from_, zone), parse_period_end(filters.to, zone)
    if scope.since is not None:
        start = scope.since if start is None else max(start, scope.since)
    # The ID range is approximate but can use an index; the condition on `created_at` is exact.
    if start is not None:
        first_id = max(first_id, get_first_id(start - ID_TIME_TOLERANCE))
        conditions.add_unselective(f"t.created_at >= {conditions.bind(start)}")
    if end is not None:
        end_id = min(end_id, get_first_id(end + ID_TIME_TOLERANCE))
        conditions.add_unselective(f"t.created_at < {conditions.bind(end)}")
    if caller.kind != "admin":
        exclude_hidden_accounts(conditions, caller, now, "t.from_account", "t.to_account")
    return IdRange(first_id, end_id)


def get_first_id(moment: datetime) -> int:
    """Return the smallest ID at this time, capped at the largest ID."""
    return min(first_id_at(moment), MAX_ID)


def _build_transaction(row: asyncpg.Record) -> Transaction:
    *values, context = row[:_OWN_COLUMN_COUNT]
    values.append(context or {})
    sides = row[_OWN_COLUMN_COUNT:]
    for side in (
        sides[:_SIDE_COLUMN_COUNT],
        sides[_SIDE_COLUMN_COUNT : 2 * _SIDE_COLUMN_COUNT],
    ):
        values.append(None if side[0] is None else TransactionSide(*side))
    return Transaction(*values)
