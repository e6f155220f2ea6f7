"""A run against a cluster: rounds with one node fault each, with chat and revocations."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tools.cluster.layout import Size
from torture import provisioning
from torture.cluster.chat import ChatLoad, run_chat_provider
from torture.cluster.faults import FAULT_KINDS, RATE, ClusterFaultInjector, build_cluster_round
from torture.cluster.relay import SlowRelay
from torture.cluster.report import ClusterReport
from torture.cluster.revocations import RevocationProbe
from torture.cluster.target import ClusterTarget
from torture.events import EventReceiver, run_event_receiver
from torture.findings import Findings
from torture.installation import UnhealthyError
from torture.load import LoadRound
from torture.participants import Participants
from torture.plan import RoundPlan
from torture.round_stats import ReadinessStats, RoundStats
from torture.run import TortureRun


class ClusterRun(TortureRun):
    def __init__(
        self,
        target: ClusterTarget,
        participants: Participants,
        event_receiver: EventReceiver,
        findings: Findings,
        chat: ChatLoad,
        rate: float,
    ) -> None:
        super().__init__(target, participants, event_receiver, findings)
        self.chat = chat
        self.revocations = RevocationProbe(target, participants, findings)
        self.target = target
        self._rate = rate

    def create_load(self, plan: RoundPlan) -> LoadRound:
        return LoadRound(
            self.installation,
            self.participants,
            self.client_ledger,
            self.findings,
            plan,
            injector=ClusterFaultInjector,
            rate=self._rate,
        )

    async def run_round(self, plan: RoundPlan) -> RoundStats:
        """Run the load, the fault and the revocations; then reconcile on the leader."""
        began = time.monotonic()
        self.findings.round = plan.number
        await self.target.wait_until_healthy()
        quiet_seconds = FAULT_KINDS[plan.faults[0].kind].quiet_seconds
        await asyncio.sleep(quiet_seconds)
        await self.revocations.prepare_round()
        self.target.fault_started.clear()
        load = self.create_load(plan)
        async with self.target.readiness.run():
            async with asyncio.TaskGroup() as group:
                operations = group.create_task(load.run())
                group.create_task(self._revoke_during_fault())
            await self.target.wait_until_healthy()
        load.stats.readiness = self.target.readiness.measure()
        self._check_readiness(plan, load.stats.readiness)
        await asyncio.sleep(quiet_seconds)
        await self.reconcile(operations.result())
        load.stats.duration_seconds = time.monotonic() - began
        return load.stats

    def _check_readiness(self, plan: RoundPlan, readiness: ReadinessStats) -> None:
        """Require that every gateway that could not commit was soon not ready."""
        kind = plan.faults[0].kind
        limit = FAULT_KINDS[kind].notice_seconds
        if limit is None:
            return
        for name in self.target.list_gateway_ports():
            seconds = readiness.seconds_until_not_ready.get(name)
            if seconds is None:
                self.findings.add("readiness", name, f"stayed ready: {kind}")
            elif seconds > limit:
                self.findings.add("readiness", name, f"was ready for {seconds:.1f} s: {kind}")

    async def _revoke_during_fault(self) -> None:
        await self.target.fault_started.wait()
        await self.revocations.revoke()

    async def finish(self) -> None:
        """Reconcile the whole run, the received events and the chat."""
        self.chat.stop()
        await self.reconcile_all()
        await self.event_receiver.reconcile(self.client_ledger.operations.values(), self.findings)
        async with self._connect() as database:
            await self.chat.reconcile(database, self.findings)


@contextlib.asynccontextmanager
async def start_cluster_run(
    folder: Path,
    findings: Findings,
    *,
    size: Size | None = None,
    rate: float = RATE,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[ClusterRun]:
    """Start a cluster and a run on it; stop the cluster at the end."""
    relay = SlowRelay()
    async with run_event_receiver() as event_receiver, run_chat_provider() as chat, relay.run():
        target = ClusterTarget(folder, size or Size(), chat.settings | dict(settings), relay)
        target.prepare()
        try:
            await target.cluster.start()
            participants = await provisioning.provision(target.port, event_receiver.url)
            run = ClusterRun(target, participants, event_receiver, findings, chat, rate)
            await run.revocations.start()
            await run.start()
            async with _run_in_background(target, chat, participants):
                yield run
            await run.revocations.close()
        finally:
            await target.stop()


@contextlib.asynccontextmanager
async def _run_in_background(
    target: ClusterTarget, chat: ChatLoad, participants: Participants
) -> AsyncIterator[None]:
    """Restart killed processes, and send chat messages."""
    tasks = [
        asyncio.create_task(target.cluster.supervise()),
        asyncio.create_task(chat.run(target.messenger_url, participants)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_cluster_rounds(
    run: ClusterRun, seed: int, rounds: int, report: ClusterReport, kinds: Sequence[str] = ()
) -> None:
    """Run rounds with faults of these kinds in turn, or with all kinds."""
    for number in range(1, rounds + 1):
        before, plan = len(run.findings.all), build_cluster_round(seed, number, kinds=kinds)
        try:
            stats = await run.run_round(plan)
        except UnhealthyError as error:
            run.findings.add("start", "cluster", str(error))
            return
        report.print_round(plan, stats, len(run.findings.all) - before)
    await run.finish()
    report.print_events(run.event_receiver.event_count, run.event_receiver.deliveries)
    report.set_counts(run.chat.message_count, run.chat.reply_count, run.revocations.count)
