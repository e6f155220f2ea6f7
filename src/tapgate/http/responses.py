"""Renders results and rate limit headers as HTTP responses."""

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.http.endpoint import JSON_MEDIA_TYPE, RelayedReply, Reply
from tapgate.http.http_messages import SECURITY_HEADERS, Response, encode_headers
from tapgate.http.rate_limits.token_buckets import MICROSECONDS_PER_SECOND, RateLimitResult

encode_json: Final = msgspec.json.Encoder().encode
_CACHE_CONTROL: Final = "Cache-Control"
_EMPTY_HEAD: Final = encode_headers(SECURITY_HEADERS)
_JSON_HEAD: Final = encode_headers(
    {"Content-Type": JSON_MEDIA_TYPE, _CACHE_CONTROL: "no-store", **SECURITY_HEADERS}
)


def render_result(status: int, result: Any) -> Response:
    if result is None:
        return Response(status, _EMPTY_HEAD, b"")
    if type(result) is Reply:
        return _render_reply(status, result)
    if type(result) is RelayedReply:
        head = _encode_head(result.content_type, result.size, result.headers)
        return Response(result.status, head, result.body, stream=result.stream)
    return render_json(status, encode_json(result))


def _render_reply(status: int, reply: Reply[Any]) -> Response:
    body = reply.body if isinstance(reply.body, bytes) else encode_json(reply.body)
    status, headers = reply.status or status, reply.headers
    if reply.content_type == JSON_MEDIA_TYPE and _CACHE_CONTROL not in headers:
        return render_json(status, body, headers)
    head = _encode_head(reply.content_type, len(body), headers)
    return Response(status, head, body, is_compressible=reply.is_compressible)


def _encode_head(content_type: str, size: int, headers: Mapping[str, str]) -> bytes:
    default_headers = {
        "Content-Type": content_type,
        "Content-Length": str(size),
        _CACHE_CONTROL: "no-store",
        **SECURITY_HEADERS,
    }
    return encode_headers(default_headers | dict(headers))


def render_json(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a body that is already encoded as JSON."""
    head = b"%bcontent-length: %d\r\n" % (_JSON_HEAD, len(body))
    return Response(status, head + encode_headers(headers) if headers else head, body)


def render_rate_limit_headers(rate_limit: RateLimitResult) -> bytes:
    """Render the `X-RateLimit-*` headers: limit, remaining tokens and reset time."""
    full_at = time.time() + rate_limit.reset_in_us / MICROSECONDS_PER_SECOND
    return b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n" % (
        rate_limit.limit,
        rate_limit.remaining,
        -int(-full_at // 1),
    )
