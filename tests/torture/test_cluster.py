"""One round against a small cluster: the leader's PostgreSQL crashes.

`make torture CLUSTER=1` runs all faults against a cluster of full size.
"""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tapgate.runtime.store.server_user import resolve_server_user
from tools.cluster import ClusterError
from tools.cluster.layout import Size
from tools.cluster.programs import find_programs
from tools.cluster.status import LEADER
from torture.cluster.faults import FAULT_KINDS, build_cluster_round
from torture.cluster.run import ClusterRun, start_cluster_run
from torture.findings import Findings

pytestmark = [pytest.mark.failures, pytest.mark.webhooks, pytest.mark.messenger]

_SIZE = Size(etcd=1, postgres=3, gateway=2, messenger=1)
_RATE = 6.0
#: One process per gateway, because every process takes a second of CPU time to start.
_SETTINGS = {"TAPGATE_WORKERS": "1", "TAPGATE_REPORT_WORKERS": "0"}


@pytest.fixture(scope="module")
async def run() -> AsyncIterator[ClusterRun]:
    """A run on a small cluster; all processes must have ended afterwards."""
    try:
        find_programs(resolve_server_user(Path("/")))
    except ClusterError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as folder:
        async with start_cluster_run(
            Path(folder), Findings(), size=_SIZE, rate=_RATE, settings=_SETTINGS
        ) as run:
            yield run
            nodes = run.target.cluster.nodes.values()
            processes = [process for node in nodes for process in node.list_processes()]
        assert len(processes) > len(nodes)
        assert not any(process.is_running() for process in processes)


async def test_failover_loses_and_duplicates_nothing(run: ClusterRun) -> None:
    leader = await run.target.find_node(LEADER)
    plan = build_cluster_round(11, 1, kinds=["crash the leader's PostgreSQL"], rate=_RATE)
    stats = await run.run_round(plan)
    await run.finish()
    assert run.findings.all == []
    assert await run.target.find_node(LEADER) != leader
    assert stats.succeeded > 50
    assert stats.duplicates > 5
    assert run.chat.message_count > 5


def test_every_kind_of_fault_occurs_in_a_run() -> None:
    plans = [build_cluster_round(3, number) for number in range(1, len(FAULT_KINDS) + 1)]
    assert {plan.faults[0].kind for plan in plans} == FAULT_KINDS.keys()
    assert build_cluster_round(3, 4) == plans[3]
