"""Retention periods, and the job that deletes expired rows.

A process declares the tables it deletes rows from as a list of `Retention`. Every process runs the
job. Each batch is a separate, short database transaction and skips locked rows, so it neither
blocks requests nor other processes that delete rows concurrently.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, NoReturn

from tapgate.core.settings import Settings
from tapgate.runtime.background import do_for_each, run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

INTERVAL_SECONDS: Final = 600
#: Job runs until a table without an index on its age column is read again.
_RUNS_PER_SCAN: Final = 6
#: Pages per statement in a table without an index on its age column, about 40,000 keys.
SCANNED_PAGES: Final = 512


class Days(NamedTuple):
    """Retention period in a setting, in days."""

    setting: str
    #: Whether 0 keeps the rows forever. Otherwise 0 deletes all rows.
    zero_is_forever: bool


def _as_time(cutoff: datetime) -> object:
    return cutoff


class Retention(NamedTuple):
    """Rows of a table that are deleted, or whose `erase` columns are set to NULL, at an age."""

    table: str
    #: Noun phrase for docs/retention.md.
    rows: str
    #: Column, or indexed expression, that is compared with the cutoff.
    age: str
    keep: timedelta | Days
    #: Further condition. `$1` is the cutoff.
    condition: str = "true"
    #: Rows per database transaction.
    batch_size: int = 1_000
    #: Converts the cutoff to the type of `age`.
    to_cutoff: Callable[[datetime], object] = _as_time
    erase: tuple[str, ...] = ()
    #: Query for the `ctid` of up to `{limit}` rows, if the index does not begin with `age`.
    select: str | None = None
    #: Whether the table is read in page ranges, because it has no index on `age`.
    is_scanned: bool = False

    def compute_cutoff(self, now: datetime, settings: Settings) -> object | None:
        """Return the cutoff, or None if the rows are kept forever."""
        keep = self.keep
        if isinstance(keep, Days):
            days = getattr(settings, keep.setting)
            if not days and keep.zero_is_forever:
                return None
            keep = timedelta(days=days)
        return self.to_cutoff(now - keep)

    def build_batch_sql(self) -> str:
        """Return a statement that deletes or erases a batch and returns the number of rows."""
        select = self.select or (
            f"SELECT ctid FROM {self.table} WHERE {self.age} < $1 AND {self.condition}"
            f" ORDER BY {self.age} LIMIT {{limit}} FOR UPDATE SKIP LOCKED"
        )
        return self._count_rows(f"ctid = ANY (ARRAY({select.format(limit=self.batch_size)}))")

    def build_scan_sql(self, first_page: int) -> str:
        """Return a statement that deletes old rows in a page range."""
        return self._count_rows(
            f"""ctid >= '({first_page},0)' AND ctid < '({first_page + SCANNED_PAGES},0)'
                AND {self.age} < $1 AND {self.condition}"""
        )

    def _count_rows(self, condition: str) -> str:
        change = f"DELETE FROM {self.table}"
        if self.erase:
            columns = ", ".join(f"{name} = NULL" for name in self.erase)
            change = f"UPDATE {self.table} SET {columns}"
        return f"""
            WITH changed AS ({change} WHERE {condition} RETURNING 1)
            SELECT count(*) FROM changed"""


class RetentionJob:
    """Deletes rows according to one process's declarations."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        settings: Settings,
        declarations: Iterable[Retention],
    ) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._declarations = tuple(declarations)
        self._runs = 0

    async def run(self) -> NoReturn:
        await run_periodically(self.delete_expired, every=INTERVAL_SECONDS, name="retention")

    async def delete_expired(self) -> None:
        """Delete all rows that are old enough, batch by batch."""
        is_scan = self._runs % _RUNS_PER_SCAN == 0
        self._runs += 1
        due = [one for one in self._declarations if is_scan or not one.is_scanned]
        await do_for_each(due, self.apply)

    async def apply(self, declaration: Retention) -> int:
        """Delete one declaration's old rows and return their number."""
        cutoff = declaration.compute_cutoff(self._clock(), self._settings)
        if cutoff is None:
            return 0
        if declaration.is_scanned:
            return await self._scan(declaration, cutoff)
        total, sql = 0, declaration.build_batch_sql()
        while True:
            changed: int = await self._database.fetchval(sql, cutoff)
            total += changed
            if changed < declaration.batch_size:
                return total

    async def _scan(self, declaration: Retention, cutoff: Any) -> int:
        pages = await self._database.fetchval(
            "SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::integer",
            declaration.table,
        )
        total = 0
        for first in range(0, pages, SCANNED_PAGES):
            total += await self._database.fetchval(declaration.build_scan_sql(first), cutoff)
        return total
