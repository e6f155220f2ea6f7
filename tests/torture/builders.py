"""A short run for the reconciler tests: two rounds with faults, and tampering helpers."""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import IO, Any, cast

import msgspec
import psutil

from drivers.forked import fork
from drivers.processes import TAPGATE_EXECUTABLE
from tapgate.runtime.store.database import Database
from torture.api_view import ApiView
from torture.client_ledger import ClientLedger, OperationState
from torture.findings import Findings
from torture.installation import Installation
from torture.plan import Fault, build_round
from torture.reconciler import Reconciler
from torture.run import TortureRun
from torture.staff_plan import StaffPlan, StaffWork

_SEED = 7
_OPERATION_COUNT = 90
#: The day ends before the second round.
_WORK = StaffWork(fundings=10, corrections=True, payouts=10, batch_lines=120, rounds_per_day=1)


class ForkedInstallation(Installation):
    """Installation whose processes start faster."""

    def _spawn(self, environ: Mapping[str, str], log: IO[bytes]) -> psutil.Process:
        files = [os.dup(log.fileno()) for _ in range(2)]
        command = (TAPGATE_EXECUTABLE, "serve")
        process = fork(command, environ, self.folder, files, os.setsid, fork_workers=True)
        return psutil.Process(process.pid)


async def run_two_rounds(run: TortureRun) -> None:
    """Kill a worker and the database in the first round, and everything in the second."""
    for number, kinds in enumerate(
        (("kill a worker", "kill the postmaster"), ("kill everything",)), 1
    ):
        plan = build_round(
            _SEED,
            number,
            operations=_OPERATION_COUNT,
            add_staff_work=StaffPlan(_WORK, _SEED, number).add,
        )
        await run.advance_clock(_WORK.count_days(number))
        planned_faults = [
            Fault(kind=kind, after_operations=25 + 30 * index, delay=0.003, choice=index)
            for index, kind in enumerate(kinds)
        ]
        await run.run_round(msgspec.structs.replace(plan, faults=planned_faults))


def find_succeeded(run: TortureRun, kind: str) -> OperationState:
    """Return a kind's first operation that succeeded and was not refunded."""
    return next(
        state
        for state in run.client_ledger.operations.values()
        if state.operation.kind == kind
        and state.acknowledgment is not None
        and state.acknowledgment.succeeded
        and not run.client_ledger.given_back[state.operation.idempotency_key]
    )


class _TransactionDatabase:
    """Database stand-in on one connection, inside a transaction that is rolled back."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.fetch, self.fetchval = connection.fetch, connection.fetchval

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        yield self._connection

    dedicated_connection = connection


class _RollbackError(Exception):
    pass


async def reconcile_after_tampering(run: TortureRun, tampering: str, *values: object) -> Findings:
    """Return the findings after tampering with the tables; the change is rolled back."""
    findings = Findings()
    database = await Database.connect(run.installation.database_url, size=1)
    try:
        async with database.connection() as connection:
            with contextlib.suppress(_RollbackError):
                # Verification nests a transaction in this one and requires its isolation level.
                async with connection.transaction(isolation="repeatable_read"):
                    await connection.execute("SET LOCAL session_replication_role = replica")
                    changed = await connection.execute(tampering, *values)
                    assert not changed.endswith(" 0"), "the statement changed no row"
                    transaction_database = cast(Database, _TransactionDatabase(connection))
                    await _reconcile(run, transaction_database, run.client_ledger, findings)
                    raise _RollbackError
    finally:
        await database.close()
    return findings


async def reconcile_with(run: TortureRun, client_ledger: ClientLedger) -> Findings:
    """Return the findings for the given client ledger."""
    findings = Findings()
    database = await Database.connect(run.installation.database_url, size=1)
    try:
        await _reconcile(run, database, client_ledger, findings)
    finally:
        await database.close()
    return findings


async def _reconcile(
    run: TortureRun, database: Database, client_ledger: ClientLedger, findings: Findings
) -> None:
    api_view = ApiView(run.installation.port, run.participants)
    try:
        reconciler = Reconciler(database, api_view, run.participants, client_ledger, findings)
        await reconciler.reconcile(list(client_ledger.operations.values()), run.first_checkpoint)
        await reconciler.verify_books()
    finally:
        api_view.close()
