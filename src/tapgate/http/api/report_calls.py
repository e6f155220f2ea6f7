"""Requests that a gateway worker sends to a report worker on its node.

A report worker would delay payments if it shared an event loop, or the interpreter's lock, with
them. The gateway worker therefore checks the caller, its rate limit and the request, and sends the
call over a Unix socket. There is one connection per call: closing it cancels the call.

A call waits in the socket's queue until a report worker greets, for example while one restarts.
Calls do not run in the gateway worker instead: a report that uses up one process's memory must not
end up in the next.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from tapgate.auth.principals import Principal
from tapgate.http.endpoint import BaseRequestContext, RelayedReply, Reply
from tapgate.runtime import local_rpc
from tapgate.runtime.client_addresses import get_address_key
from tapgate.runtime.fair_limit import FairLimit
from tapgate.runtime.local_rpc import Failure
from tapgate_client.errors import unavailable

#: Part size for relayed bodies. Streams buffer up to twice as much.
CHUNK_BYTES: Final = 64 * 1024
_UNAVAILABLE: Final = "Reports are unavailable. Try again shortly."


#: A principal without its networks, which the gateway worker has checked.
_Caller: Final = msgspec.defstruct(
    "_Caller",
    [
        (field.name, field.type)
        for field in msgspec.structs.fields(Principal)
        if field.name != "allowed_ips"
    ],
)


class ReportCall(msgspec.Struct, kw_only=True, array_like=True, frozen=True):
    """An authorized caller's request, without its credentials."""

    method: str
    path: str
    query: bytes
    content_type: bytes
    body: bytes
    ip: str
    request_id: str
    caller: dict[str, Any] | None
    accept: bytes

    @classmethod
    def build(cls, request: BaseRequestContext, caller: Principal | None) -> "ReportCall":
        return cls(
            method=request.method,
            path=request.path,
            query=request.query,
            content_type=request.headers.get(b"content-type", b""),
            body=request.body,
            ip=request.ip,
            request_id=request.request_id,
            caller=None
            if caller is None
            else {name: getattr(caller, name) for name in _Caller.__struct_fields__},
            accept=request.headers.get(b"accept", b""),
        )

    @property
    def principal(self) -> Principal | None:
        if self.caller is None:
            return None
        return Principal(**msgspec.structs.asdict(msgspec.convert(self.caller, _Caller)))


class ReportResult(msgspec.Struct, kw_only=True, array_like=True, frozen=True, tag=True):
    """Response head. `size` bytes of body follow."""

    status: int
    headers: dict[str, str]
    content_type: str
    size: int
    is_file: bool


_decoder: Final = msgspec.msgpack.Decoder(ReportResult | Failure)


class _ReportBody:
    """Body that is read from a report worker as fast as the client reads it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._remaining = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._remaining:
            chunk = await self._reader.read(min(CHUNK_BYTES, self._remaining))
            if not chunk:
                raise ConnectionResetError("the report worker exited during a response")
            self._remaining -= len(chunk)
            yield chunk

    def close(self) -> None:
        self._writer.close()


class ReportClient:
    """A gateway worker's connections to its node's report workers."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        # Bounds this process's requests that wait for a report worker.
        self._limit = FairLimit(
            "Too many reports are in progress. Try again shortly.",
            slots=16,
            slots_per_group=8,
            queue=32,
            queue_per_group=8,
            timeout=10.0,
        )

    async def call(self, request: BaseRequestContext, caller: Principal | None) -> RelayedReply:
        """Run a request in a report worker. If this call is canceled, so is the request."""
        group = get_address_key(request.ip) if caller is None else caller.idempotency_scope
        async with self._limit.slot(group), contextlib.AsyncExitStack() as unless_streaming:
            streams = await local_rpc.connect(self._socket_path)
            if streams is None:
                raise unavailable(_UNAVAILABLE)
            reader, writer = streams
            unless_streaming.callback(writer.close)
            try:
                writer.write(local_rpc.encode_frame(ReportCall.build(request, caller)))
                await writer.drain()
                head = await local_rpc.read_frame(reader)
                if head is None:
                    raise unavailable(_UNAVAILABLE)
                result = _decoder.decode(head)
                if isinstance(result, Failure):
                    raise result.to_error()
                reply = RelayedReply(**msgspec.structs.asdict(result))
                if result.size <= CHUNK_BYTES:
                    reply.body = await reader.readexactly(result.size)
                else:
                    reply.stream = _ReportBody(reader, writer, result.size)
                    unless_streaming.pop_all()
            except (OSError, asyncio.IncompleteReadError):  # the report worker exited
                raise unavailable(_UNAVAILABLE) from None
            return reply


async def load_result(reply: RelayedReply) -> Any:
    """Return a call's result: a file as a `Reply`, or a record as built-in types."""
    body = reply.body
    if reply.stream is not None:
        try:
            body = b"".join([chunk async for chunk in reply.stream])
        finally:
            reply.stream.close()
    if not reply.is_file:
        return msgspec.json.decode(body)
    return Reply(body, status=reply.status, headers=reply.headers, content_type=reply.content_type)
