"""Lists of a large history read only as many rows as the page needs."""

from datetime import UTC, timedelta
from typing import Any

from tapgate import ids
from tapgate.auth.principals import Principal
from tapgate.schemas.transactions import TransactionFilters
from tapgate.store.database import Database
from tapgate.transactions import queries
from tapgate.transactions.queries import TransactionQuery
from transactions.large_history import (
    BUSY_ACCOUNT_ID,
    NOW,
    QueryExplainer,
    count_rows_read,
    insert_transactions,
)

CALLERS = (
    Principal(kind="api_key", id="key_1", name="Shop"),
    Principal(kind="admin", id="adm_1", name="Ada", admin_id=1),
)


def build_scope(*accounts: int, card: str | None = None) -> TransactionQuery:
    scope = TransactionQuery()
    if card is not None:
        scope.include_card(card, accounts[0])
    else:
        scope.include_accounts(accounts)
    return scope


async def count_rows_read_by(
    database: Database,
    caller: Principal,
    filters: TransactionFilters,
    *accounts: int,
    card: str | None = None,
) -> int:
    recorder: Any = QueryExplainer(database)
    await queries.list_page(
        recorder,
        build_scope(*accounts, card=card),
        filters,
        caller,
        now=NOW,
        zone=UTC,  # type: ignore[arg-type]
    )
    return max(map(count_rows_read, recorder.plans))


async def test_page_reads_a_bounded_number_of_rows(database: Database) -> None:
    await insert_transactions(database)
    middle = ids.first_id_at(NOW - timedelta(days=180))
    newest = TransactionFilters(limit=50)
    older = TransactionFilters(limit=50, cursor=ids.encode("cur_", middle))
    month = TransactionFilters(limit=50, from_="2025-10-01", to="2025-10-31")
    for caller in CALLERS:
        for filters in (newest, older, month):
            assert await count_rows_read_by(database, caller, filters) < 300
            assert await count_rows_read_by(database, caller, filters, BUSY_ACCOUNT_ID) < 500
            assert await count_rows_read_by(database, caller, filters, 500) < 500
            assert await count_rows_read_by(database, caller, filters, 500, 501) < 900
        assert (
            await count_rows_read_by(database, caller, TransactionFilters(type="partner_deposit"))
            < 300
        )
        assert await count_rows_read_by(database, caller, TransactionFilters(status="failed")) < 300
        assert (
            await count_rows_read_by(
                database, caller, TransactionFilters(failure_code="CARD_BLOCKED")
            )
            < 300
        )
        assert await count_rows_read_by(database, caller, newest, 500, card="TAP-498") < 900
