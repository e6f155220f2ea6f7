"""ASGI adapter, for running on any ASGI server and for tests without a socket."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tapgate.errors import ApiError, Code
from tapgate.http.messages import ClientDisconnectedError, Request, Response, add_header

Message = dict[str, Any]
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiApp:
    @abstractmethod
    async def respond(self, request: Request) -> Response:
        """Return the response. Raise ClientDisconnectedError if the body stays incomplete."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle_http(AsgiRequest(scope, receive), send)
        elif scope["type"] == "lifespan":
            await _handle_lifespan(receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _handle_http(self, request: "AsgiRequest", send: Send) -> None:
        try:
            response = await self.respond(request)
        except ClientDisconnectedError:
            return
        lines = response.head.split(b"\r\n")[:-1]
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        body = b"" if request.method == "HEAD" else response.body
        await send({"type": "http.response.body", "body": body})


class AsgiRequest:
    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        peer = scope.get("client")
        self.method: str = scope["method"]
        self.path: str = scope["raw_path"].decode("latin-1")
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            add_header(self.headers, name, value)
        self.peer: str = peer[0] if peer else "local"
        self.is_complete = not {b"content-length", b"transfer-encoding"} & self.headers.keys()

    async def read_body(self, limit: int) -> bytes:
        body = bytearray()
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnectedError
            body += message.get("body", b"")
            if len(body) > limit:
                raise ApiError(Code.PAYLOAD_TOO_LARGE)
            more = message.get("more_body", False)
        return bytes(body)


async def _handle_lifespan(receive: Receive, send: Send) -> None:
    """Acknowledge lifespan messages. The service manages its own startup and shutdown."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
