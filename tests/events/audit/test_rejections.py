"""Rejected requests are counted in a bounded number of audit entries."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from builders.auth import ACTOR, FakeClock
from harness import Harness
from tapgate.auth.actors import Actor
from tapgate.events.audit import rejections
from tapgate.events.audit.rejections import RejectionLog
from tapgate.http.api.services import RejectedRequest, Services
from tapgate.runtime.store.database import Database

ANONYMOUS = {"type": "anonymous", "id": "anonymous"}


@pytest.fixture(autouse=True)
def _lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejections, "MAX_ENTRIES_PER_SOURCE", 3)
    monkeypatch.setattr(rejections, "MAX_ANONYMOUS_ENTRIES", 10)
    monkeypatch.setattr(rejections, "MAX_KINDS_PER_SOURCE", 2)
    monkeypatch.setattr(rejections, "MAX_ANONYMOUS_KINDS", 6)


@pytest.fixture
def clock(services: Services) -> FakeClock:
    clock = FakeClock(datetime(2026, 1, 31, 10, 15, 30, tzinfo=UTC))
    services.clock = clock
    return clock


@pytest.fixture
def rejection_log(services: Services, clock: FakeClock) -> RejectionLog:
    return RejectionLog(services.transaction, clock)


@pytest.fixture
def other_rejection_log(services: Services, clock: FakeClock) -> RejectionLog:
    """Return the log of another process."""
    return RejectionLog(services.transaction, clock)


def build_failed_login(email: str = "ada@example.com") -> RejectedRequest:
    return RejectedRequest(
        event="admin.login",
        resource_type="admin",
        resource_id=email,
        result="failure",
        reason="Incorrect email or password.",
    )


def build_actor(address: str = "192.0.2.1") -> Actor:
    return Actor(record=ANONYMOUS, ip=address, request_id="req-1")


async def fetch_entries(database: Database) -> list[Any]:
    return await database.fetch("SELECT * FROM audit_entries ORDER BY sequence")


def summarize_entries(rows: list[Any]) -> list[tuple[str | None, str | None, int]]:
    """Return address, resource and count of each entry that summarizes several rejections."""
    return [
        (row["ip"], row["resource_id"], row["changes"]["occurrences"][1])
        for row in rows
        if row["changes"]
    ]


async def test_first_rejections_are_separate_entries(
    rejection_log: RejectionLog, database: Database
) -> None:
    for _ in range(3):
        await rejection_log.record(build_actor(), build_failed_login())
    rows = await fetch_entries(database)
    expected = [("admin.login", "failure", "req-1")] * 3
    assert [(row["event"], row["result"], row["request_id"]) for row in rows] == expected


async def test_further_rejections_are_summarized_in_one_entry_with_their_count(
    rejection_log: RejectionLog, database: Database, clock: FakeClock
) -> None:
    for _ in range(50):
        await rejection_log.record(build_actor(), build_failed_login())
        clock.advance(seconds=1)
    await rejection_log.flush_and_close()
    assert len(await fetch_entries(database)) == 3
    clock.advance(hours=1, minutes=1)
    await rejection_log.flush_and_close()
    *_, last = rows = await fetch_entries(database)
    assert len(rows) == 4
    assert summarize_entries(rows) == [("192.0.2.1", "ada@example.com", 47)]
    assert (last["event"], last["result"]) == ("admin.login", "failure")
    assert last["reason"] == "Incorrect email or password."
    assert last["changes"]["first_at"] == [None, "2026-01-31T10:15:33.000Z"]
    assert last["changes"]["last_at"] == [None, "2026-01-31T10:16:19.000Z"]
    for table in ("audit_repeats", "audit_budgets"):
        assert await database.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_new_hour_starts_with_separate_entries_again(
    rejection_log: RejectionLog, database: Database, clock: FakeClock
) -> None:
    for _ in range(5):
        await rejection_log.record(build_actor(), build_failed_login())
    clock.advance(hours=1)
    await rejection_log.record(build_actor(), build_failed_login())
    assert len(await fetch_entries(database)) == 4


async def test_entries_of_one_source_are_bounded_for_any_variation(
    rejection_log: RejectionLog, database: Database, clock: FakeClock
) -> None:
    for number in range(100):
        await rejection_log.record(build_actor(), build_failed_login(f"{number}@example.com"))
    clock.advance(hours=2)
    await rejection_log.flush_and_close()
    rows = await fetch_entries(database)
    assert len(rows) == 3 + 2 + 1
    summaries = summarize_entries(rows)
    assert sum(number for _, _, number in summaries) == 97
    assert ("192.0.2.1", None, 95) in summaries


async def test_entries_of_all_anonymous_sources_together_are_bounded(
    rejection_log: RejectionLog, database: Database, clock: FakeClock
) -> None:
    for number in range(200):
        await rejection_log.record(build_actor(f"192.0.2.{number}"), build_failed_login())
    clock.advance(hours=2)
    await rejection_log.flush_and_close()
    rows = await fetch_entries(database)
    assert len(rows) == 10 + 6 + 1
    summaries = summarize_entries(rows)
    assert sum(number for _, _, number in summaries) == 190
    assert (None, None, 184) in summaries


async def test_anonymous_rejections_do_not_use_the_budget_of_authenticated_callers(
    rejection_log: RejectionLog,
    database: Database,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejections, "MAX_PENDING", 8)
    for number in range(50):
        await rejection_log.record(build_actor(f"192.0.2.{number}"), build_failed_login())
    for number in range(20):
        await rejection_log.record(ACTOR, build_failed_login(f"{number}@example.com"))
    clock.advance(hours=2)
    await rejection_log.flush_and_close()
    rows = [row for row in await fetch_entries(database) if row["actor_id"] == ACTOR.id]
    assert len([row for row in rows if not row["changes"]]) == 3
    summaries = summarize_entries(rows)
    assert sum(number for _, _, number in summaries) == 17
    assert len(summaries) <= 2 + 1
    assert all(row["actor"] == ACTOR.record for row in rows)


async def test_two_processes_share_the_bound_of_one_source(
    rejection_log: RejectionLog,
    other_rejection_log: RejectionLog,
    database: Database,
    clock: FakeClock,
) -> None:
    recordings = [
        log.record(build_actor(), build_failed_login())
        for log in (rejection_log, other_rejection_log) * 20
    ]
    await asyncio.gather(*recordings)
    assert len(await fetch_entries(database)) == 3
    await asyncio.gather(rejection_log.flush_and_close(), other_rejection_log.flush_and_close())
    clock.advance(hours=2)
    await asyncio.gather(rejection_log.flush_and_close(), other_rejection_log.flush_and_close())
    rows = await fetch_entries(database)
    assert summarize_entries(rows) == [("192.0.2.1", "ada@example.com", 37)]


async def test_concurrent_flushes_of_many_kinds_do_not_deadlock(
    rejection_log: RejectionLog,
    other_rejection_log: RejectionLog,
    database: Database,
    clock: FakeClock,
) -> None:
    for number in range(40):
        for log in (rejection_log, other_rejection_log):
            address = f"192.0.2.{number if log is rejection_log else 39 - number}"
            await log.record(build_actor(address), build_failed_login(f"{number}@example.com"))
    await asyncio.gather(rejection_log.flush(), other_rejection_log.flush())
    stored = await database.fetchval("SELECT sum(occurrences) FROM audit_repeats")
    assert stored == 80 - 10


async def test_killed_process_has_stored_the_first_rejections_and_flushed_counts(
    rejection_log: RejectionLog,
    other_rejection_log: RejectionLog,
    database: Database,
    clock: FakeClock,
) -> None:
    for _ in range(10):
        await rejection_log.record(build_actor(), build_failed_login())
    await rejection_log.flush()
    for _ in range(5):
        await rejection_log.record(build_actor(), build_failed_login())  # lost with the process
    clock.advance(hours=2)
    await other_rejection_log.flush_and_close()
    rows = await fetch_entries(database)
    assert len(rows) == 4
    assert summarize_entries(rows) == [("192.0.2.1", "ada@example.com", 7)]


async def test_counts_survive_a_database_outage(
    rejection_log: RejectionLog,
    services: Services,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(10):
        await rejection_log.record(build_actor(), build_failed_login())

    def raise_connection_error(self: Database) -> Any:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", raise_connection_error)
        await rejection_log.stop()
    await rejection_log.flush()
    assert await database.fetchval("SELECT occurrences FROM audit_repeats") == 7


async def test_rejected_requests_and_logins_are_bounded_over_http(
    harness: Harness, clock: FakeClock
) -> None:
    clock.now = datetime.now(UTC)
    support = await harness.create_admin("S")
    for _ in range(8):
        response = await harness.get("/api/v1/audit/logs", auth=support)
        assert response.status_code == 403
        await harness.post(
            "/api/v1/admin/login", json={"email": "eve@example.com", "password": "wrong password"}
        )
    rows = await fetch_entries(harness.database)
    assert [row["event"] for row in rows].count("access.denied") == 3
    assert [row["event"] for row in rows].count("admin.login") == 3
