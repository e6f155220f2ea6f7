"""Work queue leases, fairness and results, on the real database."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.runtime import job_runner
from tapgate.runtime.batches import BatchProcessor
from tapgate.runtime.job_runner import JobRunner
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import (
    LEASE_DURATION,
    SESSION_SETTINGS,
    ResultUpdate,
    WorkQueue,
    build_dequeue_sql,
    compute_backoff,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DESTINATIONS = "SELECT id FROM test_destinations"

QUEUE = WorkQueue("test_jobs", "job.id, job.attempts, job.destination", destination="destination")
DONE = ResultUpdate(
    QUEUE,
    "status = 'done', next_attempt_at = NULL, note = result.note",
    {"note": "text"},
    accepts_late=True,
)
RETRY = ResultUpdate(
    QUEUE,
    "next_attempt_at = result.retry_at, note = result.note",
    {"retry_at": "timestamptz", "note": "text"},
)
FAILED = ResultUpdate(QUEUE, "status = 'failed', next_attempt_at = NULL", {})


class Job(NamedTuple):
    id: int
    attempts: int
    destination: int


@pytest.fixture
async def database(database_url: str) -> Any:
    database = await Database.connect(database_url, session=SESSION_SETTINGS)
    await database.execute(
        """CREATE TABLE test_jobs (
               id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, destination bigint NOT NULL,
               status text NOT NULL DEFAULT 'pending', attempts integer NOT NULL DEFAULT 0,
               next_attempt_at timestamptz, note text)"""
    )
    await database.execute(
        """CREATE INDEX ON test_jobs (destination, next_attempt_at) WHERE status = 'pending'"""
    )
    await database.execute("CREATE TABLE test_destinations (id bigint PRIMARY KEY)")
    yield database
    await database.execute("DROP TABLE test_jobs, test_destinations")
    await database.close()


async def add_jobs(database: Database, *destinations: int, due_at: datetime = NOW) -> None:
    await database.execute(
        """WITH new AS (SELECT * FROM unnest($1::bigint[]) AS destination), added AS (
               INSERT INTO test_destinations SELECT DISTINCT destination FROM new
               ON CONFLICT DO NOTHING)
           INSERT INTO test_jobs (destination, next_attempt_at) SELECT destination, $2 FROM new""",
        list(destinations),
        due_at,
    )


async def lease(
    source: Any, *, now: datetime = NOW, limit: int = 1_000, capacity: int = 1_000, **known: int
) -> list[Job]:
    rows = await QUEUE.lease_fairly(
        source,
        destinations=DESTINATIONS,
        now=now,
        limit=limit,
        capacity=capacity,
        capacities={int(name.removeprefix("d")): number for name, number in known.items()},
    )
    return [Job(**row) for row in rows]


async def list_jobs(database: Database) -> dict[int, Any]:
    return {row["id"]: row for row in await database.fetch("SELECT * FROM test_jobs")}


async def test_parallel_workers_never_lease_a_job_twice(database: Database) -> None:
    await add_jobs(database, *(number % 7 for number in range(700)))

    async def lease_all() -> list[Job]:
        leased: list[Job] = []
        while batch := await lease(database, limit=23, capacity=5):
            leased += batch
        return leased

    leases = await asyncio.gather(*(lease_all() for _ in range(8)))
    leased_ids = [job.id for jobs in leases for job in jobs]
    assert len(leased_ids) == len(set(leased_ids)) == 700
    assert {row["attempts"] for row in (await list_jobs(database)).values()} == {1}


async def test_leases_do_not_wait_for_locked_jobs(database: Database) -> None:
    await add_jobs(database, 1, 1, 1)
    async with database.transaction() as tx:
        first = await lease(tx, limit=1)
        async with asyncio.timeout(30):
            others = await lease(database)
    assert sorted(job.id for job in (*first, *others)) == list(await list_jobs(database))
    assert len(first) == 1


async def test_job_is_leased_again_only_after_its_lease_expires(
    database: Database,
) -> None:
    await add_jobs(database, 1)
    (first,) = await lease(database)
    assert await lease(database, now=NOW + LEASE_DURATION - timedelta(milliseconds=1)) == []
    (second,) = await lease(database, now=NOW + LEASE_DURATION)
    assert (first.id, first.attempts, second.id, second.attempts) == (second.id, 1, first.id, 2)


async def test_late_result_of_an_expired_lease_changes_nothing(database: Database) -> None:
    await add_jobs(database, 1)
    (late,) = await lease(database)
    (current,) = await lease(database, now=NOW + LEASE_DURATION)
    before = await list_jobs(database)
    await RETRY.record(database, [(late, {"retry_at": NOW, "note": "late"})])
    await FAILED.record(database, [(late, {})])
    assert await list_jobs(database) == before
    await FAILED.record(database, [(current, {})])
    assert (await list_jobs(database))[current.id]["status"] == "failed"


async def test_late_success_completes_a_job_once(database: Database) -> None:
    await add_jobs(database, 1)
    (late,) = await lease(database)
    (current,) = await lease(database, now=NOW + LEASE_DURATION)
    await DONE.record(database, [(late, {"note": "first"})])
    await DONE.record(database, [(current, {"note": "second"})])
    await RETRY.record(database, [(current, {"retry_at": NOW, "note": "third"})])
    row = (await list_jobs(database))[current.id]
    assert (row["status"], row["note"], row["next_attempt_at"]) == ("done", "first", None)


@given(
    outcomes=st.lists(st.sampled_from(["done", "retry", "failed", "late", "none"]), max_size=40),
    order=st.randoms(use_true_random=False),
)
async def test_batched_results_are_exact(
    database: Database, outcomes: list[str], order: Any
) -> None:
    await database.execute("TRUNCATE test_jobs")
    await add_jobs(database, *(number % 3 for number in range(len(outcomes))))
    jobs = await lease(database)
    results = list(zip(jobs, outcomes, strict=True))
    order.shuffle(results)
    later = NOW + timedelta(seconds=5)

    def select(outcome: str) -> list[Job]:
        return [job for job, each in results if each == outcome]

    late = [job._replace(attempts=0) for job in select("late")]
    await DONE.record(database, [(job, {"note": f"done {job.id}"}) for job in select("done")])
    await RETRY.record(
        database,
        [(job, {"retry_at": later, "note": str(job.id)}) for job in [*select("retry"), *late]],
    )
    await FAILED.record(database, [(job, {}) for job in [*select("failed"), *late]])
    rows = await list_jobs(database)
    leased = ("pending", NOW + LEASE_DURATION, None)
    for job, outcome in results:
        expected = {
            "done": ("done", None, f"done {job.id}"),
            "retry": ("pending", later, str(job.id)),
            "failed": ("failed", None, None),
        }.get(outcome, leased)
        row = rows[job.id]
        assert (row["status"], row["next_attempt_at"], row["note"]) == expected


async def test_lease_respects_the_capacity_of_each_destination(database: Database) -> None:
    await add_jobs(database, *[1] * 20, *[2] * 20, *[3] * 20)
    leased = await lease(database, capacity=5, d1=0, d2=7)
    assert Counter(job.destination for job in leased) == {2: 7, 3: 5}
    assert len(await lease(database, limit=3, capacity=5)) == 3


async def test_destination_whose_job_is_due_longest_is_leased_first(database: Database) -> None:
    for destination in (2, 3, 1):
        await add_jobs(database, *[destination] * 4, due_at=NOW - timedelta(seconds=destination))
    assert {job.destination for job in await lease(database, limit=4, capacity=4)} == {3}
    assert {job.destination for job in await lease(database, limit=4, capacity=4)} == {2}


async def test_ordered_queue_leases_only_the_oldest_job_of_a_destination(
    database: Database,
) -> None:
    ordered = WorkQueue("test_jobs", "job.id, job.attempts", destination="destination::text")
    await add_jobs(database, 1, 1, 2)
    first, other = await ordered.lease_in_order(database, now=NOW, limit=9)
    assert await ordered.lease_in_order(database, now=NOW, limit=9) == []
    job = Job(first["id"], first["attempts"], 1)
    await RETRY.record(database, [(job, {"retry_at": NOW + timedelta(hours=1), "note": ""})])
    assert await ordered.lease_in_order(database, now=NOW, limit=9, destination="1") == []
    await FAILED.record(database, [(job._replace(attempts=1), {})])
    (second,) = await ordered.lease_in_order(database, now=NOW, limit=9, destination="1")
    assert second["id"] not in (first["id"], other["id"])


async def test_ordered_queue_can_have_an_order_other_than_the_id(database: Database) -> None:
    ordered = WorkQueue(
        "test_jobs", "job.id", destination="destination::text", order="length(note), id"
    )
    await add_jobs(database, 1, 1)
    await database.execute("UPDATE test_jobs SET note = repeat('x', 9 - id::int)")
    (first,) = await ordered.lease_in_order(database, now=NOW, limit=9)
    assert first["id"] == await database.fetchval("SELECT max(id) FROM test_jobs")


async def test_owner_leases_a_job_before_it_is_due_and_keeps_its_reservation(
    database: Database,
) -> None:
    owned = WorkQueue(
        "test_jobs",
        "job.id, job.next_attempt_at",
        destination="destination::text",
        owner="length(note)",
    )
    reserved_until = NOW + timedelta(hours=1)
    await add_jobs(database, 1, due_at=reserved_until)
    await add_jobs(database, 2)
    await database.execute("UPDATE test_jobs SET note = 'xxx' WHERE destination = 1")

    async def list_due(owner: int, *excluded: str) -> set[str]:
        return set(
            await owned.list_due_destinations(
                database, now=NOW, limit=9, excluded=excluded, owner=owner
            )
        )

    assert await list_due(3) == {"1", "2"}
    assert await list_due(3, "2") == {"1"}
    assert await list_due(4) == {"2"}
    assert await owned.lease_in_order(database, now=NOW, limit=9, destination="1", owner=4) == []
    for _ in range(2):
        (job,) = await owned.lease_in_order(database, now=NOW, limit=9, destination="1", owner=3)
        assert job["next_attempt_at"] == reserved_until
    (other,) = await owned.lease_in_order(database, now=NOW, limit=9, owner=4)
    assert other["next_attempt_at"] == NOW + LEASE_DURATION


async def test_dequeued_jobs_are_removed_with_the_work_or_not_at_all(database: Database) -> None:
    await add_jobs(database, 1, 2, 3)
    sql = f"{build_dequeue_sql('test_jobs', 'id')} SELECT id FROM taken ORDER BY id"
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as tx:
            await tx.fetch(sql, 2)
            raise ZeroDivisionError
    async with database.transaction() as first, database.transaction() as second:
        taken = [*await first.fetch(sql, 2), *await second.fetch(sql, 2)]
    assert len({row["id"] for row in taken}) == len(taken) == 3
    assert await list_jobs(database) == {}


def test_backoff_doubles_up_to_a_minute_with_jitter() -> None:
    for attempts, seconds in ((1, 1), (2, 2), (4, 8), (7, 60), (30_000, 60)):
        delays = [compute_backoff(attempts).total_seconds() for _ in range(20)]
        assert all(0.75 * seconds <= delay <= 1.25 * seconds for delay in delays)
        assert len(set(delays)) > 1


class BlockingJobs:
    """Jobs of destination `slow` block until released; others finish immediately."""

    def __init__(self, **limits: int) -> None:
        self.release = asyncio.Event()
        self.started: list[str] = []
        self.finished: list[str] = []
        self.has_capacity = asyncio.Event()
        options = {
            "max_concurrent": 8,
            "max_concurrent_per_destination": 3,
            "max_window": 12,
            **limits,
        }
        self.runner = JobRunner[str, str](self._run, on_capacity=self.has_capacity.set, **options)

    async def _run(self, job: str) -> None:
        self.started.append(job)
        if job.startswith("slow"):
            await self.release.wait()
        self.finished.append(job)


async def test_slow_destination_does_not_delay_others() -> None:
    jobs = BlockingJobs()
    jobs.runner.add("slow", [f"slow {number}" for number in range(5)])
    jobs.runner.add("fast", [f"fast {number}" for number in range(9)])
    async with asyncio.timeout(30):
        while len(jobs.finished) < 9:
            await asyncio.sleep(0)
    assert sorted(jobs.started[:3]) == ["slow 0", "slow 1", "slow 2"]
    assert all(job.startswith("fast") for job in jobs.finished)
    assert jobs.runner.get_capacities()["slow"] == 3 - 5  # nothing more is leased for it
    assert list(jobs.runner.take_waiting()) == ["slow 3", "slow 4"]
    jobs.release.set()
    await jobs.runner.wait_until_idle()
    assert len(jobs.finished) == 12


async def test_window_grows_while_a_destination_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_runner, "TARGET_SECONDS", 60.0)
    jobs = BlockingJobs()
    windows = []
    for _ in range(4):
        capacity = jobs.runner.get_capacities().get("fast", 3)
        windows.append(capacity)
        jobs.runner.add("fast", ["fast"] * capacity)
        await jobs.runner.wait_until_idle()
        assert jobs.has_capacity.is_set()
    assert windows == [3, 6, 12, 12]


async def test_total_concurrency_is_limited_and_waiting_destinations_start_later() -> None:
    jobs = BlockingJobs(max_concurrent=2)
    for name in ("slow a", "slow b", "slow c"):
        jobs.runner.add(name, [name])
    await asyncio.sleep(0)
    assert jobs.started == ["slow a", "slow b"]
    jobs.release.set()
    await jobs.runner.wait_until_idle()
    assert jobs.finished == ["slow a", "slow b", "slow c"]


async def test_job_added_while_the_last_task_of_its_destination_ends_is_started() -> None:
    finished = []

    async def run(job: str) -> None:
        if job == "first":
            # Runs after the task has ended and before its callbacks.
            asyncio.get_running_loop().call_soon(runner.add, "a", ["second"])
        finished.append(job)

    runner = JobRunner[str, str](
        run, max_concurrent=8, max_concurrent_per_destination=1, max_window=1, on_capacity=list
    )
    runner.add("a", ["first"])
    await runner.wait_until_idle()
    await asyncio.sleep(0)
    await runner.wait_until_idle()
    assert finished == ["first", "second"]
    assert runner.leased == 0


async def test_destination_without_a_running_job_gets_the_next_free_slot() -> None:
    finished = []

    async def run(job: str) -> None:
        await asyncio.sleep(0)
        finished.append(job)

    runner = JobRunner[str, str](
        run, max_concurrent=2, max_concurrent_per_destination=2, max_window=50, on_capacity=list
    )
    runner.add("a", ["a"] * 20)
    runner.add("b", ["b"] * 20)
    runner.add("c", ["c"])
    await runner.wait_until_idle()
    assert sorted(finished) == ["a"] * 20 + ["b"] * 20 + ["c"]
    assert {"b", "c"} <= set(finished[:8])


async def test_stopped_runner_starts_no_waiting_jobs() -> None:
    jobs = BlockingJobs(max_concurrent=2)
    for name in ("slow a", "slow b", "slow c"):
        jobs.runner.add(name, [name])
    await asyncio.sleep(0)
    await jobs.runner.stop(timeout_seconds=0)
    await asyncio.sleep(0)
    assert jobs.started == ["slow a", "slow b"]
    assert jobs.runner.leased == 0


async def test_batch_contains_the_items_that_arrived_during_the_previous_batch() -> None:
    batches: list[list[int]] = []
    release = asyncio.Event()

    async def process(items: list[int]) -> None:
        batches.append(items)
        await release.wait()

    processor = BatchProcessor(process)
    processor.add(1)
    while not batches:
        await asyncio.sleep(0)
    processor.add(2)
    processor.add(3)
    release.set()
    await processor.wait_until_idle()
    assert batches == [[1], [2, 3]]
