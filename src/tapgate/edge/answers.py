"""What goes back to the client: the one place that renders results, refusals and rates."""

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError
from tapgate.service.buckets import SECOND, Taken
from tapgate.service.http import FOR_BROWSERS, Answer, lines

_encoder = msgspec.json.Encoder()
_JSON: Final = "application/json"
_CACHE_CONTROL: Final = "Cache-Control"
_EMPTY_HEAD: Final = lines(FOR_BROWSERS)
_JSON_HEAD: Final = lines({"Content-Type": _JSON, _CACHE_CONTROL: "no-store", **FOR_BROWSERS})


def of_result(status: int, result: Any) -> Answer:
    if result is None:
        return Answer(status, _EMPTY_HEAD, b"")
    if type(result) is Reply:
        return _of_reply(status, result)
    return _json(status, _encoder.encode(result))


def of_refusal(error: ApiError) -> Answer:
    headers = error.headers
    if error.status == 401:
        headers = {"WWW-Authenticate": "Bearer", **headers}
    return _json(error.status, _encoder.encode(error.body()), headers)


def _of_reply(status: int, reply: Reply[Any]) -> Answer:
    body = reply.body if isinstance(reply.body, bytes) else _encoder.encode(reply.body)
    status, headers = reply.status or status, reply.headers
    if reply.content_type == _JSON and _CACHE_CONTROL not in headers:
        return _json(status, body, headers)
    own = {
        "Content-Type": reply.content_type,
        "Content-Length": str(len(body)),
        _CACHE_CONTROL: "no-store",
        **FOR_BROWSERS,
    }
    return Answer(status, lines(own | dict(headers)), body)


def _json(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    head = b"%bcontent-length: %d\r\n" % (_JSON_HEAD, len(body))
    return Answer(status, head + lines(headers) if headers else head, body)


def rate_headers(taken: Taken) -> bytes:
    """Render the rate limit of a caller and what is left of it."""
    full_at = time.time() + taken.full_in / SECOND
    return b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\nx-ratelimit-reset: %d\r\n" % (
        taken.limit,
        taken.remaining,
        -int(-full_at // 1),
    )
