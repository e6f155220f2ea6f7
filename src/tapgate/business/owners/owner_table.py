"""Owner tables: partners, processors and agents.

Name, status and balance are stored on the owner's first account. The locks on its accounts also
guard the owner's row.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from tapgate.core.records import NOT_FOUND_CODES
from tapgate.ledger.accounts import lock_account
from tapgate.ledger.chart import AccountStatus
from tapgate.runtime.store.conditions import Conditions, PageConditions, start_name_page
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, require_found
from tapgate_client.schemas.pagination import NameOrder

T = TypeVar("T", bound=msgspec.Struct)

#: Status in the API -> status stored on the account.
_ACCOUNT_STATUSES: Final = {
    "active": AccountStatus.ACTIVE,
    "suspended": AccountStatus.BLOCKED,
    "terminated": AccountStatus.CLOSED,
}
#: Status stored on the account -> status in the API.
STATUSES: Final = {stored: name for name, stored in _ACCOUNT_STATUSES.items()}


class OwnerFilters(Protocol):
    """Filters that the lists of all owners have."""

    @property
    def status(self) -> str | None: ...
    @property
    def search(self) -> str | None: ...


#: Adds the filters that only one kind of owner has.
AddFilters = Callable[[Conditions], None]


def _add_nothing(conditions: Conditions) -> None:
    pass


class OwnerTable(NamedTuple, Generic[T]):
    """Table whose rows are loaded as `record_type`.

    `columns` are selected in addition to those that all owners have, from the owner `p`, its first
    account `a`, and `joins`.
    """

    noun: str
    record_type: type[T]
    prefix: str
    columns: str
    joins: str = ""
    account_columns: tuple[str, ...] = ("account_id",)
    status: str = "CASE a.status WHEN 'active' THEN 'active' ELSE 'suspended' END"

    @property
    def name(self) -> str:
        return f"{self.noun}s"

    @property
    def _select(self) -> str:
        return f"""
            SELECT p.id, p.account_id, p.created_at, a.holder_name AS name, a.currency,
                   {self.status} AS status, {self.columns}
            FROM {self._tables} {self.joins}"""

    @property
    def _tables(self) -> str:
        return f"{self.name} p JOIN accounts a ON a.id = p.account_id"

    async def get(self, reader: Database | Transaction, owner_id: int) -> T:
        row = await reader.fetchrow(f"{self._select} WHERE p.id = $1", owner_id)
        return self.record_type(**require_found(row, NOT_FOUND_CODES[self.prefix]))

    async def get_many(self, database: Database, owner_ids: list[int]) -> list[T]:
        rows = await database.fetch(f"{self._select} WHERE p.id = ANY ($1::bigint[])", owner_ids)
        return [self.record_type(**row) for row in rows]

    async def require_exists(self, reader: Database | Transaction, owner_id: int) -> None:
        sql = f"SELECT EXISTS (SELECT FROM {self.name} WHERE id = $1)"
        if not await reader.fetchval(sql, owner_id):
            raise ApiError(NOT_FOUND_CODES[self.prefix])

    async def lock(self, tx: Transaction, owner_id: int) -> T:
        """Lock an owner's accounts and return the owner.

        The locks serialize owner changes, and block its transactions until the database transaction
        ends.
        """
        sql = f"SELECT {', '.join(self.account_columns)} FROM {self.name} WHERE id = $1"
        accounts = require_found(await tx.fetchrow(sql, owner_id), NOT_FOUND_CODES[self.prefix])
        # In the same order as the ledger, to prevent deadlocks.
        for account_id in sorted(accounts):
            await lock_account(tx, account_id)
        # Read after locking: another database transaction may have changed the row before the lock
        # was granted.
        return await self.get(tx, owner_id)

    async def list_page(
        self,
        database: Database,
        filters: Any,
        add_filters: AddFilters = _add_nothing,
        visible: Conditions | None = None,
    ) -> list[T]:
        """Return a page of owners, plus one row if there are more.

        `visible` are the conditions for owners that the caller may know.
        """
        conditions = PageConditions(filters, "p.id")
        if filters.order == NameOrder.NAME:
            conditions = await start_name_page(
                database,
                filters,
                "p.id",
                "lower(a.holder_name)",
                source=self._tables,
                visible=visible or Conditions(),
            )
        self._add_filters(conditions, filters, add_filters)
        return [self.record_type(**row) for row in await conditions.fetch(database, self._select)]

    async def sum_balances(
        self, database: Database, filters: OwnerFilters, add_filters: AddFilters = _add_nothing
    ) -> tuple[int, int]:
        """Return the number of owners in a list, and the sum of the balances of `account_id`."""
        conditions = Conditions()
        self._add_filters(conditions, filters, add_filters)
        row = await database.fetchrow(
            f"""SELECT count(*), coalesce(sum(a.balance), 0)
                FROM {self._tables} WHERE {conditions}""",
            *conditions.values,
        )
        assert row is not None
        return int(row[0]), int(row[1])

    def _add_filters(
        self, conditions: Conditions, filters: OwnerFilters, add_filters: AddFilters
    ) -> None:
        conditions.where("a.status = {}", filters.status and _ACCOUNT_STATUSES[filters.status])
        conditions.search(filters.search, "p.search_text", id_column="p.id", prefix=self.prefix)
        add_filters(conditions)

    async def save_status(
        self, tx: Transaction, owner_id: int, account_id: int, status: str, reason: str | None
    ) -> None:
        """Store the status on the owner's account, which the caller has locked.

        The reason is kept only while the owner is suspended.
        """
        await tx.execute(
            "UPDATE accounts SET status = $2, status_reason = $3, updated_at = $4 WHERE id = $1",
            account_id,
            _ACCOUNT_STATUSES[status],
            reason if status == "suspended" else None,
            tx.now(),
        )
        if "updated_at" in self.record_type.__struct_fields__:
            sql = f"UPDATE {self.name} SET updated_at = $2 WHERE id = $1"
            await tx.execute(sql, owner_id, tx.now())
