"""Structured logs without bodies, headers, query values or secrets: JSON lines, or text.

An unexpected exception is logged with its types and stack frames only. Its text and the values in
its frames may contain personal data.
"""

import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, BinaryIO, Final, Protocol, cast

import msgspec
import structlog

from tapgate.core.secret_names import is_secret_name
from tapgate.runtime import log_text
from tapgate.runtime.log_stream import LogStream

#: Log name suffix for a site's scripts, styles and fonts.
ASSETS_SUFFIX: Final = "/assets"

#: Load balancers request these every second. Successful checks would hide all other lines.
_HEALTH_CHECKS: Final = frozenset({"/live", "/ready"})

_CALLBACK_PATTERN = re.compile(r"(callback) .*", re.DOTALL)
_STDERR = 2
_encoder = msgspec.json.Encoder()
_stream: "Stream | None" = None
_is_text = False


class RequestLogLine(msgspec.Struct, tag_field="event", tag="request", kw_only=True):
    """Log line for one request.

    It has fixed fields and bypasses structlog, which would cost more than the rest of the pipeline.
    """

    time: str
    level: str
    request_id: str
    method: str
    endpoint: str
    status: int
    ms: float
    principal: str | None
    ip: str


class Stream(Protocol):
    def write(self, line: bytes, /) -> object: ...
    def flush(self) -> object: ...


def configure(stream: Stream | None = None, *, log_format: str = "json") -> None:
    """Send this process's log lines to a stream. Default: JSON to standard error."""
    global _stream, _is_text  # noqa: PLW0603 - like structlog's own configuration, one per process
    _stream = stream or LogStream(_STDERR)
    _is_text = log_text.is_text(log_format)
    render = structlog.processors.JSONRenderer(serializer=_serialize)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _add_time,
            _remove_exception_text,
            _mask_secrets,
            _render_text if _is_text else render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(cast(BinaryIO, _stream)),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_StructlogHandler()], level=logging.WARNING, force=True)


def install_exception_hooks() -> None:
    """Log uncaught exceptions without their text, which Python would print by default."""

    def log_failure(error: BaseException | None) -> None:
        structlog.get_logger().error("process.failed", exc_info=error)
        flush()

    sys.excepthook = lambda _, error, __: log_failure(error)
    sys.unraisablehook = lambda unraisable: log_failure(unraisable.exc_value)
    threading.excepthook = lambda args: log_failure(args.exc_value)


def write_request(line: RequestLogLine) -> None:
    if _stream is None or (line.endpoint in _HEALTH_CHECKS and line.status == HTTPStatus.OK):
        return
    if _is_text:
        if line.endpoint.endswith(ASSETS_SUFFIX) and line.status < HTTPStatus.BAD_REQUEST:
            return
        _stream.write(
            log_text.render_request(
                line.method, line.endpoint, line.status, line.ms, line.request_id
            )
        )
    else:
        _stream.write(_encoder.encode(line) + b"\n")


def flush() -> None:
    """Write buffered lines. Call before the process exits."""
    if _stream is not None:
        _stream.flush()


def now() -> str:
    """Return the current time in RFC 3339, UTC. Optimized because every request calls it."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_format_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _format_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def describe_exception(error: BaseException) -> dict[str, Any]:
    """Return types and stack frames for an exception and its causes, root cause first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.insert(0, cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return {
        "types": [f"{type(item).__module__}.{type(item).__qualname__}" for item in chain],
        "frames": [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for item in chain
            for frame in traceback.extract_tb(item.__traceback__)
        ],
    }


class _StructlogHandler(logging.Handler):
    """Handler that forwards standard library log records without their message arguments."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        error = record.exc_info[1] if record.exc_info else None
        log.log(record.levelno, record.name, message=_get_message(record), exc_info=error)


def _get_message(record: logging.LogRecord) -> str:
    """Return a record's unformatted message.

    asyncio formats values into its messages: failure context after the first line, and a callback
    with its arguments after the word "callback". Both are removed.
    """
    if record.name == "asyncio":
        return _CALLBACK_PATTERN.sub(r"\1", str(record.msg).partition("\n")[0])
    return str(record.msg)


def _add_time(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["time"] = now()
    return event


def _remove_exception_text(
    _: Any, __: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["failure"] = describe_exception(error)
    return event


def _mask_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    return _mask_mapping(event)


def _mask_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _mask_value(name, value) for name, value in values.items()}


def _mask_value(name: str, value: Any) -> Any:
    if is_secret_name(str(name)):
        return "***"
    return _mask_mapping(value) if isinstance(value, Mapping) else value


def _render_text(_: Any, __: str, event: Mapping[str, Any]) -> bytes:
    return log_text.render_event(event)


def _serialize(event: Mapping[str, Any], **_: Any) -> bytes:
    return msgspec.json.encode(event, enc_hook=lambda value: type(value).__name__)
