"""Retention: ended rows, and deliveries that stay due, are removed after 30 days."""

from datetime import timedelta

import pytest

from builders import retention
from builders.auth import FakeClock
from drivers.webhooks import create_endpoint, publish_event
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.http.api.services import Services

_TABLES = ("deliveries", "events", "webhook_endpoints", "messages")


async def delete_expired(services: Services, batch_size: int | None = None) -> None:
    await retention.delete_expired(
        services.database, services.clock, *_TABLES, batch_size=batch_size
    )


async def count_rows(services: Services) -> dict[str, int]:
    return {
        table: await services.database.fetchval(f"SELECT count(*) FROM {table}")
        for table in _TABLES
    }


async def mark_delivered(services: Services, condition: str = "true") -> None:
    await services.database.execute(
        f"""UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, ended_at = $1
            WHERE status = 'pending' AND {condition}""",
        services.clock(),
    )


async def test_delivery_is_removed_thirty_days_after_it_ended(
    services_with_fake_clock: Services, fake_clock: FakeClock
) -> None:
    await create_endpoint(services_with_fake_clock, "https://shop.example.com")
    await publish_event(services_with_fake_clock)
    fake_clock.advance(days=3)
    await mark_delivered(services_with_fake_clock)
    fake_clock.advance(days=1)
    await publish_event(services_with_fake_clock)
    fake_clock.advance(days=29)
    await delete_expired(services_with_fake_clock)
    assert (await count_rows(services_with_fake_clock))["deliveries"] == 2
    fake_clock.advance(seconds=1)
    await delete_expired(services_with_fake_clock)
    counts = await count_rows(services_with_fake_clock)
    assert (counts["deliveries"], counts["events"]) == (1, 1)
    stored = await services_with_fake_clock.database.fetchval("SELECT status FROM deliveries")
    assert stored == "pending"


async def test_event_is_removed_with_its_last_delivery(
    services_with_fake_clock: Services, fake_clock: FakeClock
) -> None:
    first, _ = await create_endpoint(services_with_fake_clock, "https://one.example.com")
    await create_endpoint(services_with_fake_clock, "https://two.example.com")
    await publish_event(services_with_fake_clock)
    await mark_delivered(services_with_fake_clock, f"endpoint_id = {first}")
    fake_clock.advance(days=3)
    await mark_delivered(services_with_fake_clock)
    fake_clock.advance(days=28)
    await delete_expired(services_with_fake_clock)
    counts = await count_rows(services_with_fake_clock)
    assert (counts["deliveries"], counts["events"]) == (1, 1)
    fake_clock.advance(days=31)
    await delete_expired(services_with_fake_clock)
    counts = await count_rows(services_with_fake_clock)
    assert (counts["deliveries"], counts["events"]) == (0, 0)


async def test_deleted_endpoint_is_removed_after_its_last_delivery(
    services_with_fake_clock: Services, fake_clock: FakeClock
) -> None:
    deleted_id, _ = await create_endpoint(services_with_fake_clock, "https://one.example.com")
    await create_endpoint(services_with_fake_clock, "https://two.example.com")
    await publish_event(services_with_fake_clock)
    await services_with_fake_clock.database.execute(
        "UPDATE webhook_endpoints SET deleted_at = $2 WHERE id = $1", deleted_id, fake_clock()
    )
    fake_clock.advance(days=3)
    await mark_delivered(services_with_fake_clock)
    fake_clock.advance(days=28)
    await delete_expired(services_with_fake_clock)
    assert (await count_rows(services_with_fake_clock))["webhook_endpoints"] == 2
    fake_clock.advance(days=31)
    await delete_expired(services_with_fake_clock)
    assert (await count_rows(services_with_fake_clock))["webhook_endpoints"] == 1


async def test_delivered_messages_are_removed_and_pending_ones_are_kept(
    services_with_fake_clock: Services, fake_clock: FakeClock
) -> None:
    async with services_with_fake_clock.transaction() as tx:
        for to in ("+23276000001", "+23276000002"):
            await enqueue_message(
                tx,
                services_with_fake_clock.vault,
                to=to,
                template="t",
                parameters=[],
                expires_at=fake_clock() + timedelta(minutes=5),
            )
    await services_with_fake_clock.database.execute(
        """UPDATE messages SET status = 'delivered', parameters = NULL
           WHERE recipient = '+23276000001'"""
    )
    fake_clock.advance(days=30)
    await delete_expired(services_with_fake_clock)
    assert (await count_rows(services_with_fake_clock))["messages"] == 2
    fake_clock.advance(minutes=6)
    await delete_expired(services_with_fake_clock)
    stored = await services_with_fake_clock.database.fetchval("SELECT recipient FROM messages")
    assert stored == "+23276000002"


@pytest.mark.parametrize("status", ["active", "paused", "disabled"])
async def test_deliveries_due_for_over_thirty_days_are_removed(
    services_with_fake_clock: Services,
    fake_clock: FakeClock,
    status: str,
) -> None:
    await create_endpoint(services_with_fake_clock, "https://shop.example.com")
    for _ in range(5):
        await publish_event(services_with_fake_clock)
    fake_clock.advance(days=1)
    await publish_event(services_with_fake_clock)
    await services_with_fake_clock.database.execute(
        "UPDATE webhook_endpoints SET status = $1", status
    )
    fake_clock.advance(days=29)
    await delete_expired(services_with_fake_clock)
    assert (await count_rows(services_with_fake_clock))["deliveries"] == 6
    fake_clock.advance(seconds=1)
    await delete_expired(services_with_fake_clock, batch_size=2)
    counts = await count_rows(services_with_fake_clock)
    assert (counts["deliveries"], counts["events"]) == (1, 1)


async def test_old_delivery_that_became_due_recently_is_kept(
    services_with_fake_clock: Services, fake_clock: FakeClock
) -> None:
    await create_endpoint(services_with_fake_clock, "https://shop.example.com")
    await publish_event(services_with_fake_clock)
    fake_clock.advance(days=40)
    await services_with_fake_clock.database.execute(
        "UPDATE deliveries SET attempts = 3, next_attempt_at = $1", fake_clock()
    )
    await delete_expired(services_with_fake_clock)
    assert (await count_rows(services_with_fake_clock))["deliveries"] == 1


async def test_previous_secret_is_removed_when_its_grace_period_ends(
    services_with_fake_clock: Services, fake_clock: FakeClock
) -> None:
    await create_endpoint(services_with_fake_clock, "https://shop.example.com")
    await services_with_fake_clock.database.execute(
        """UPDATE webhook_endpoints
           SET previous_secret = 'sealed', previous_secret_expires_at = $1""",
        fake_clock() + timedelta(seconds=60),
    )
    has_previous_secret_sql = "SELECT previous_secret IS NOT NULL FROM webhook_endpoints"
    fake_clock.advance(seconds=60)
    await delete_expired(services_with_fake_clock)
    assert await services_with_fake_clock.database.fetchval(has_previous_secret_sql)
    fake_clock.advance(seconds=1)
    await delete_expired(services_with_fake_clock)
    assert not await services_with_fake_clock.database.fetchval(has_previous_secret_sql)
