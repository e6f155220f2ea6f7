"""Metrics of a node are the sum over its workers, including those that have exited."""

from pathlib import Path

import pytest
from prometheus_client import Gauge
from prometheus_client.parser import text_string_to_metric_families

from api.builders import READER, EdgeApp, build_bearer_headers
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
