"""Metrics for regular tasks, expiring keys, certificates and long snapshots."""

import asyncio
import datetime
import re
from pathlib import Path

import asyncpg
import pytest

from drivers.network_faults import make_certificates, run_proxy
from harness import Harness
from runtime.store.conftest import build_tcp_url
from tapgate.business.reporting.task_metrics import TaskMetrics
from tapgate.core.settings import load_settings
from tapgate.http.certificate_metrics import CertificateMetrics, read_certificate_expiry
from tapgate.runtime.store import server_status
from tapgate.runtime.store.database import Database
from tapgate.runtime.task_runs import Task, record_run

DAY = 86_400


async def collect(
    source: TaskMetrics | CertificateMetrics,
) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values of all series by metric and label values."""
    await source.update()
    return {
        metric.name: {tuple(item.labels.values()): item.value for item in metric.samples}
        for metric in source.collect()
    }


async def test_tasks_that_never_ran_have_no_series(database: Database) -> None:
    metrics = await collect(TaskMetrics(database))
    assert metrics["tapgate_task_succeeded"] == {}


async def test_age_is_that_of_the_newest_success(database: Database, database_url: str) -> None:
    await record_run(database_url, Task.BACKUP, succeeded=True)
    await database.execute("UPDATE task_runs SET succeeded_at = now() - interval '2 days'")
    await record_run(database_url, Task.BACKUP, succeeded=False)
    await record_run(database_url, Task.RESTORE_CHECK, succeeded=False)
    await database.execute(
        """INSERT INTO proofs (proven_at, seconds, transactions, entries, accounts, broken)
           VALUES (now() - interval '3 days', 1, 0, 0, 0, '{}'), (now(), 1, 0, 0, 0, '{sums}')"""
    )
    metrics = await collect(TaskMetrics(database))
    assert metrics["tapgate_task_succeeded"] == {
        ("backup",): 0,
        ("restore_check",): 0,
        ("verification",): 0,
    }
    ages = metrics["tapgate_task_success_age_seconds"]
    assert ages == {
        ("backup",): pytest.approx(2 * DAY, abs=600),
        ("verification",): pytest.approx(3 * DAY, abs=600),
    }


async def test_only_keys_that_expire_soon_have_series(harness: Harness) -> None:
    for name, days in (("soon", 10), ("over", -3), ("later", 100), ("long over", -30)):
        await harness.create_api_key("payments:read")
        await harness.database.execute(
            """UPDATE api_keys SET name = $1, expires_at = now() + make_interval(days => $2)
               WHERE id = (SELECT max(id) FROM api_keys)""",
            name,
            days,
        )
    keys = (await collect(TaskMetrics(harness.database)))["tapgate_key_expiry_seconds"]
    assert {name: value for (_, name), value in keys.items()} == {
        "soon": pytest.approx(10 * DAY, abs=600),
        "over": pytest.approx(-3 * DAY, abs=600),
    }


async def test_certificates_of_the_public_url_and_the_database(
    database_url: str, tmp_path: Path
) -> None:
    context, _ = make_certificates(tmp_path)
    async with run_proxy(database_url, context) as port:
        url = build_tcp_url(database_url, "localhost", port) + "?sslmode=require"
        database = await Database.connect(url, size=1)
        settings = load_settings({"TAPGATE_PUBLIC_URL": f"https://localhost:{port}"})
        try:
            metrics = await collect(CertificateMetrics(settings, database))
        finally:
            await database.close()
    expiries = metrics["tapgate_certificate_expiry_seconds"]
    # The proxy speaks PostgreSQL's protocol, so the public certificate cannot be read from it.
    assert set(expiries) == {("database",)}
    assert expiries["database",] > 0


async def test_public_certificate_is_read_even_if_it_is_not_trusted(tmp_path: Path) -> None:
    context, _ = make_certificates(tmp_path)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    expiry = await asyncio.to_thread(read_certificate_expiry, "localhost", port)
    assert expiry > datetime.datetime.now(datetime.UTC).timestamp()
    server.close()


async def test_long_snapshot_is_named_in_health_and_metrics(
    harness: Harness, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_status, "LONG_SNAPSHOT_SECONDS", 0.0)
    analyst = await asyncpg.connect(database_url, server_settings={"application_name": "metabase"})
    try:
        async with analyst.transaction(isolation="repeatable_read"):
            await analyst.fetchval("SELECT count(*) FROM transactions")
            while not (warnings := (await harness.get("/health")).json()["warnings"]):
                await asyncio.sleep(0.05)  # the check result is cached
            (warning,) = warnings
            assert warning["code"] == "long_snapshot"
            pattern = (
                r"The session \d+ \(metabase, user \w+\) has held a snapshot for \d+ seconds\."
            )
            assert re.fullmatch(pattern, warning["message"])
            metrics = (await harness.get("/metrics")).text
            assert 'tapgate_database_long_snapshot_seconds{application="metabase",user=' in metrics
    finally:
        await analyst.close()
