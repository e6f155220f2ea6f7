"""Metrics for the money path, queues, connections and failed authentication."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import time_machine
from prometheus_client.parser import text_string_to_metric_families

from builders.payments import PosDriver, create_held_transfer, new_request_id, subscribe_to_events
from harness import WRONG_PIN, Harness, HmacAuth
from tapgate import VERSION
from tapgate.http import metrics
from tapgate.http.backlog_metrics import BacklogMetrics
from tapgate.http.metrics import AuthFailure, render_collectors
from tapgate.messenger import inbox
from tapgate.messenger.outbox import leases
from tapgate.runtime.shared_metrics import Counter, Gauge, Histogram, SharedMetrics
from tapgate.runtime.store.database import Database

Samples = Mapping[tuple[str, ...], float]
TRANSACTIONS = "tapgate_ledger_transactions_total"


@pytest.fixture(autouse=True)
def render_every_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_AGE_SECONDS", 0.0)


def parse(text: str) -> Samples:
    """Return the samples: (name, label values in the order of the label names) -> value."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def collect(source: Any) -> Samples:
    return parse(render_collectors([source]).decode())


async def scrape(harness: Harness) -> Samples:
    response = await harness.get("/metrics")
    assert response.status_code == 200, response.text
    return parse(response.text)


async def test_transactions_are_counted_by_type_outcome_and_code(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="1000")
    before, request_id = await scrape(harness), new_request_id()
    for _ in range(2):
        assert (await pos.pay("100.00", request_id=request_id)).status_code == 200
    assert (await pos.pay("100.00", pin=WRONG_PIN)).status_code == 400
    assert (await pos.pay("950.00", pin="4071")).status_code == 402
    await create_held_transfer(harness)
    counts = {
        labels: value - before.get((TRANSACTIONS, *labels), 0)
        for (name, *labels_list), value in (await scrape(harness)).items()
        if name == TRANSACTIONS and (labels := tuple(labels_list))
    }
    changes = {labels: value for labels, value in counts.items() if value}
    # Labels are code, outcome and type.
    assert sum(value for key, value in changes.items() if key[1] == "held") == 1
    assert {key: value for key, value in changes.items() if key[2] == "pos_payment"} == {
        ("", "completed", "pos_payment"): 1,
        ("", "replayed", "pos_payment"): 1,
        ("INVALID_PIN", "rejected", "pos_payment"): 1,
        ("INSUFFICIENT_FUNDS", "declined", "pos_payment"): 1,
    }


async def test_full_queue_is_counted_as_a_failure(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    pos = await PosDriver.create(harness)
    monkeypatch.setattr(harness.services.ledger, "max_pending", 0)
    assert (await pos.pay()).status_code == 503
    samples = await scrape(harness)
    assert samples[TRANSACTIONS, "SERVICE_UNAVAILABLE", "failed", "pos_payment"] == 1


async def test_batches_are_measured_by_size_and_phase(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    before = await scrape(harness)
    await asyncio.gather(*(pos.pay("1.00") for _ in range(8)))
    after = await scrape(harness)
    size = "tapgate_ledger_batch_size"
    batches = after[f"{size}_count",] - before[f"{size}_count",]
    assert after[f"{size}_sum",] - before[f"{size}_sum",] == 8
    for phase in ("load", "decide", "write", "commit"):
        key = "tapgate_ledger_batch_seconds_count", phase
        assert after[key] - before[key] == batches
        assert after["tapgate_ledger_batch_seconds_sum", phase] > 0


async def test_process_reports_build_disk_connections_and_queue(harness: Harness) -> None:
    samples = await scrape(harness)
    (build,) = [key for key in samples if key[0] == "tapgate_build_info"]
    assert build[-1] == VERSION
    assert build[-2] == "gateway"
    assert 0 < samples["tapgate_disk_free_bytes",] <= samples["tapgate_disk_size_bytes",]
    assert samples["tapgate_workers",] == 1
    assert samples["tapgate_ledger_queue_length",] == 0
    assert "tapgate_cache_reachable" not in {name for name, *_ in samples}
    for pool in ("requests", "queue", "ledger"):
        assert samples["tapgate_database_pool_size", pool] > 0
    async with harness.database.connection():
        samples = await scrape(harness)
    assert samples["tapgate_database_pool_in_use", "requests"] == 1
    assert samples["tapgate_database_pool_waits_total", "requests"] > 0


@pytest.mark.parametrize(
    ("send", "kind"),
    [
        (lambda pos: pos.pay("100.00", pin=WRONG_PIN), "pin"),
        (
            lambda pos: pos.pay(auth=HmacAuth(pos.merchant_auth.id, "wrong" * 8)),
            "signature",
        ),
        (
            lambda pos: pos.harness.post(
                "/api/v1/admin/login", json={"email": "a@example.com", "password": "wrong"}
            ),
            "login",
        ),
        (
            lambda pos: pos.harness.get(
                "/api/v1/overview", headers={"Authorization": "Bearer wrong"}
            ),
            "token",
        ),
        (lambda pos: pos.harness.get("/api/v1/overview"), "none"),
    ],
)
async def test_failed_authentication_is_counted_by_kind(
    harness: Harness, send: Any, kind: str
) -> None:
    pos = await PosDriver.create(harness)
    assert (await send(pos)).status_code in (400, 401)
    samples = await scrape(harness)
    failures = {key[1]: value for key, value in samples.items() if "auth_failures_t" in key[0]}
    assert failures == {each: int(each == kind) for each in AuthFailure}


async def insert_jobs(database: Database) -> None:
    await database.execute(
        """INSERT INTO events (id, type, data, occurred_at) VALUES (1, 'card.linked', '{}', now());
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           VALUES (1, 1, now() - interval '2 minutes', now() - interval '1 hour');
           INSERT INTO messages (id, recipient, template, language, parameters, next_attempt_at,
                                 expires_at, created_at)
           SELECT number, '+23276000000', 'otp', 'en', '', now() + interval '1 minute',
                  now() + interval '1 hour', now() - interval '5 minutes'
           FROM generate_series(1, 3) AS number"""
    )


async def test_backlogs_are_reported_with_their_age(harness: Harness) -> None:
    await subscribe_to_events(harness)
    await insert_jobs(harness.database)
    samples = await scrape(harness)
    assert samples["tapgate_queue_jobs", "webhooks"] == 1
    assert 3600 <= samples["tapgate_queue_oldest_seconds", "webhooks"] < 3700
    assert 120 <= samples["tapgate_queue_overdue_seconds", "webhooks"] < 220
    assert samples["tapgate_queue_jobs", "messages"] == 3
    assert 300 <= samples["tapgate_queue_oldest_seconds", "messages"] < 400
    assert samples["tapgate_queue_overdue_seconds", "messages"] == 0  # waits for its next attempt
    assert samples["tapgate_queue_jobs", "receipts"] == 0


async def test_unsealed_audit_entries_and_receipts_are_counted(harness: Harness) -> None:
    await harness.create_api_key("wallets:read")
    pos = await PosDriver.create(harness)
    assert (await pos.pay()).status_code == 200
    await harness.database.execute(
        "INSERT INTO notices SELECT id, 'payment_made', 1 FROM transactions ORDER BY id LIMIT 1"
    )
    unsealed = await harness.database.fetchval(
        "SELECT count(*) FROM audit_entries WHERE hash IS NULL"
    )
    samples = await scrape(harness)
    assert samples["tapgate_queue_jobs", "audit"] == unsealed > 0
    assert samples["tapgate_queue_jobs", "receipts"] >= 1
    assert 0 <= samples["tapgate_queue_oldest_seconds", "receipts"] < 600


async def test_disabled_endpoints_have_no_backlog(harness: Harness) -> None:
    await subscribe_to_events(harness)
    await insert_jobs(harness.database)
    await harness.database.execute("UPDATE webhook_endpoints SET deleted_at = now()")
    assert (await scrape(harness))["tapgate_queue_jobs", "webhooks"] == 0


async def test_messenger_backlogs_are_reported(database: Database) -> None:
    await database.execute(
        """INSERT INTO messenger.outbox (id, address, next_attempt_at, created_at)
           VALUES (1, '+23276000000', now() - interval '1 minute', now() - interval '1 minute');
           INSERT INTO messenger.received (id, message_id, address, sent_at, reserved_for,
                                           reserved_until, status, received_at)
           VALUES (1, 'a', '+23276000000', 0, 1, now(), 'waiting', now() - interval '1 minute')"""
    )
    metrics = BacklogMetrics(database, [leases.BACKLOG_SQL, inbox.BACKLOG_SQL])
    await metrics.update()
    samples = collect(metrics)
    for queue in ("outbox", "inbox"):
        assert samples["tapgate_queue_jobs", queue] == 1
        assert 60 <= samples["tapgate_queue_overdue_seconds", queue] < 160


async def test_backlog_queries_run_once_for_many_scrapes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = BacklogMetrics(
        database, ["SELECT 'a' AS queue, 1 AS jobs, 0 AS oldest, 0 AS overdue"]
    )
    await metrics.update()
    monkeypatch.setattr(metrics, "sql", "SELECT 1 / 0")
    await metrics.update()
    assert collect(metrics)["tapgate_queue_jobs", "a"] == 1
    failing = BacklogMetrics(database, ["SELECT 1 / 0"])
    await failing.update()  # a failed query does not fail the scrape
    assert collect(failing) == {}


def test_gauges_of_a_stopped_worker_are_ignored(tmp_path: Path) -> None:
    def create() -> tuple[SharedMetrics, Counter, Gauge, Histogram]:
        counter, gauge = Counter("a", "a"), Gauge("b", "b", ["x"], [("1",), ("2",)])
        histogram = Histogram("c", "c", (1.0, 2.0))
        return SharedMetrics(tmp_path, [counter, gauge, histogram]), counter, gauge, histogram

    with time_machine.travel(1_800_000_000) as clock:
        first, second = create(), create()
        for shared, counter, gauge, histogram in (first, second):
            counter.add(amount=2)
            gauge.set(5, 1)
            histogram.observe(1.5)
            shared.mark_gauges_updated()
        samples = collect(first[0])
        assert (samples["a_total",], samples["b", "1"], samples["b", "2"]) == (4, 0, 10)
        assert (samples["c_bucket", "1.0"], samples["c_bucket", "2.0"]) == (0, 2)
        clock.shift(60)
        first[0].mark_gauges_updated()
        samples = collect(first[0])
        assert (samples["a_total",], samples["b", "2"]) == (4, 5)
    for shared, *_ in (first, second):
        shared.close()
