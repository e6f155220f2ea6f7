"""A complete run: installation, participants, and rounds of load, faults and reconciliation."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

from tapgate.runtime.store.database import Database
from torture import provisioning
from torture.api_view import ApiView
from torture.approvals import count_executed
from torture.client_ledger import ClientLedger, OperationState
from torture.events import EventReceiver, run_event_receiver
from torture.findings import Findings
from torture.installation import WORKERS, Installation, UnhealthyError
from torture.load import LoadRound, LoadTarget
from torture.participants import Participants
from torture.plan import RoundPlan, build_round
from torture.reconciler import Checkpoint, Reconciler, create_checkpoint
from torture.report import Report
from torture.round_stats import RoundStats
from torture.staff_plan import StaffPlan, StaffWork

WORK: Final = StaffWork(
    fundings=12, corrections=True, payouts=12, batch_lines=250, rounds_per_day=4
)
#: Until every process has read the new offset.
_CLOCK_SECONDS: Final = 0.3


class TortureRun:
    def __init__(
        self,
        installation: LoadTarget,
        participants: Participants,
        event_receiver: EventReceiver,
        findings: Findings,
    ) -> None:
        self.installation = installation
        self.participants = participants
        self.event_receiver = event_receiver
        self.findings = findings
        self.client_ledger = ClientLedger(provisioning.OPENING_BALANCES)
        self.last_checkpoint = self.first_checkpoint = Checkpoint(0, 0, 0, {})

    async def start(self) -> None:
        async with self._connect() as database:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                if await database.fetchval("SELECT current_setting($1)", setting) != "on":
                    self.findings.add("start", setting, "is off, so committed data may be lost")
            self.last_checkpoint = self.first_checkpoint = await create_checkpoint(
                database, self.client_ledger
            )

    async def run_round(self, plan: RoundPlan) -> RoundStats:
        began = time.monotonic()
        self.findings.round = plan.number
        await self.installation.wait_until_healthy(workers=WORKERS)
        load = self.create_load(plan)
        operations = await load.run()
        await self.reconcile(operations)
        load.stats.duration_seconds = time.monotonic() - began
        return load.stats

    def create_load(self, plan: RoundPlan) -> LoadRound:
        return LoadRound(
            self.installation, self.participants, self.client_ledger, self.findings, plan
        )

    async def advance_clock(self, days: int) -> None:
        """Let days end, at a moment without load."""
        offset = timedelta(days=days)
        if offset != self.participants.clock_offset:
            assert isinstance(self.installation, Installation)
            await self.installation.wait_until_healthy(workers=WORKERS)
            self.installation.set_clock(offset)
            self.participants.clock_offset = offset
            await asyncio.sleep(_CLOCK_SECONDS)
            await provisioning.log_in_staff(self.installation.port, self.participants)

    async def reconcile(self, operations: list[OperationState]) -> None:
        """Reconcile these operations, and verify that earlier data is unchanged."""
        api_view = ApiView(self.installation.port, self.participants)
        try:
            async with self._connect() as database:
                reconciler = Reconciler(
                    database, api_view, self.participants, self.client_ledger, self.findings
                )
                await reconciler.reconcile(operations, self.last_checkpoint)
                await reconciler.verify_books()
                self.last_checkpoint = await create_checkpoint(database, self.client_ledger)
        finally:
            api_view.close()
        self.event_receiver.collect(self.findings)

    async def count_executed_approvals(self) -> tuple[int, int]:
        async with self._connect() as database:
            return await count_executed(database)

    async def reconcile_all(self) -> None:
        """Reconcile all operations since the start of the run."""
        self.last_checkpoint = self.first_checkpoint
        await self.reconcile(list(self.client_ledger.operations.values()))

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[Database]:
        database = await Database.connect(self.installation.database_url, size=1)
        try:
            yield database
        finally:
            await database.close()


@contextlib.asynccontextmanager
async def start_run(installation: Installation, findings: Findings) -> AsyncIterator[TortureRun]:
    """Start the installation and a run on it; the caller stops the installation."""
    async with run_event_receiver() as event_receiver:
        installation.start()
        await installation.wait_until_healthy(workers=WORKERS)
        participants = await provisioning.provision(
            installation.port, event_receiver.url, work=WORK
        )
        run = TortureRun(installation, participants, event_receiver, findings)
        await run.start()
        yield run


async def run_rounds(run: TortureRun, seed: int, rounds: int, report: Report) -> None:
    """Run all rounds, or stop early if the gateway does not become healthy again."""
    for number in range(1, rounds + 1):
        before = len(run.findings.all)
        plan = build_round(seed, number, add_staff_work=StaffPlan(WORK, seed, number).add)
        try:
            await run.advance_clock(WORK.count_days(number))
            stats = await run.run_round(plan)
        except UnhealthyError as error:
            run.findings.add("start", "gateway", str(error))
            return
        report.print_round(plan, stats, len(run.findings.all) - before)
    await run.reconcile_all()
    await run.event_receiver.reconcile(run.client_ledger.operations.values(), run.findings)
    report.count_approvals(*await run.count_executed_approvals())
    report.print_events(run.event_receiver.event_count, run.event_receiver.deliveries)
