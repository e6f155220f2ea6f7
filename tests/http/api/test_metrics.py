"""A node's metrics and latency samples, collected from all of its workers."""

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from builders.http_apps import READER, EdgeApp, build_bearer_headers
from drivers.services import run_service
from harness import PRODUCTION_ENVIRON
from tapgate.http.api import latency_samples
from tapgate.http.api.latency_samples import LatencySamples
from tapgate.http.metrics import UNMATCHED_ROW, Metrics
from tapgate.runtime import shared_metrics
from tapgate.runtime.shared_metrics import Counter, Histogram

ROUTES = [("GET", "/a"), ("POST", "/b/{id}")]


def parse_samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return the samples: (name, method, endpoint, status or bound) -> value."""
    samples: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            labels = {"method": "", "endpoint": "", **sample.labels}
            last = labels.get("status") or labels.get("le") or ""
            samples[sample.name, labels["method"], labels["endpoint"], last] = sample.value
    return samples


def count_requests(metrics: Metrics) -> dict[tuple[str, ...], float]:
    return {
        key[1:]: value
        for key, value in parse_samples(metrics).items()
        if key[0] == "tapgate_http_requests_total"
    }


def test_requests_are_counted_by_endpoint_and_status(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, ROUTES)
    metrics.count_request(0, 200, 0.001)
    metrics.count_request(0, 200, 0.003)
    metrics.count_request(0, 418, 9.0)
    metrics.count_request(1, 404, 0.01)
    metrics.count_request(UNMATCHED_ROW, 404, 0.0)
    assert count_requests(metrics) == {
        ("GET", "/a", "200"): 2,
        ("GET", "/a", "other"): 1,
        ("POST", "/b/{id}", "404"): 1,
        ("", "unmatched", "404"): 1,
    }
    samples = parse_samples(metrics)
    name = "tapgate_http_request_seconds"
    assert samples[f"{name}_bucket", "GET", "/a", "0.001"] == 1
    assert samples[f"{name}_bucket", "GET", "/a", "0.005"] == 2
    assert samples[f"{name}_bucket", "GET", "/a", "5.0"] == 2
    assert samples[f"{name}_bucket", "GET", "/a", "+Inf"] == 3
    assert samples[f"{name}_count", "GET", "/a", ""] == 3
    assert samples[f"{name}_sum", "GET", "/a", ""] == pytest.approx(9.004)
    metrics.close()


def test_every_worker_reports_the_sum_of_all_workers(tmp_path: Path) -> None:
    workers = [Metrics(tmp_path, ROUTES) for _ in range(3)]
    for worker in workers:
        worker.count_request(0, 200, 0.001)
    for worker in workers:
        assert count_requests(worker) == {("GET", "/a", "200"): 3}
        worker.close()


def test_restarted_worker_continues_the_counts_of_a_dead_one(tmp_path: Path) -> None:
    alive, dead = Metrics(tmp_path, ROUTES), Metrics(tmp_path, ROUTES)
    alive.count_request(0, 200, 0.001)
    dead.count_request(0, 200, 0.001)
    dead.close()
    assert count_requests(alive) == {("GET", "/a", "200"): 2}
    for _ in range(5):
        restarted = Metrics(tmp_path, ROUTES)
        restarted.count_request(0, 200, 0.001)
        restarted.close()
    assert count_requests(alive) == {("GET", "/a", "200"): 7}
    assert len(list((tmp_path / "metrics").iterdir())) == 2
    alive.close()


def test_changed_routes_reset_the_counts(tmp_path: Path) -> None:
    old = Metrics(tmp_path, ROUTES)
    old.count_request(0, 200, 0.001)
    new = Metrics(tmp_path, [*ROUTES, ("GET", "/c")])
    assert count_requests(new) == {}
    old.close()
    newer = Metrics(tmp_path, [*ROUTES, ("GET", "/c")])
    newer.count_request(2, 200, 0.001)
    assert count_requests(new) == {("GET", "/c", "200"): 1}
    new.close()
    newer.close()


def test_other_metrics_can_be_added(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, ROUTES)
    gauge = Gauge("tapgate_waiting", "Commands that wait", registry=None)
    gauge.set(7)
    metrics.add_collector(gauge)
    assert b"tapgate_waiting 7.0" in metrics.render()
    metrics.close()


@given(
    st.lists(st.floats(0, 1e18) | st.integers(0, 10**15).map(float), min_size=8, max_size=8),
    st.text(max_size=5),
)
def test_families_are_rendered_as_in_the_official_client(
    values: list[float], endpoint: str
) -> None:
    labels, (first, second) = ["method", "endpoint"], (("GET", endpoint), ("POST", "/b"))
    counter = CounterMetricFamily("a", "Counter", labels=labels)
    gauge = GaugeMetricFamily("b", "Gauge", labels=labels)
    histogram = HistogramMetricFamily("c", "Histogram", labels=labels)
    for series, value in ((first, values[0]), (second, values[1])):
        if value:
            counter.add_metric(series, value)
        gauge.add_metric(series, value)
    for series, (low, high, rest, total) in ((first, values[:4]), (second, values[4:])):
        if low or high or rest:
            buckets = [("0.5", low), ("10", low + high), ("+Inf", low + high + rest)]
            histogram.add_metric(series, buckets, sum_value=total)
    for expected, family, cells in (
        (counter, Counter("a", "Counter", labels, [first, second]), values[:2]),
        (gauge, shared_metrics.Gauge("b", "Gauge", labels, [first, second]), values[:2]),
        (histogram, Histogram("c", "Histogram", (0.5, 10), labels, [first, second]), values),
    ):
        registry = CollectorRegistry()
        registry.register(FixedCollector(expected))
        assert family.render(cells).text == generate_latest(registry).decode()


class FixedCollector:
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]


async def test_metrics_are_rendered_at_most_once_a_second_and_in_a_thread(
    gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    render = gateway.app.metrics.render

    def record_thread() -> bytes:
        threads.append(threading.get_ident())
        return render()

    monkeypatch.setattr(gateway.app.metrics, "render", record_thread)
    responses = await asyncio.gather(*(gateway.client.get("/metrics") for _ in range(50)))
    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    monkeypatch.setattr(gateway.app.metrics.rendered, "max_age", 0.0)
    await gateway.client.get("/metrics")
    assert len(threads) == 2


async def test_metrics_show_path_templates_and_never_paths(gateway: EdgeApp) -> None:
    await gateway.client.get("/api/v1/things/secret-name", headers=build_bearer_headers(READER))
    await gateway.client.get("/secret-path")
    response = await gateway.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert 'endpoint="/api/v1/things/{name}",method="GET",status="200"} 1.0' in response.text
    assert 'endpoint="unmatched",method="",status="404"} 1.0' in response.text
    assert "secret" not in response.text


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
    assert len(second.list_batches()) == 2  # samples from an exited worker are kept
    second.close()


@pytest.mark.parametrize("more", [0, 1, 700])
def test_newest_samples_are_kept(tmp_path: Path, more: int) -> None:
    worker = LatencySamples(tmp_path)
    for number in range(latency_samples.MAX_BATCHES + more):
        worker.add_batch(number + 1, 0.001)
    sizes = sorted(sample.size for sample in worker.list_batches())
    assert sizes == list(range(more + 1, latency_samples.MAX_BATCHES + more + 1))
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


METRICS_TOKEN = "Qm7vTzX2kLw9RbNd4sHc6yJf1pGe8uAa"


@pytest.mark.parametrize("environ", [PRODUCTION_ENVIRON, {"TAPGATE_ENVIRONMENT": "development"}])
@pytest.mark.parametrize("service", ["gateway", "messenger"])
async def test_metrics_need_the_token_and_are_closed_without_one_in_production(
    tmp_path: Path, environ: dict[str, str], service: str
) -> None:
    async def request(token: str | None, authorization: str | None) -> int:
        variables = {**environ, "TAPGATE_METRICS_TOKEN": token or ""}
        headers = {} if authorization is None else {"Authorization": authorization}
        async with run_service(service, tmp_path, variables) as client:
            response = await client.get("/metrics", headers=headers)
            assert METRICS_TOKEN not in response.text
            return response.status_code

    is_production = environ is PRODUCTION_ENVIRON
    assert await request(None, None) == (404 if is_production else 200)
    assert await request(None, f"Bearer {METRICS_TOKEN}") == (404 if is_production else 200)
    assert await request(METRICS_TOKEN, f"Bearer {METRICS_TOKEN}") == 200
    assert await request(METRICS_TOKEN, f"bearer {METRICS_TOKEN}") == 200
    for wrong in (None, "", "Bearer", "Bearer x", f"Basic {METRICS_TOKEN}", METRICS_TOKEN):
        assert await request(METRICS_TOKEN, wrong) == 401
