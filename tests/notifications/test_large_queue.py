"""Polling cost: workers poll twice a second, so a poll must not read the whole queue."""

from typing import Any

from drivers.webhooks import create_endpoint
from tapgate.api.services import Services
from tapgate.webhooks import delivery_queue
from transactions.large_history import QueryExplainer, count_rows_read

PENDING_COUNT = 20_000


async def test_polling_does_not_scan_deliveries_that_are_not_due(services: Services) -> None:
    slow, _ = await create_endpoint(services, "https://slow.example.com")
    for number in range(20):
        deleted, _ = await create_endpoint(services, f"https://{number}.example.com")
        await services.database.execute(
            "UPDATE webhook_endpoints SET deleted_at = now() WHERE id = $1", deleted
        )
    async with services.database.connection() as connection:
        await connection.execute(
            """WITH inserted AS (
               INSERT INTO events (id, type, data, occurred_at)
               SELECT number, 'card.linked', '{}', now() FROM generate_series(1, $1) AS number
               RETURNING id)
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           SELECT id, $2, now() + interval '1 hour', now() FROM inserted""",
            PENDING_COUNT,
            slow,
            timeout=60,
        )
        await connection.execute("VACUUM ANALYZE", timeout=60)
    explainer: Any = QueryExplainer(services.database)
    await delivery_queue.fail_for_deleted_endpoints(explainer, services.clock())
    await delivery_queue.claim(
        explainer, now=services.clock(), limit=200, capacity=10, capacities={slow: 5}
    )
    assert max(count_rows_read(plan, "deliveries") for plan in explainer.plans) < 10
