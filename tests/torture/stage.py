"""A short run for the tests of the judge: two rounds under fire, and what is known afterwards."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from tapgate.store.database import Database
from torture.book import Book, Standing
from torture.findings import Findings
from torture.interface import Interface
from torture.judge import Judge
from torture.plan import Disaster, round_of
from torture.run import Run

_SEED = 7
_OPERATIONS = 90


async def two_rounds(run: Run) -> None:
    """Workers and database are killed in the first; everything in the second."""
    for number, kinds in enumerate(
        (("kill a worker", "kill the postmaster"), ("kill everything",)), 1
    ):
        plan = round_of(_SEED, number, operations=_OPERATIONS)
        disasters = [
            Disaster(kind=kind, after=25 + 30 * place, delay=0.003, choice=place)
            for place, kind in enumerate(kinds)
        ]
        await run.round(msgspec.structs.replace(plan, disasters=disasters))


def done(run: Run, kind: str) -> Standing:
    """An operation of a kind that was done, and never refunded."""
    return next(
        one
        for one in run.book.standings.values()
        if one.operation.kind == kind
        and one.told is not None
        and one.told.done
        and not run.book.refunded[one.operation.name]
    )


class _Within:
    """A database as one connection sees it in the middle of a change that is never committed."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.fetch, self.fetchval = connection.fetch, connection.fetchval

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        yield self._connection

    dedicated_connection = connection


class _TakenBackError(Exception):
    pass


async def found_after(run: Run, tampering: str, *values: object) -> Findings:
    """What the judge finds when somebody has changed the tables behind the gateway's back. The
    change is taken back."""
    findings = Findings()
    database = await Database.connect(run.installation.database_url, size=1)
    try:
        async with database.connection() as connection:
            with contextlib.suppress(_TakenBackError):
                # As the judge's own: within it there can be no other.
                async with connection.transaction(isolation="repeatable_read"):
                    await connection.execute("SET LOCAL session_replication_role = replica")
                    changed = await connection.execute(tampering, *values)
                    assert not changed.endswith(" 0"), "nothing was tampered with"
                    within = cast(Database, _Within(connection))
                    await _judge(run, within, run.book, findings)
                    raise _TakenBackError
    finally:
        await database.close()
    return findings


async def found_by(run: Run, book: Book) -> Findings:
    """What the judge finds when the clients know something else."""
    findings = Findings()
    database = await Database.connect(run.installation.database_url, size=1)
    try:
        await _judge(run, database, book, findings)
    finally:
        await database.close()
    return findings


async def _judge(run: Run, database: Database, book: Book, findings: Findings) -> None:
    interface = Interface(run.installation.port, run.town)
    try:
        judge = Judge(database, interface, run.town, book, findings)
        await judge.judge(list(book.standings.values()), run.begun)
        await judge.prove()
    finally:
        interface.hang_up()
