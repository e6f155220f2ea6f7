"""Metrics and latency samples of a node, collected from all of its workers."""

from pathlib import Path

import pytest
import time_machine
from prometheus_client import Gauge
from prometheus_client.parser import text_string_to_metric_families

from api.builders import READER, EdgeApp, build_bearer_headers
from tapgate.api import latency_samples
from tapgate.api.latency_samples import LatencySamples
from tapgate.http.metrics import UNMATCHED_ROW, Metrics

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


def test_other_metrics_can_be_registered(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, ROUTES)
    Gauge("tapgate_waiting", "Commands that wait", registry=metrics.registry).set(7)
    assert b"tapgate_waiting 7.0" in metrics.render()
    metrics.close()


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
