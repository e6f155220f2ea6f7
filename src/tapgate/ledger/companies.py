"""Tables of companies: partners and processors, which have one account and can be suspended.

Status, name and balance are stored on the account row. The lock on the account row also guards the
company's row.
"""

from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from tapgate.core.records import NOT_FOUND_CODES
from tapgate.ledger.accounts import lock_account
from tapgate.ledger.chart import AccountStatus
from tapgate.runtime.store.conditions import Conditions, PageConditions, start_name_page
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, require_found
from tapgate_client.schemas.pagination import NameOrder
from tapgate_client.schemas.partners import PartnerFilters
from tapgate_client.schemas.processors import ProcessorFilters

T = TypeVar("T", bound=msgspec.Struct)

#: Status in the API -> status stored on the account.
_ACCOUNT_STATUSES: Final = {"active": AccountStatus.ACTIVE, "suspended": AccountStatus.BLOCKED}


class CompanyTable(NamedTuple, Generic[T]):
    """Table whose rows are loaded as `record_type`.

    `columns` are selected in addition to those that all companies have, from the company `p` and
    its account `a`.
    """

    name: str
    record_type: type[T]
    prefix: str
    columns: str

    @property
    def _select(self) -> str:
        return f"""
            SELECT p.id, p.account_id, p.created_at, a.holder_name AS name, a.currency, a.balance,
                   CASE a.status WHEN 'active' THEN 'active' ELSE 'suspended' END AS status,
                   {self.columns}
            FROM {self._tables}"""

    @property
    def _tables(self) -> str:
        return f"{self.name} p JOIN accounts a ON a.id = p.account_id"

    async def get(self, reader: Database | Transaction, company_id: int) -> T:
        row = await reader.fetchrow(f"{self._select} WHERE p.id = $1", company_id)
        return self.record_type(**require_found(row, NOT_FOUND_CODES[self.prefix]))

    async def require_exists(self, reader: Database | Transaction, company_id: int) -> None:
        sql = f"SELECT EXISTS (SELECT FROM {self.name} WHERE id = $1)"
        if not await reader.fetchval(sql, company_id):
            raise ApiError(NOT_FOUND_CODES[self.prefix])

    async def lock(self, tx: Transaction, company_id: int) -> T:
        """Lock a company's account, which serializes status changes, and return the company."""
        sql = f"SELECT account_id FROM {self.name} WHERE id = $1"
        account_id = await tx.fetchval(sql, company_id)
        await lock_account(tx, require_found(account_id, NOT_FOUND_CODES[self.prefix]))
        # Read after locking: another database transaction may have changed the row before the lock
        # was granted.
        return await self.get(tx, company_id)

    async def list_page(
        self, database: Database, filters: PartnerFilters | ProcessorFilters
    ) -> list[T]:
        conditions = PageConditions(filters, "p.id")
        if filters.order == NameOrder.NAME:
            conditions = await start_name_page(
                database,
                filters,
                "p.id",
                "lower(a.holder_name)",
                source=self._tables,
                visible=Conditions(),
            )
        self._add_filters(conditions, filters.status, filters.search)
        return [self.record_type(**row) for row in await conditions.fetch(database, self._select)]

    async def sum_balances(
        self, database: Database, status: str | None, search: str | None
    ) -> tuple[int, int]:
        """Return the number of companies in a list, and the sum of their balances."""
        conditions = Conditions()
        self._add_filters(conditions, status, search)
        row = await database.fetchrow(
            f"""SELECT count(*), coalesce(sum(a.balance), 0)
                FROM {self._tables} WHERE {conditions}""",
            *conditions.values,
        )
        assert row is not None
        return int(row[0]), int(row[1])

    def _add_filters(self, conditions: Conditions, status: str | None, search: str | None) -> None:
        conditions.where("a.status = {}", status and _ACCOUNT_STATUSES[status])
        conditions.search(search, "p.search_text", id_column="p.id", prefix=self.prefix)


async def save_status(tx: Transaction, account_id: int, status: str, reason: str | None) -> None:
    """Store the status of a company on its account, which the caller has locked.

    The reason is kept only while the company is suspended.
    """
    await tx.execute(
        "UPDATE accounts SET status = $2, status_reason = $3, updated_at = $4 WHERE id = $1",
        account_id,
        _ACCOUNT_STATUSES[status],
        reason if status == "suspended" else None,
        tx.now(),
    )
