"""OpenTelemetry traces. Off, and without cost, unless the OTEL_* variables name an exporter.

Spans contain no personal data: exceptions are recorded with their types only, paths as templates,
and statements without their text.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from tapgate import VERSION

#: This process's tracer. None if tracing is off.
tracer: Any = None

_ENDPOINT_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
_NO_SPAN: Final[AbstractContextManager[Any]] = nullcontext()


class TelemetryError(Exception):
    """Traces are requested, but cannot be exported. The message says what to do."""


def configure(service_name: str, environ: Mapping[str, str]) -> None:
    """Start to export traces by OTLP if the environment names an endpoint or an exporter.

    The SDK reads the other OTEL_* variables, such as the sampler and the headers.
    """
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_requested = exporter == "otlp" or any(map(environ.get, _ENDPOINT_VARIABLES))
    if exporter not in ("", "none", "otlp"):
        raise TelemetryError(f"OTEL_TRACES_EXPORTER must be otlp or none, not {exporter}")
    if is_disabled or exporter == "none" or not is_requested:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise TelemetryError(
            "traces are requested by OTEL_* variables, but OpenTelemetry is not installed:"
            " pip install 'tapgate[otel]'"
        ) from error
    name = environ.get("OTEL_SERVICE_NAME") or service_name
    provider = TracerProvider(
        resource=Resource.create({"service.name": name, "service.version": VERSION})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use_provider(provider)


def use_provider(provider: Any | None) -> None:
    """Create spans with this provider. None turns tracing off."""
    global tracer  # noqa: PLW0603 - one tracer per process, like the log stream
    tracer = None if provider is None else provider.get_tracer("tapgate", VERSION)


def start_span(name: str, **attributes: Any) -> AbstractContextManager[Any]:
    """Start a span within the current span. Without a current span, none is started."""
    if tracer is None:
        return _NO_SPAN
    from opentelemetry import trace  # noqa: PLC0415

    if not trace.get_current_span().is_recording():
        return _NO_SPAN
    return _run_span(name, attributes)


def start_root_span(
    name: str,
    kind: str,
    attributes: Mapping[str, Any],
    *,
    carrier: Mapping[str, str] | None = None,
) -> AbstractContextManager[Any]:
    """Start a span that continues the carrier's trace, or else a new trace."""
    if tracer is None:
        return _NO_SPAN
    from opentelemetry import context, trace  # noqa: PLC0415

    parent = _propagator().extract(carrier or {}, context=context.Context())
    return _run_span(name, attributes, context=parent, kind=trace.SpanKind[kind])


def describe_request(method: str, route: str, status: int, request_id: str) -> None:
    """Describe the current span as a completed request."""
    from opentelemetry import trace  # noqa: PLC0415

    span = trace.get_current_span()
    if not span.is_recording():
        return
    span.update_name(f"{method} {route}")
    span.set_attributes(
        {"http.route": route, "http.response.status_code": status, "tapgate.request_id": request_id}
    )
    if status >= 500:
        span.set_status(trace.StatusCode.ERROR)


def get_headers() -> dict[str, str]:
    """Return the headers that propagate the current span. Empty if tracing is off."""
    headers: dict[str, str] = {}
    if tracer is not None:
        _propagator().inject(headers)
    return headers


def record_phases(
    name: str,
    phases: Mapping[str, float],
    traceparents: Iterable[str],
    attributes: Mapping[str, Any],
) -> None:
    """Record a span that has just ended, with its phases in seconds and links to its causes."""
    from opentelemetry import context, trace  # noqa: PLC0415

    end = time.time_ns()
    start = end - int(sum(phases.values()) * 1e9)
    root = context.Context()
    span = tracer.start_span(
        name,
        context=root,
        links=_build_links(sorted(set(traceparents))),
        start_time=start,
        attributes=attributes,
    )
    for phase, seconds in phases.items():
        child = tracer.start_span(
            f"{name} {phase}", context=trace.set_span_in_context(span, root), start_time=start
        )
        start += int(seconds * 1e9)
        child.end(start)
    span.end(end)


def _build_links(traceparents: Sequence[str]) -> list[Any]:
    from opentelemetry import context, trace  # noqa: PLC0415

    contexts = (
        trace.get_current_span(
            _propagator().extract({"traceparent": item}, context=context.Context())
        ).get_span_context()
        for item in traceparents
    )
    return [trace.Link(item) for item in contexts if item.is_valid]


@contextmanager
def _run_span(name: str, attributes: Mapping[str, Any], **options: Any) -> Any:
    from opentelemetry import trace  # noqa: PLC0415

    with tracer.start_as_current_span(
        name,
        attributes=attributes,
        # Exception text may contain personal data.
        record_exception=False,
        set_status_on_exception=False,
        **options,
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_status(trace.StatusCode.ERROR)
            span.set_attribute("error.type", type(error).__name__)
            raise


def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator()
