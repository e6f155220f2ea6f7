"""What goes back to the client: the one place that renders results, refusals and rates."""

import time
from typing import Any

import msgspec

from tapgate.edge.buckets import SECOND, Rate, Taken
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError
from tapgate.service.asgi import Answer, Header

_encoder = msgspec.json.Encoder()
_JSON = (b"content-type", b"application/json")
_NOT_STORED = (b"cache-control", b"no-store")


def of_result(status: int, result: Any) -> Answer:
    if result is None:
        return Answer(status, [], b"")
    if type(result) is Reply:
        return _of_reply(status, result)
    body = _encoder.encode(result)
    return Answer(status, [_JSON, _length(body), _NOT_STORED], body)


def of_refusal(error: ApiError) -> Answer:
    body = _encoder.encode(error.body())
    headers = [_JSON, _length(body), _NOT_STORED]
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    headers += [_header(name, value) for name, value in error.headers.items()]
    return Answer(error.status, headers, body)


def _of_reply(status: int, reply: Reply[Any]) -> Answer:
    body = reply.body if isinstance(reply.body, bytes) else _encoder.encode(reply.body)
    headers = [_header("content-type", reply.content_type), _length(body)]
    headers += [_header(name, value) for name, value in reply.headers.items()]
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append(_NOT_STORED)
    return Answer(reply.status or status, headers, body)


def _length(body: bytes) -> Header:
    return b"content-length", b"%d" % len(body)


def _header(name: str, value: str) -> Header:
    return name.lower().encode("latin-1"), value.encode("latin-1")


class RateHeaders:
    """How a caller learns what is left of its rate."""

    def __init__(self, rate: Rate) -> None:
        self._limit = (b"x-ratelimit-limit", b"%d" % rate.per_second)

    def of(self, taken: Taken) -> tuple[Header, Header, Header]:
        full_at = time.time() + taken.full_in / SECOND
        return (
            self._limit,
            (b"x-ratelimit-remaining", b"%d" % taken.remaining),
            (b"x-ratelimit-reset", b"%d" % -int(-full_at // 1)),
        )
