"""A statement reads its own wallet's books, however many others there are."""

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from tapgate.store.database import Database
from tapgate.wallets.statements.queries import load_activity
from transactions.large_history import NOW, QueryExplainer, count_rows_read, insert_transactions

#: Of two hundred thousand transactions about a hundred and fifty are this one's.
WALLET_ID = 500


class ExplainingDatabase(QueryExplainer):
    """Stands in for the database and for its connection, which has a transaction."""

    @asynccontextmanager
    async def connection(self) -> Any:
        yield self

    @asynccontextmanager
    async def transaction(self, **_: Any) -> Any:
        yield

    async def execute(self, _: str) -> None:
        """A setting of the session: plans must be good without it."""


async def test_a_statement_reads_one_wallet_since_the_period_began(database: Database) -> None:
    await insert_transactions(database)
    recorder: Any = ExplainingDatabase(database)
    for days, most in ((365, 200), (30, 25)):
        recorder.plans.clear()
        start = NOW - timedelta(days=days)
        await load_activity(recorder, WALLET_ID, start, start + timedelta(days=30))
        assert len(recorder.plans) == 4  # opening balance and movements, each planned twice
        for plan in recorder.plans:
            assert 0 < count_rows_read(plan) <= most
            assert count_rows_read(plan, "entries") <= most
