"""A statement reads only the entries of its own wallet, regardless of the table size."""

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from tapgate.store.database import Database
from tapgate.wallets.statements.queries import load_activity
from transactions.large_history import NOW, QueryExplainer, count_rows_read, insert_transactions

#: About 150 of the 200,000 transactions belong to this account.
WALLET_ID = 500


class ExplainingDatabase(QueryExplainer):
    """Fake database and connection that explains queries instead of returning rows."""

    @asynccontextmanager
    async def connection(self) -> Any:
        yield self

    @asynccontextmanager
    async def transaction(self, **_: Any) -> Any:
        yield

    async def execute(self, _: str) -> None:
        """Ignore session settings, because the plans must be good without them."""


async def test_statement_reads_only_its_wallet_since_the_start_of_the_period(
    database: Database,
) -> None:
    await insert_transactions(database)
    explainer: Any = ExplainingDatabase(database)
    for days, max_rows in ((365, 200), (30, 25)):
        explainer.plans.clear()
        start = NOW - timedelta(days=days)
        await load_activity(explainer, WALLET_ID, start, start + timedelta(days=30))
        assert len(explainer.plans) == 4  # opening balance and movements, each planned twice
        for plan in explainer.plans:
            assert 0 < count_rows_read(plan) <= max_rows
            assert count_rows_read(plan, "entries") <= max_rows
