"""When a node that cannot commit payments leaves service, and when it returns."""

from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tapgate.runtime import commit_monitor
from tapgate.runtime.commit_monitor import (
    DISK_RECOVERY_SECONDS,
    PROBE_INTERVAL_SECONDS,
    RECENT_COMMIT_SECONDS,
    RECOVERY_SECONDS,
    CommitMonitor,
)
from tapgate.runtime.store.failures import Failure
from tapgate_client.errors import ApiError
from tapgate_client.schemas.health import NotReadyReason

LOCKED = NotReadyReason.LEDGER_LOCKED
DISK_FULL = NotReadyReason.DATABASE_DISK_FULL


class Node:
    """A node with two workers, a clock, and a database that commits or does not."""

    def __init__(self, path: Path) -> None:
        self.now = 1000.0
        self.fault: NotReadyReason | None = None
        self.probes = 0
        self.worker, self.other = (CommitMonitor(path, self.probe) for _ in range(2))

    async def probe(self) -> NotReadyReason | None:
        self.probes += 1
        return self.fault

    async def observe(self, seconds: float) -> list[NotReadyReason | None]:
        """Return what checks of the two workers in turn find, once per second."""
        problems = []
        for _ in range(round(seconds)):
            self.now += 1.0
            problems.append(await self.worker.get_problem())
            assert await self.other.get_problem() == problems[-1]
        return problems


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    node = Node(tmp_path / "commits")
    monkeypatch.setattr(commit_monitor, "monotonic", lambda: node.now)
    yield node
    node.worker.close()
    node.other.close()


def build_disk_error() -> ApiError:
    error = Failure.LOST.build_error()
    error.__cause__ = asyncpg.DiskFullError("could not extend file")
    return error


async def test_idle_node_probes_once_per_second(node: Node) -> None:
    for _ in range(100):
        assert await node.worker.get_problem() is None
        assert await node.other.get_problem() is None
        node.now += PROBE_INTERVAL_SECONDS / 10
    assert node.probes == 10


async def test_node_with_payments_does_not_probe(node: Node) -> None:
    for _ in range(50):
        node.worker.record_commit()
        node.now += RECENT_COMMIT_SECONDS / 2
        assert await node.other.get_problem() is None
    assert node.probes == 0


async def test_failed_probe_ends_service_until_probes_have_succeeded_for_a_while(
    node: Node,
) -> None:
    await node.observe(2)
    node.fault = LOCKED
    assert await node.observe(5) == [LOCKED] * 5
    node.fault = None
    assert await node.observe(6) == [LOCKED] * 2 + [None] * 4


async def test_alternating_probes_do_not_flap(node: Node) -> None:
    problems = []
    for second in range(20):
        node.fault = LOCKED if second % 2 else None
        problems += await node.observe(1)
    assert problems == [None] + [LOCKED] * 19


async def test_commit_returns_the_node_to_service_at_once(node: Node) -> None:
    node.fault = LOCKED
    assert await node.observe(1) == [LOCKED]
    node.now += 0.1
    node.worker.record_commit()
    assert await node.other.get_problem() is None


async def test_batch_that_found_a_full_disk_outlasts_successful_probes(node: Node) -> None:
    node.worker.record_failure(build_disk_error())
    seconds = int(DISK_RECOVERY_SECONDS)
    assert await node.observe(seconds + 2) == [DISK_FULL] * (seconds - 1) + [None] * 3


@pytest.mark.parametrize("failure", [Failure.BUSY, Failure.LOST])
async def test_lock_on_one_account_and_lost_connection_do_not_end_service(
    node: Node, failure: Failure
) -> None:
    error = failure.build_error()
    error.__cause__ = asyncpg.LockNotAvailableError() if failure is Failure.BUSY else None
    node.worker.record_failure(error)
    assert await node.observe(1) == [None]


async def test_times_from_before_a_restart_of_the_machine_are_ignored(node: Node) -> None:
    node.now = 1_000_000.0
    node.worker.record_failure(build_disk_error())
    node.now = 5.0
    assert await node.observe(1) == [None]
    node.fault = LOCKED
    assert await node.observe(3) == [LOCKED] * 3
    node.fault = None
    assert (await node.observe(RECOVERY_SECONDS + 1))[-1] is None
