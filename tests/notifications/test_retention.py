"""Retention: ended rows and rows that were never sent are removed after 30 days, in batches."""

from datetime import timedelta

import pytest

from notifications.builders import FakeClock, create_endpoint, publish_event
from tapgate.edge.services import Services
from tapgate.notifications import retention
from tapgate.notifications.messages import enqueue_message
from tapgate.notifications.retention import RetentionWorker


async def count_rows(services: Services) -> dict[str, int]:
    tables = ("events", "deliveries", "messages", "webhook_endpoints")
    return {
        table: await services.database.fetchval(f"SELECT count(*) FROM {table}") for table in tables
    }


async def age_rows(services: Services, condition: str = "true") -> None:
    await services.database.execute(
        f"""UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, ended_at = $1
            WHERE status = 'pending' AND {condition}""",
        services.clock(),
    )


async def test_delivery_is_removed_thirty_days_after_it_ended(
    timed: Services, set_clock: FakeClock
) -> None:
    await create_endpoint(timed, "https://shop.example.com")
    await publish_event(timed)
    set_clock.advance(days=3)
    await age_rows(timed)
    set_clock.advance(days=1)
    await publish_event(timed)
    set_clock.advance(days=29)
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["deliveries"] == 2
    set_clock.advance(seconds=1)
    await RetentionWorker(timed).remove_expired()
    left = await count_rows(timed)
    assert (left["deliveries"], left["events"]) == (1, 1)
    assert await timed.database.fetchval("SELECT status FROM deliveries") == "pending"


async def test_event_is_removed_with_its_last_delivery(
    timed: Services, set_clock: FakeClock
) -> None:
    first, _ = await create_endpoint(timed, "https://one.example.com")
    await create_endpoint(timed, "https://two.example.com")
    await publish_event(timed)
    await age_rows(timed, f"endpoint_id = {first}")
    set_clock.advance(days=3)
    await age_rows(timed)
    set_clock.advance(days=28)
    await RetentionWorker(timed).remove_expired()
    left = await count_rows(timed)
    assert (left["deliveries"], left["events"]) == (1, 1)
    set_clock.advance(days=31)
    await RetentionWorker(timed).remove_expired()
    left = await count_rows(timed)
    assert (left["deliveries"], left["events"]) == (0, 0)


async def test_expired_rows_are_removed_in_batches(
    timed: Services, set_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    await create_endpoint(timed, "https://shop.example.com")
    for _ in range(5):
        await publish_event(timed)
    await age_rows(timed)
    set_clock.advance(days=31)
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["deliveries"] == 0


async def test_deleted_endpoint_is_removed_after_its_last_delivery(
    timed: Services, set_clock: FakeClock
) -> None:
    gone, _ = await create_endpoint(timed, "https://one.example.com")
    await create_endpoint(timed, "https://two.example.com")
    await publish_event(timed)
    await timed.database.execute(
        "UPDATE webhook_endpoints SET deleted_at = $2 WHERE id = $1", gone, set_clock()
    )
    set_clock.advance(days=3)
    await age_rows(timed)
    set_clock.advance(days=28)
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["webhook_endpoints"] == 2
    set_clock.advance(days=31)
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["webhook_endpoints"] == 1


async def test_ended_messages_are_removed_and_pending_ones_kept(
    timed: Services, set_clock: FakeClock
) -> None:
    async with timed.database.transaction() as tx:
        for to in ("+23276000001", "+23276000002"):
            await enqueue_message(
                tx,
                timed,
                to=to,
                template="t",
                parameters=[],
                expires_at=set_clock() + timedelta(minutes=5),
            )
    await timed.database.execute(
        """UPDATE messages SET status = 'delivered', parameters = NULL
           WHERE recipient = '+23276000001'"""
    )
    set_clock.advance(days=30)
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["messages"] == 2
    set_clock.advance(minutes=6)
    await RetentionWorker(timed).remove_expired()
    assert await timed.database.fetchval("SELECT recipient FROM messages") == "+23276000002"


async def test_only_one_process_at_a_time_removes_rows(
    timed: Services, set_clock: FakeClock
) -> None:
    await create_endpoint(timed, "https://shop.example.com")
    await publish_event(timed)
    await age_rows(timed)
    set_clock.advance(days=31)
    async with timed.database.transaction() as tx:
        await tx.execute("SELECT pg_advisory_xact_lock($1)", retention._LOCK_KEY)
        await RetentionWorker(timed).remove_expired()
        assert (await count_rows(timed))["deliveries"] == 1
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["deliveries"] == 0


@pytest.mark.parametrize("status", ["active", "paused", "disabled"])
async def test_deliveries_due_for_thirty_days_are_removed(
    timed: Services, set_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    await create_endpoint(timed, "https://shop.example.com")
    for _ in range(5):
        await publish_event(timed)
    set_clock.advance(days=1)
    await publish_event(timed)
    await timed.database.execute("UPDATE webhook_endpoints SET status = $1", status)
    set_clock.advance(days=29)
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["deliveries"] == 6
    set_clock.advance(seconds=1)
    await RetentionWorker(timed).remove_expired()
    left = await count_rows(timed)
    assert (left["deliveries"], left["events"]) == (1, 1)


async def test_pending_delivery_with_recent_attempts_is_kept(
    timed: Services, set_clock: FakeClock
) -> None:
    await create_endpoint(timed, "https://shop.example.com")
    await publish_event(timed)
    set_clock.advance(days=40)
    await timed.database.execute(
        "UPDATE deliveries SET attempts = 3, next_attempt_at = $1", set_clock()
    )
    await RetentionWorker(timed).remove_expired()
    assert (await count_rows(timed))["deliveries"] == 1


async def test_previous_secret_is_removed_when_its_grace_period_ends(
    timed: Services, set_clock: FakeClock
) -> None:
    await create_endpoint(timed, "https://shop.example.com")
    await timed.database.execute(
        """UPDATE webhook_endpoints
           SET previous_secret = 'sealed', previous_secret_expires_at = $1""",
        set_clock() + timedelta(seconds=60),
    )
    kept = "SELECT previous_secret IS NOT NULL FROM webhook_endpoints"
    set_clock.advance(seconds=60)
    await RetentionWorker(timed).remove_expired()
    assert await timed.database.fetchval(kept)
    set_clock.advance(seconds=1)
    await RetentionWorker(timed).remove_expired()
    assert not await timed.database.fetchval(kept)
