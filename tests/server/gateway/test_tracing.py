"""Traces: spans for requests, the ledger, the database and webhooks, and their propagation."""

import asyncio
import http.server
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from builders.payments import PosDriver
from drivers.in_process import AppTransport
from drivers.webhooks import (
    WebhookReceiver,
    attempt_due_deliveries,
    create_endpoint,
    publish_event,
)
from harness import WRONG_PIN, Harness, split_words
from tapgate.core import telemetry
from tapgate.core.telemetry import TelemetryError
from tapgate.http.traced_app import TracedApp
from tapgate.server.gateway import create_app

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.use_provider(provider)
    yield exporter
    telemetry.use_provider(None)
    provider.shutdown()


@pytest.fixture
async def traced(harness: Harness) -> Any:
    """Yield a harness whose requests are traced as part of `TRACEPARENT`."""
    transport = AppTransport(TracedApp(create_app(harness.services)))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://gateway", headers={"traceparent": TRACEPARENT}
    ) as client:
        yield Harness(harness.services, client)


def find_spans(exporter: InMemorySpanExporter, name: str) -> list[Any]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def get_trace_id(span: Any) -> str:
    return f"{span.context.trace_id:032x}"


async def test_request_continues_the_trace_of_the_client(
    exporter: InMemorySpanExporter, traced: Harness
) -> None:
    pos = await PosDriver.create(traced)
    exporter.clear()
    assert (await pos.pay("100.00")).status_code == 200
    (request,) = find_spans(exporter, "POST /api/v1/pos/payment")
    assert get_trace_id(request) == TRACE_ID
    assert f"{request.parent.span_id:016x}" == PARENT_ID
    assert request.attributes["http.response.status_code"] == 200
    (submit,) = find_spans(exporter, "ledger submit")
    assert get_trace_id(submit) == TRACE_ID
    assert submit.parent.span_id == request.context.span_id


async def test_batch_is_linked_to_its_requests_and_has_its_phases(
    exporter: InMemorySpanExporter, traced: Harness
) -> None:
    pos = await PosDriver.create(traced)
    exporter.clear()
    await asyncio.gather(*(pos.pay("1.00") for _ in range(5)))
    batches = find_spans(exporter, "ledger batch")
    linked = {link.context.span_id for batch in batches for link in batch.links}
    assert linked == {span.context.span_id for span in find_spans(exporter, "ledger submit")}
    assert sum(batch.attributes["tapgate.batch.size"] for batch in batches) == 5
    for batch in batches:
        phases = [
            span
            for span in exporter.get_finished_spans()
            if span.parent is not None and span.parent.span_id == batch.context.span_id
        ]
        expected = [f"ledger batch {phase}" for phase in ("load", "decide", "write", "commit")]
        assert [span.name for span in phases] == expected
        assert phases[0].start_time == batch.start_time
        for span, following in pairwise(phases):
            assert span.end_time == following.start_time


async def test_database_work_of_a_request_is_traced_without_personal_data(
    exporter: InMemorySpanExporter, traced: Harness
) -> None:
    pos = await PosDriver.create(traced)
    exporter.clear()
    admin = await traced.create_admin()
    response = await traced.get(f"/api/v1/subscribers/{pos.customer['id']}", auth=admin)
    assert response.status_code == 200
    assert (await pos.pay("100.00", pin=WRONG_PIN)).status_code == 400
    (request,) = find_spans(exporter, "GET /api/v1/subscribers/{id}")
    database = [span for span in exporter.get_finished_spans() if "database" in span.name]
    assert request.context.trace_id in {span.context.trace_id for span in database}
    exported = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert WRONG_PIN not in split_words(exported)
    for secret in (pos.customer["id"], pos.card, pos.customer["phone_number"]):
        assert secret not in exported


async def test_webhook_carries_the_span_of_its_delivery(
    exporter: InMemorySpanExporter, harness: Harness
) -> None:
    receiver = WebhookReceiver()
    async with receiver.listen():
        await create_endpoint(harness.services, receiver.url)
        await publish_event(harness.services)
        await attempt_due_deliveries(harness.services)
    (webhook,) = receiver.received
    (delivery,) = find_spans(exporter, "webhook delivery")
    span_id = f"{delivery.context.span_id:016x}"
    assert webhook.headers["traceparent"].startswith(f"00-{get_trace_id(delivery)}-{span_id}-")
    assert delivery.attributes["tapgate.event"] == "card.linked"


async def test_failed_span_has_the_type_of_the_exception_only(
    exporter: InMemorySpanExporter,
) -> None:
    with (
        pytest.raises(ValueError, match="secret"),
        telemetry.start_root_span("work", "SERVER", {}),
    ):
        raise ValueError("secret")
    (span,) = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "ValueError"
    assert not span.status.is_ok
    assert "secret" not in span.to_json()


async def test_nothing_is_traced_when_tracing_is_off(traced: Harness) -> None:
    assert telemetry.tracer is None
    pos = await PosDriver.create(traced)
    assert (await pos.pay("100.00")).status_code == 200
    receiver = WebhookReceiver()
    async with receiver.listen():
        await create_endpoint(traced.services, receiver.url)
        await publish_event(traced.services)
        await attempt_due_deliveries(traced.services)
    assert "traceparent" not in receiver.received[0].headers


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
    ],
)
def test_tracing_is_off_without_an_endpoint(environ: dict[str, str]) -> None:
    telemetry.configure("tapgate", environ)
    assert telemetry.tracer is None


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TelemetryError, match=r"pip install 'tapgate\[otel\]'"):
        telemetry.configure("tapgate", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    with pytest.raises(TelemetryError, match="must be otlp or none"):
        telemetry.configure("tapgate", {"OTEL_TRACES_EXPORTER": "zipkin"})


class OtlpReceiver(http.server.BaseHTTPRequestHandler):
    """Server that keeps the bodies of OTLP requests."""

    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_spans_are_exported_to_the_configured_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = list[bytes]()
    handler = type("Handler", (OtlpReceiver,), {"bodies": bodies})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        try:
            telemetry.configure("tapgate", environ)
            with telemetry.start_root_span("exported work", "SERVER", {}):
                pass
            telemetry.tracer.span_processor.force_flush()
        finally:
            telemetry.use_provider(None)
            server.shutdown()
            thread.join()
    assert any(b"exported work" in body and b"service.name" in body for body in bodies)
