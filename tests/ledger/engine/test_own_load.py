"""When a worker writes its own batches: many commands, or idle cores."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tapgate.ledger.engine import own_load
from tapgate.ledger.engine.own_load import (
    IDLE_VALID_SECONDS,
    MIN_OWN_BATCH,
    MIN_OWN_BATCH_IF_IDLE,
    MIN_OWN_BATCH_KEPT,
    PEAK_SECONDS,
    OwnLoad,
)
from tapgate.runtime.idle_cores import IdleCores

#: After the end of an interval, and before it counts as a pause.
STEP = PEAK_SECONDS * 1.5


class FakeCores(IdleCores):
    share = 0.0

    def measure(self) -> float:
        return self.share


@pytest.fixture
def cores() -> FakeCores:
    return FakeCores()


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = 1000.0

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(own_load, "monotonic", lambda: now)
    return pass_time


def run_commands(load: OwnLoad, concurrent: int) -> bool:
    with contextlib.ExitStack() as stack:
        for _ in range(concurrent):
            stack.enter_context(load)
    return load.has_own_batches


def test_peak_of_one_interval_decides_about_the_next(pass_time: Callable[[float], None]) -> None:
    load, states = OwnLoad(), []
    minimum, kept = MIN_OWN_BATCH, MIN_OWN_BATCH_KEPT
    for concurrent in (minimum - 1, minimum, kept, kept - 1, minimum - 1, 1):
        pass_time(STEP)
        states.append(run_commands(load, concurrent))
    assert states == [False, False, True, True, False, False]


def test_idle_cores_make_small_batches_worthwhile(
    cores: FakeCores, pass_time: Callable[[float], None]
) -> None:
    load = OwnLoad(cores)
    cores.share = 0.5
    states = []
    for concurrent in (MIN_OWN_BATCH_IF_IDLE, MIN_OWN_BATCH_IF_IDLE, MIN_OWN_BATCH_IF_IDLE - 1, 1):
        pass_time(STEP)
        states.append(run_commands(load, concurrent))
    assert states == [False, True, True, False]


def test_busy_cores_and_a_remote_database_keep_the_writer_shared(
    cores: FakeCores, pass_time: Callable[[float], None]
) -> None:
    cores.share = own_load.MIN_IDLE_SHARE - 0.01
    for load in (OwnLoad(cores), OwnLoad()):
        for _ in range(10):
            pass_time(STEP)
            assert not run_commands(load, MIN_OWN_BATCH - 1)


def test_pause_between_requests_is_not_idleness(
    cores: FakeCores, pass_time: Callable[[float], None]
) -> None:
    load = OwnLoad(cores)
    cores.share = 1.0
    for _ in range(5):
        pass_time(60)
        assert not run_commands(load, 20)


def test_worker_shares_from_time_to_time_to_measure_idle_cores_again(
    cores: FakeCores, pass_time: Callable[[float], None]
) -> None:
    load = OwnLoad(cores)
    states = []
    cores.share = 0.5
    run_commands(load, 20)
    for _ in range(3 * int(IDLE_VALID_SECONDS / STEP)):
        pass_time(STEP)
        states.append(run_commands(load, 20))
        cores.share = 0.0 if load.has_own_batches else 0.5  # as with clients that wait
    assert 2 <= states.count(False) <= 4
    cores.share = 0.0  # other processes need the cores
    for _ in range(int(IDLE_VALID_SECONDS / STEP) + 1):
        pass_time(STEP)
        run_commands(load, 20)
    assert not load.has_own_batches


def test_idle_share_is_measured_since_the_last_call(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n")
    cores = IdleCores(stat)
    assert cores.measure() == 0.0  # nothing has passed
    stat.write_text("cpu  160 0 100 720 120 0 0 0 60 0\n")
    assert cores.measure() == pytest.approx(0.4)
    stat.write_text("unknown\n")
    assert cores.measure() == 0.0
    stat.unlink()
    assert cores.measure() == 0.0


def test_idle_share_of_this_machine_is_a_share() -> None:
    cores = IdleCores()
    assert 0.0 <= cores.measure() <= 1.0
