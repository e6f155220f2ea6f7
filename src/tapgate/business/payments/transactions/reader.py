"""Transactions as one caller may see them: records, lists and related records.

An owner's callers see only the owner's transactions. Restricted subscribers are hidden from API
keys, and from admins who have not verified a one-time code. API keys get `OTP_REQUIRED` for such a
transaction, or a list without it. Admins get a masked record.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.auth.owners import OwnerView, build_view
from tapgate.auth.principals import Principal
from tapgate.auth.terminals import find_terminal_names
from tapgate.business.customers.subscribers.restriction import (
    reject_hidden,
    require_account_access,
    require_transaction_access,
)
from tapgate.business.payments.transactions import queries
from tapgate.business.payments.transactions.entries import get_entries
from tapgate.business.payments.transactions.model import Transaction, parse_user_id, to_record
from tapgate.business.payments.transactions.queries import TransactionQuery, TransactionSums
from tapgate.core.pagination import paginate
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import clock, ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.transactions import (
    ReplaySummary,
    TransactionChain,
    TransactionEntries,
    TransactionFilters,
    TransactionRecord,
)

#: Bounds the response: a transaction can be undone one minor unit at a time.
MAX_UNDOING: Final = 1_000


class TransactionReader(NamedTuple):
    database: Database
    caller: Principal
    now: datetime
    zone: ZoneInfo

    @property
    def _is_staff(self) -> bool:
        """Staff see full names. Like an owner's users, they see masked transactions."""
        return self.caller.is_staff

    @property
    def _view(self) -> OwnerView | None:
        return build_view(
            self.caller.owner, self.caller.role, self.now, self.zone, self.caller.admin_id
        )

    async def get_record(self, transaction_id: int) -> TransactionRecord:
        transaction = await self._get(transaction_id)
        hidden = await self._find_hidden([transaction])
        return to_record(transaction, full=self._is_staff, hidden=hidden)

    async def list_records(self, transaction_ids: Collection[int]) -> list[TransactionRecord]:
        """Return the transactions with these IDs, newest first, for an admin."""
        transactions = await queries.list_by_ids(self.database, transaction_ids)
        hidden = await self._find_hidden(transactions)
        return [to_record(item, full=True, hidden=hidden) for item in transactions]

    async def get_entries(self, transaction_id: int) -> TransactionEntries:
        transaction = await self._get(transaction_id)
        hidden = await self._find_hidden([transaction])
        return await get_entries(self.database, transaction, masked=bool(hidden))

    async def get_chain(self, transaction_id: int) -> TransactionChain:
        """Return the original, refunds, reversals and replays, for an admin."""
        transaction = await self._get(transaction_id)
        original_id = transaction.original_id
        originals = [] if original_id is None else [await queries.get(self.database, original_id)]
        undoing = await queries.list_undoing(self.database, transaction.id, limit=MAX_UNDOING)
        hidden = await self._find_hidden([*originals, *undoing])
        records = [to_record(item, full=True, hidden=hidden) for item in (*originals, *undoing)]
        later = records[len(originals) :]
        terminal_id = transaction.context.get("terminal_id")
        names = await find_terminal_names(self.database, [terminal_id])
        return TransactionChain(
            original=records[0] if originals else None,
            refunds=[record for record in later if record.type == chart.REFUND],
            reversals=[record for record in later if record.type == chart.REVERSAL],
            replays=await self._get_replays(transaction.id),
            terminal_name=names.get(terminal_id),
        )

    async def list_page(self, filters: TransactionFilters) -> Page[TransactionRecord]:
        found = await self._build_query(filters)
        if found is None:
            return Page([], has_more=False, next_cursor=None)
        query, own_accounts = found
        return await self._build_page(query, filters, own_accounts, full=self._is_staff)

    async def sum_newest(self, filters: TransactionFilters) -> TransactionSums:
        """Return totals over a list's newest transactions, at most `filters.limit`."""
        found = await self._build_query(filters)
        if found is None:
            return TransactionSums(0, 0, 0, is_complete=True)
        return await queries.sum_newest(
            self.database, found[0], filters, self.caller, now=self.now, zone=self.zone
        )

    async def _build_query(
        self, filters: TransactionFilters
    ) -> tuple[TransactionQuery, list[int]] | None:
        """Return a list's query and its user's accounts; None if there is no user."""
        if self._view is not None:
            return await self._build_owner_query(self._view, filters)
        query, own_accounts = TransactionQuery(), list[int]()
        if filters.user_id is not None:
            own_accounts = await self._list_account_ids(filters.user_id)
            query.include_accounts(own_accounts)
            if not own_accounts:
                return None
        if filters.card_serial is not None:
            account_id = await self._get_card_account_id(filters.card_serial)
            if own_accounts:
                query.filter_by_card(filters.card_serial)
            else:
                query.include_card(filters.card_serial, account_id)
        return query, own_accounts

    async def _build_owner_query(
        self, view: OwnerView, filters: TransactionFilters
    ) -> tuple[TransactionQuery, list[int]]:
        """Return the query for an owner's list. The other filters select among its transactions."""
        query = TransactionQuery(since=view.since)
        accounts = await queries.list_owner_accounts(self.database, view.owner)
        query.include_accounts(accounts)
        if filters.user_id is not None:
            query.filter_by_accounts(await self._list_account_ids(filters.user_id))
        if filters.card_serial is not None:
            query.filter_by_card(filters.card_serial)
        shows_balance = self.caller.role != AdminRole.MERCHANT_CASHIER
        return query, accounts if shows_balance else []

    async def list_processor_page(
        self, processor_id: str, filters: TransactionFilters
    ) -> Page[TransactionRecord]:
        own_accounts = (
            await self._list_account_ids(processor_id)
            if processor_id.startswith(ids.PROCESSOR)
            else []
        )
        if not own_accounts:
            raise ApiError(Code.PROCESSOR_NOT_FOUND)
        query = TransactionQuery()
        query.include_accounts(own_accounts)
        if filters.user_id is not None:
            query.filter_by_accounts(await self._list_account_ids(filters.user_id))
        if filters.card_serial is not None:
            await self._get_card_account_id(filters.card_serial)
            query.filter_by_card(filters.card_serial)
        return await self._build_page(query, filters, own_accounts, full=False)

    async def _get(self, transaction_id: int) -> Transaction:
        transaction = await queries.get(self.database, transaction_id)
        await require_transaction_access(
            self.database, self.caller, self.now, transaction.account_ids
        )
        return transaction

    async def _list_account_ids(self, user_id: str) -> list[int]:
        """Return a user's account IDs; empty if the user does not exist."""
        user = parse_user_id(user_id)
        if user is None:
            return []
        account_ids, is_hidden = await queries.list_account_ids(
            self.database, user, self.caller, self.now
        )
        if is_hidden and self._view is None:
            reject_hidden(self.caller)
        return account_ids

    async def _get_card_account_id(self, serial: str) -> int | None:
        account_id = await queries.get_card_account_id(self.database, serial)
        await self._require_access([account_id])
        return account_id

    async def _require_access(self, account_ids: Collection[int | None]) -> None:
        if self._view is not None:
            return  # whether a foreign customer is restricted is nothing that owners learn
        await require_account_access(self.database, self.caller, self.now, account_ids)

    async def _find_hidden(self, transactions: Iterable[Transaction]) -> set[int]:
        account_ids = {account for item in transactions for account in item.account_ids}
        return await find_hidden_accounts(self.database, self.caller, self.now, account_ids)

    async def _build_page(
        self,
        query: TransactionQuery,
        filters: TransactionFilters,
        own_accounts: list[int],
        *,
        full: bool,
    ) -> Page[TransactionRecord]:
        rows, hidden = await queries.list_page(
            self.database, query, filters, self.caller, now=self.now, zone=self.zone
        )
        return paginate(
            rows,
            filters,
            lambda row: to_record(row, full=full, own_accounts=own_accounts, hidden=hidden),
            lambda row: queries.get_position(filters, row),
        )

    async def _get_replays(self, transaction_id: int) -> ReplaySummary:
        row = await self.database.fetchrow(
            "SELECT count, last_at FROM replays WHERE transaction_id = $1", transaction_id
        )
        if row is None:
            return ReplaySummary(count=0, last_at=None)
        return ReplaySummary(count=row["count"], last_at=clock.format_rfc3339(row["last_at"]))
