"""Behavior common to all routes: paths, methods, body limits, request ids, logs, failures."""

import gc
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import structlog

from builders.messenger import (
    BRIDGE_PATH,
    HEALTH_PATH,
    PHONE,
    TEMPLATE_PATH,
    WEBHOOK_PATH,
    MessengerApp,
    build_error,
)
from drivers.in_process import AppTransport
from tapgate import VERSION
from tapgate.http.endpoint import Endpoints
from tapgate.messenger.app import App
from tapgate.messenger.routes import ENDPOINTS
from tapgate.messenger.routes.access import PUBLIC
from tapgate.messenger.web import RequestContext
from tapgate.runtime import logs


class LogCapture:
    def __init__(self) -> None:
        self.chunks = b""

    def write(self, line: bytes) -> None:
        self.chunks += line

    def flush(self) -> None: ...

    def read_records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.chunks.splitlines()]


@pytest.fixture
def log_capture() -> Iterator[LogCapture]:
    gc.collect()  # keeps warnings about garbage of other tests out of the captured log
    stored = logging.root.handlers[:], logging.root.level, structlog.get_config()
    lines = LogCapture()
    logs.configure(lines)
    yield lines
    logs.stream = None
    logging.root.handlers[:], logging.root.level = stored[0], stored[1]
    structlog.configure(**stored[2])


async def test_health_reports_ok(messenger: MessengerApp) -> None:
    response = await messenger.client.get(HEALTH_PATH)
    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "service": "tapgate-messenger",
        "version": VERSION,
        "activeConversations": 0,
    }


async def test_health_counts_active_conversations(messenger: MessengerApp) -> None:
    await messenger.services.database.execute(
        """INSERT INTO messenger.conversations (address, expires_at)
           VALUES ('+1', now() + interval '1 minute'), ('+2', now() - interval '1 minute'),
                  ('+3', NULL)"""
    )
    assert (await messenger.client.get(HEALTH_PATH)).json()["activeConversations"] == 1


async def test_health_returns_503_without_the_database(offline_messenger: MessengerApp) -> None:
    response = await offline_messenger.client.get(HEALTH_PATH)
    assert response.status_code == 503
    assert response.json() == {
        "status": "error",
        "service": "tapgate-messenger",
        "version": VERSION,
        "activeConversations": 0,
    }


async def test_messenger_is_ready_only_with_the_database_and_until_it_drains(
    messenger: MessengerApp, offline_messenger: MessengerApp
) -> None:
    assert (await offline_messenger.client.get("/live")).json() == {"live": True}
    version = (await offline_messenger.client.get("/version")).json()
    assert (version["service"], version["version"]) == ("tapgate-messenger", VERSION)
    response = await offline_messenger.client.get("/ready")
    assert response.status_code == 503
    assert [reason["code"] for reason in response.json()["reasons"]] == ["database_unavailable"]
    response = await messenger.client.get("/ready")
    assert (response.status_code, response.json()) == (200, {"ready": True, "reasons": []})
    messenger.services.health.is_draining = True
    response = await messenger.client.get("/ready")
    assert response.status_code == 503
    assert [reason["code"] for reason in response.json()["reasons"]] == ["draining"]


async def test_metrics_count_requests_by_endpoint_and_status(
    offline_messenger: MessengerApp,
) -> None:
    await offline_messenger.client.get(HEALTH_PATH)
    await offline_messenger.client.get("/unknown")
    response = await offline_messenger.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    counted = {line for line in response.text.splitlines() if line.startswith("tapgate_http_req")}
    assert {
        'tapgate_http_requests_total{endpoint="/health",method="GET",status="503"} 1.0',
        'tapgate_http_requests_total{endpoint="unmatched",method="",status="404"} 1.0',
    } <= counted


@pytest.mark.parametrize("path", ["/", "/api/v1/health", f"{HEALTH_PATH}/", "/%68ealth", "/docs"])
async def test_unknown_path_returns_404(offline_messenger: MessengerApp, path: str) -> None:
    response = await offline_messenger.client.get(path)
    assert (response.status_code, response.json()) == (404, build_error("Not found"))


BODY_LIMITS_KIB = {
    BRIDGE_PATH: 8192,
    WEBHOOK_PATH: 3072,
    f"{WEBHOOK_PATH}/flows": 16,
    TEMPLATE_PATH: 256,
}


@pytest.mark.parametrize(("path", "kibibytes"), BODY_LIMITS_KIB.items())
async def test_body_above_the_limit_of_the_route_is_rejected(
    offline_messenger: MessengerApp, path: str, kibibytes: int
) -> None:
    response = await offline_messenger.client.post(path, content=b"x" * (kibibytes * 1024 + 1))
    assert (response.status_code, response.json()) == (413, build_error("Request body too large"))
    response = await offline_messenger.client.post(path, content=b"x" * kibibytes * 1024)
    assert response.status_code in (400, 401, 421, 503)


def test_other_routes_accept_at_most_16_kibibytes() -> None:
    """Simulated deliveries may also be larger, but their route exists only outside production."""
    larger = {route.path for route in ENDPOINTS if route.body_limit > 16 * 1024}
    assert larger == {BRIDGE_PATH, WEBHOOK_PATH, TEMPLATE_PATH, "/api/v1/simulator/deliveries"}


async def test_unexpected_failure_reveals_no_details(
    messenger: MessengerApp, log_capture: LogCapture
) -> None:
    endpoints = Endpoints("System")

    @endpoints.get("/broken", access=PUBLIC)
    async def fail(_request: RequestContext) -> None:
        """Fail."""
        raise RuntimeError("canary")

    app = App(messenger.services, endpoints)
    transport = AppTransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://messenger") as client:
        response = await client.get("/broken")
    assert (response.status_code, response.json()) == (500, build_error("Internal error"))
    assert response.headers["x-request-id"]
    failed, request = log_capture.read_records()
    assert failed["event"] == "request.failed"
    assert failed["failure"]["types"] == ["builtins.RuntimeError"]
    assert any("test_app.py" in frame for frame in failed["failure"]["frames"])
    assert (request["status"], request["level"]) == (500, "error")
    assert b"canary" not in log_capture.chunks


async def test_database_outage_returns_503(offline_messenger: MessengerApp) -> None:
    code = {"to": PHONE, "template": "code", "parameters": []}
    response = await offline_messenger.client.post(
        TEMPLATE_PATH, json=code, auth=offline_messenger.get_service_auth()
    )
    assert response.status_code == 503
    expected = build_error("The messenger is temporarily unavailable. Try again in a few seconds.")
    assert response.json() == expected
