"""Prometheus metrics for a service: requests, messages and authentication failures."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric

from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.shared_metrics import Counter, Histogram, RenderedFamily, SharedMetrics
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate_client.errors import TABLE
from tapgate_client.schemas.chat import UnavailableService

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Index of the last row, which counts requests that match neither an endpoint nor a site.
UNMATCHED_ROW = -1

#: Status recorded when the client disconnects before its request is complete.
CLIENT_CLOSED_REQUEST = 499

_STATUSES = sorted(
    {status for status, _ in TABLE.values()} | {200, 201, 202, 204, 304, CLIENT_CLOSED_REQUEST}
)
_STATUS_LABELS = [*map(str, _STATUSES), "other"]
_STATUS_INDEXES = {status: index for index, status in enumerate(_STATUSES)}
_OTHER_STATUS_INDEX = len(_STATUSES)
_BUCKET_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

#: Metrics are rendered at most this often, regardless of how many clients scrape them.
MAX_AGE_SECONDS = 1.0

#: Delivery statuses for messages sent to phones.
MESSAGE_STATUSES = ("sent", "delivered", "read", "failed")
#: What became of an attempt to send an SMS.
SMS_RESULTS = ("accepted", "retried", "failed")


class AuthFailure(StrEnum):
    """What a caller failed to prove its identity with."""

    PIN = "pin"
    ONE_TIME_CODE = "one_time_code"
    LOGIN = "login"
    SIGNATURE = "signature"
    TOKEN = "token"  # noqa: S105 - a credential kind
    NONE = "none"  # no credential was sent


class Collector(Protocol):
    """Collects metrics. It is called in a thread."""

    def collect(self) -> Iterable[Metric | RenderedFamily]: ...


class MetricSource(Collector, Protocol):
    """Collector whose metrics must be updated before they are collected."""

    async def update(self) -> None: ...


_AUTH_FAILURE_INDEXES = {kind: index for index, kind in enumerate(AuthFailure)}


class EventCounters:
    """Counts events that happen outside the application."""

    def __init__(self) -> None:
        self.messages = Counter(
            "tapgate_message_statuses",
            "Messages by delivery status",
            ["status"],
            [(status,) for status in MESSAGE_STATUSES],
        )
        self.sms = Counter(
            "tapgate_sms", "Attempts to send an SMS", ["result"], [(name,) for name in SMS_RESULTS]
        )
        self.unavailable_services = Counter(
            "tapgate_unavailable_service_requests",
            "Chat requests for services that are not offered",
            ["service"],
            [(service,) for service in UnavailableService],
        )
        self.dropped_logs = Counter(
            "tapgate_request_logs_dropped", "Requests that were not written to the request log"
        )

    def count_message_status(self, status: str) -> None:
        """Count a message that reached this delivery status."""
        self.messages.add(MESSAGE_STATUSES.index(status))

    def count_sms(self, result: str) -> None:
        """Count an attempt to send an SMS."""
        self.sms.add(SMS_RESULTS.index(result))

    def count_unavailable_service(self, service: UnavailableService) -> None:
        """Count a chat request for a service that is not offered."""
        self.unavailable_services.add([*UnavailableService].index(service))

    def count_dropped_logs(self, count: int) -> None:
        self.dropped_logs.add(0, count)


class Metrics:
    """Request counts and durations per endpoint or site, and counts of other events.

    Each of `rows` is an endpoint's method and path template, or a site's path prefix.
    """

    def __init__(
        self, folder: Path, rows: Sequence[tuple[str, str]], events: EventCounters | None = None
    ) -> None:
        events = events or EventCounters()
        self._rows = [*rows, ("", "unmatched")]
        self._requests = Counter(
            "tapgate_http_requests",
            "HTTP requests by status; 499 if the client disconnected",
            ["method", "endpoint", "status"],
            self._rows,
            _STATUS_LABELS,
        )
        self._durations = Histogram(
            "tapgate_http_request_seconds",
            "Time from receiving the request headers to the response",
            _BUCKET_BOUNDS,
            ["method", "endpoint"],
            self._rows,
        )
        self._auth_failures = Counter(
            "tapgate_auth_failures",
            "Requests with a wrong or missing credential or PIN",
            ["kind"],
            [(kind,) for kind in AuthFailure],
        )
        families = [
            self._requests,
            self._durations,
            events.messages,
            events.sms,
            events.unavailable_services,
            self._auth_failures,
            events.dropped_logs,
        ]
        self._shared = SharedMetrics(folder / "metrics", families)
        self._collectors: list[Collector] = [self._shared]
        self._sources: list[MetricSource] = []
        self._thread = BoundedThreadPool("metrics", threads=1, max_pending=1)
        self.rendered = CachedResult(self._update_and_render, MAX_AGE_SECONDS)

    def add_collector(self, collector: Collector) -> None:
        self._collectors.append(collector)

    def add_source(self, source: MetricSource) -> None:
        self._sources.append(source)
        self.add_collector(source)

    def count_request(self, row: int, status: int, seconds: float) -> None:
        row %= len(self._rows)
        self._requests.add(
            row * len(_STATUS_LABELS) + _STATUS_INDEXES.get(status, _OTHER_STATUS_INDEX)
        )
        self._durations.observe(seconds, row)

    def count_auth_failure(self, kind: AuthFailure) -> None:
        self._auth_failures.add(_AUTH_FAILURE_INDEXES[kind])

    async def scrape(self) -> bytes:
        """Return all metrics, at most a second old, in the Prometheus text format."""
        return await self.rendered.get()

    async def _update_and_render(self) -> bytes:
        for source in self._sources:
            await source.update()
        return await self._thread.run(self.render)

    def render(self) -> bytes:
        return render_collectors(self._collectors)

    def close(self) -> None:
        self._shared.close()


def render_collectors(collectors: Iterable[Collector]) -> bytes:
    return b"".join(
        [
            metric.text.encode()
            if isinstance(metric, RenderedFamily)
            else generate_latest(_SingleMetric(metric))
            for collector in collectors
            for metric in collector.collect()
        ]
    )


class _SingleMetric:
    """Collector in the form that `prometheus_client` renders."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]
