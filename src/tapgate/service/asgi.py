"""The few words of ASGI that are needed: taking a request's body in, sending an answer out."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from tapgate.errors import ApiError, Code

Header = tuple[bytes, bytes]
Message = dict[str, Any]
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DISCONNECT: Message = {"type": "http.disconnect"}


class Answer(NamedTuple):
    status: int
    headers: list[Header]
    body: bytes


class Disconnected(Exception):  # noqa: N818 - an event, not a failure
    """The client went away before its request was complete."""


def request_path(scope: Scope) -> str:
    """The path as called: still encoded, which is also what a client has signed."""
    raw: bytes = scope["raw_path"]
    return raw.decode("latin-1")


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    declared = headers.get(b"content-length")
    if declared is None and b"transfer-encoding" not in headers:
        return b""
    if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
        raise ApiError(Code.PAYLOAD_TOO_LARGE)
    parts: list[bytes] = []
    size = 0
    while True:
        part, more = await _next_part(receive)
        size += len(part)
        if size > limit:
            raise ApiError(Code.PAYLOAD_TOO_LARGE)
        parts.append(part)
        if not more:
            return part if len(parts) == 1 else b"".join(parts)


async def send_answer(send: Send, answer: Answer, *, only_head: bool = False) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": b"" if only_head else answer.body})


async def _next_part(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    return message.get("body", b""), message.get("more_body", False)


async def live_and_die(receive: Receive, send: Send) -> None:
    """The lifespan protocol: there is nothing to do, the gateway starts and stops the services."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
