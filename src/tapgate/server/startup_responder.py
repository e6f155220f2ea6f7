"""Responses on a service's port while none of its workers is ready.

While a node starts, migrates the database or waits for it, connections would otherwise be refused
or wait for a worker. Load balancers and clients get 503 instead. `/live` gets 200, because the
process runs and must not be restarted.
"""

import asyncio
import contextlib
import json
import socket
from typing import Final

_MAX_CONNECTIONS: Final = 64
_TIMEOUT_SECONDS: Final = 5.0
_MAX_HEAD_BYTES: Final = 16 * 1024
_HEAD_END: Final = b"\r\n\r\n"
_MESSAGE: Final = "The service is starting. Try again shortly."


class StartupResponder:
    """Accepts connections on a listening socket until a worker is ready, and while none is."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._ready_workers = 0
        self._is_open = False
        self._is_accepting = False
        self._responses: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin to respond. The socket must be listening."""
        self._listener.setblocking(False)
        self._is_open = True
        self._update()

    def close(self) -> None:
        """Stop responding, also if no worker is ready."""
        self._is_open = False
        self._update()

    def on_worker_ready(self) -> None:
        self._ready_workers += 1
        self._update()

    def on_worker_exit(self) -> None:
        self._ready_workers -= 1
        self._update()

    def _update(self) -> None:
        should_accept = self._is_open and not self._ready_workers
        if should_accept != self._is_accepting:
            self._is_accepting = should_accept
            loop = asyncio.get_running_loop()
            if should_accept:
                loop.add_reader(self._listener, self._accept)
            else:
                loop.remove_reader(self._listener)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # a worker was faster, or the client has disconnected
            return
        if len(self._responses) >= _MAX_CONNECTIONS:
            connection.close()
            return
        task = asyncio.create_task(_respond(connection))
        self._responses.add(task)
        task.add_done_callback(self._responses.discard)


async def _respond(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with connection, contextlib.suppress(OSError, TimeoutError):
        connection.setblocking(False)
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            head = b""
            while _HEAD_END not in head and len(head) < _MAX_HEAD_BYTES:
                data = await loop.sock_recv(connection, _MAX_HEAD_BYTES)
                if not data:
                    return
                head += data
            path = head.partition(b"\r\n")[0].split(b" ")[1:2]
            await loop.sock_sendall(connection, _build_response(is_live=path == [b"/live"]))
            connection.shutdown(socket.SHUT_WR)
            # Closing with unread data would reset the connection and lose the response.
            while await loop.sock_recv(connection, _MAX_HEAD_BYTES):
                pass


def _build_response(*, is_live: bool) -> bytes:
    """Return 200 for `/live`, or a 503 that is valid as an error and as a result of `/ready`."""
    body: dict[str, object] = {"live": True}
    if not is_live:
        body = {
            "error": "Service unavailable",
            "code": "SERVICE_UNAVAILABLE",
            "message": _MESSAGE,
            "ready": False,
            "reasons": [{"code": "starting", "message": _MESSAGE}],
        }
    data = json.dumps(body).encode()
    status = b"200 OK" if is_live else b"503 Service Unavailable\r\nRetry-After: 1"
    return (
        b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
        b"X-Content-Type-Options: nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
    ) % (status, len(data), data)
