"""A rolling upgrade and rollback under load, in which no operation may fail at the first try."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import asyncpg
import msgspec

from databases import SELECT_TABLES_SQL
from torture import provisioning
from torture.events import run_event_receiver
from torture.findings import Findings
from torture.load import LoadRound
from torture.plan import RoundPlan, build_round
from torture.reconciler import create_checkpoint
from torture.round_stats import RoundStats
from torture.run import TortureRun
from torture.upgrade.nodes import UpgradeTarget, open_target
from torture.upgrade.releases import CONTRACT_NAME, Release

#: Seconds that a client waits for a response. A machine with other load may stall.
_RESPONSE_TIMEOUT_SECONDS: Final = 30.0
_MIN_OPERATIONS_PER_ROUND: Final = 15
_ROUNDS: Final = 25
_SELECT_WRITERS: Final = "SELECT written_by, count(*) FROM transactions GROUP BY 1 ORDER BY 1"

Step = tuple[str, Callable[[], Awaitable[None]]]


class UpgradeRun(TortureRun):
    def __init__(self, target: UpgradeTarget, *arguments: object, rate: float, seed: int) -> None:
        super().__init__(target, *arguments)  # type: ignore[arg-type]
        self.target = target
        self.stats: list[RoundStats] = []
        self._rate = rate
        self._seed = seed

    async def start(self) -> None:
        async with self._connect() as database:
            self.first_checkpoint = await create_checkpoint(database, self.client_ledger)

    @property
    def operation_count(self) -> int:
        return sum(stats.operations for stats in self.stats)

    @property
    def failed_attempts(self) -> Counter[str]:
        """First attempts without a final response, by reason. There are no retries without them."""
        return sum((stats.failed_attempts for stats in self.stats), Counter[str]())

    def create_load(self, plan: RoundPlan) -> LoadRound:
        return LoadRound(
            self.installation,
            self.participants,
            self.client_ledger,
            self.findings,
            plan,
            rate=self._rate,
            timeout_seconds=_RESPONSE_TIMEOUT_SECONDS,
        )

    async def run_steps(
        self, steps: Sequence[Step], *, operations: int, report: Callable[[str], None]
    ) -> None:
        """Run the steps under load, evenly distributed over the operations."""
        task = asyncio.create_task(self._run_steps(steps, operations, report))
        try:
            while not task.done() or self.operation_count < operations:
                await self._run_load(
                    len(self.stats) + 1, max(operations // _ROUNDS, _MIN_OPERATIONS_PER_ROUND)
                )
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self.reconcile_all()
        await self.event_receiver.reconcile(self.client_ledger.operations.values(), self.findings)

    async def _run_steps(
        self, steps: Sequence[Step], operations: int, report: Callable[[str], None]
    ) -> None:
        for index, (name, step) in enumerate(steps):
            while self.operation_count < (index + 0.5) * operations / len(steps):
                await asyncio.sleep(0.1)
            report(name)
            await step()

    async def _run_load(self, number: int, operations: int) -> None:
        self.findings.round = number
        plan = build_round(self._seed, number, operations=operations)
        planned = [msgspec.structs.replace(item, cut_point=None) for item in plan.operations]
        load = self.create_load(msgspec.structs.replace(plan, operations=planned, faults=[]))
        await load.run()
        self.stats.append(load.stats)


@contextlib.asynccontextmanager
async def start_upgrade_run(
    folder: Path, database_url: str, old: Release, *, workers: Sequence[int], rate: float, seed: int
) -> AsyncIterator[UpgradeRun]:
    """Start an old-release node for each number of workers, and a run on them."""
    async with run_event_receiver() as receiver, open_target(folder, database_url) as target:
        for count in workers:
            await target.add_node(workers=count).start(old)
        participants = await provisioning.provision(target.port, receiver.url, signing_cards=False)
        run = UpgradeRun(target, participants, receiver, Findings(print), rate=rate, seed=seed)
        await run.start()
        yield run


def build_steps(
    target: UpgradeTarget, old: Release, new: Release, *, is_thorough: bool
) -> list[Step]:
    """Return the steps in an upgrade, during which an old-release node is restarted.

    A thorough run also rolls an upgraded node back, and tries to contract too early.
    """

    async def run(release: Release, *arguments: str) -> tuple[int, str]:
        return await asyncio.to_thread(release.run, target.environ, *arguments)

    async def expand() -> None:
        status, output = await run(new, "migrate")
        assert status == 0, output

    async def replace(number: int, release: Release) -> None:
        node = target.nodes[number]
        await node.stop()
        await node.start(release)

    async def restart_old() -> None:
        await replace(last, old)
        warning = f"Warning: the database was upgraded by Tapgate {new.version} to "
        is_newer = new.schema > old.schema
        assert (warning in target.nodes[last].read_log()) == is_newer
        if new.has_contract and is_thorough:
            status, output = await run(new, "migrate", "--contract")
            assert status == 1 and f"{CONTRACT_NAME} was not applied: gateway " in output, output

    async def contract() -> None:
        status, output = await run(new, "migrate", "--contract")
        assert status == 0 and f"applied {CONTRACT_NAME}" in output, output
        status, output = await target.add_node(workers=1).start_and_exit(old)
        expected = "tapgate: the database requires a newer release of Tapgate: "
        assert status == 1 and output.splitlines()[-1].startswith(expected), output

    last = len(target.nodes) - 1
    steps: list[Step] = [("expand", expand)]
    steps += [
        (f"node {number + 1}: {new.version}", partial(replace, number, new))
        for number in range(last)
    ]
    steps.append((f"node {last + 1}: restart {old.version}", restart_old))
    steps.append((f"node {last + 1}: {new.version}", partial(replace, last, new)))
    if is_thorough:
        steps.append((f"node 1: roll back to {old.version}", partial(replace, 0, old)))
        steps.append((f"node 1: {new.version} again", partial(replace, 0, new)))
    if new.has_contract:
        steps.append(("contract", contract))
    return steps


async def count_by_release(url: str) -> dict[str, int]:
    """Return the number of transactions that each release has written."""
    connection = await asyncpg.connect(url)
    try:
        return dict(map(tuple, await connection.fetch(_SELECT_WRITERS)))
    finally:
        await connection.close()


async def list_tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(SELECT_TABLES_SQL)]
    finally:
        await connection.close()
