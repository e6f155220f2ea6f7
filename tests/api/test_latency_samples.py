"""Latency samples of a node, readable from every worker."""

from pathlib import Path

import pytest
import time_machine

from tapgate.api import latency_samples
from tapgate.api.latency_samples import LatencySamples


def test_every_worker_lists_the_samples_of_all_workers(tmp_path: Path) -> None:
    first, second = LatencySamples(tmp_path), LatencySamples(tmp_path)
    first.add_batch(7, 0.002)
    second.add_batch(500, 0.1)
    second.add_request(0.25)
    for worker in (first, second):
        assert {(sample.size, sample.seconds) for sample in worker.list_batches()} == {
            (7, 0.002),
            (500, 0.1),
        }
        assert [sample.seconds for sample in worker.list_requests()] == [0.25]
    first.close()
    assert len(second.list_batches()) == 2  # samples of an exited worker are kept
    second.close()


@pytest.mark.parametrize("more", [0, 1, 700])
def test_newest_samples_are_kept(tmp_path: Path, more: int) -> None:
    worker = LatencySamples(tmp_path)
    for number in range(latency_samples._MAX_BATCHES + more):
        worker.add_batch(number + 1, 0.001)
    sizes = sorted(sample.size for sample in worker.list_batches())
    assert sizes == list(range(more + 1, latency_samples._MAX_BATCHES + more + 1))
    assert worker.list_requests() == []
    worker.close()


def test_old_samples_are_not_listed(tmp_path: Path) -> None:
    worker = LatencySamples(tmp_path)
    with time_machine.travel(1_800_000_000) as clock:
        worker.add_batch(1, 0.001)
        clock.shift(latency_samples.RECENT_SECONDS - 1)
        worker.add_batch(2, 0.001)
        assert len(worker.list_batches()) == 2
        clock.shift(2)
        assert [sample.size for sample in worker.list_batches()] == [2]
    worker.close()
