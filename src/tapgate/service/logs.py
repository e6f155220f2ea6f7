"""Log lines: JSON, one per line, without bodies, headers, query values or secrets.

An unexpected exception is logged by its type and the places it passed: its text and the values in
its frames may be a person's data.
"""

import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from typing import Any, BinaryIO, Protocol, cast

import msgspec
import structlog

from tapgate.service.log_stream import LogStream

_SECRET_WORDS = frozenset(
    {"authorization", "key", "otp", "password", "pin", "secret", "signature", "token"}
)

_CALLBACK_PATTERN = re.compile(r"(callback) .*", re.DOTALL)
_STDERR = 2
_encoder = msgspec.json.Encoder()
_stream: "Stream | None" = None


class RequestLogLine(msgspec.Struct, tag_field="event", tag="request", kw_only=True):
    """One answered request. Its shape is fixed, so it is written without the logger's machinery,
    which would cost more than the rest of the edge."""

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


def configure(stream: Stream | None = None) -> None:
    """Send every log line of this process to a stream, by default standard error."""
    global _stream  # noqa: PLW0603 - like structlog's own configuration, one per process
    _stream = stream or LogStream(_STDERR)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _add_time,
            _remove_exception_text,
            _mask_secrets,
            structlog.processors.JSONRenderer(serializer=_serialize),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(cast(BinaryIO, _stream)),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_StructlogHandler()], level=logging.WARNING, force=True)


def install_exception_hooks() -> None:
    """What nobody caught is printed with its text, unless it is logged instead."""

    def failed(error: BaseException | None) -> None:
        structlog.get_logger().error("process.failed", exc_info=error)
        flush()

    sys.excepthook = lambda _, error, __: failed(error)
    sys.unraisablehook = lambda what: failed(what.exc_value)
    threading.excepthook = lambda what: failed(what.exc_value)


def write_request(line: RequestLogLine) -> None:
    if _stream is not None:
        _stream.write(_encoder.encode(line) + b"\n")


def flush() -> None:
    """Before a process ends."""
    if _stream is not None:
        _stream.flush()


def now() -> str:
    """RFC 3339 in UTC, cheaply: this is on the way of every request."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_format_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _format_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def describe_exception(error: BaseException) -> dict[str, Any]:
    """An exception as it may be logged: its types, from the first cause on, and its places."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.insert(0, cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return {
        "types": [f"{type(one).__module__}.{type(one).__qualname__}" for one in chain],
        "frames": [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for one in chain
            for frame in traceback.extract_tb(one.__traceback__)
        ],
    }


class _StructlogHandler(logging.Handler):
    """Libraries log through the standard library: their words without the values put into them."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        error = record.exc_info[1] if record.exc_info else None
        log.log(record.levelno, record.name, message=_get_message(record), exc_info=error)


def _get_message(record: logging.LogRecord) -> str:
    """The event loop puts values into its words itself: what failed below the first line, what a
    callback was called with behind its name."""
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
    if _is_secret_name(name):
        return "***"
    return _mask_mapping(value) if isinstance(value, Mapping) else value


def _is_secret_name(name: str) -> bool:
    """`pin`, `old_pin` and `hmac_secrets` do; `key_id` is public."""
    words = [word.removesuffix("s") for word in str(name).lower().replace("-", "_").split("_")]
    return words[-1] != "id" and not _SECRET_WORDS.isdisjoint(words)


def _serialize(event: Mapping[str, Any], **_: Any) -> bytes:
    return msgspec.json.encode(event, enc_hook=lambda value: type(value).__name__)
