"""A service's worker process, started by the supervisor with a listening socket and a lifeline.

A service's module ends with `worker.run(main)`, and its `main` serves with `await serve(app)`:

    async def main() -> None:
        settings = load_settings(os.environ)
        async with open_services(settings, settings.database_url) as services:
            await serve(App(services))
"""

import asyncio
import contextlib
import functools
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

import structlog
import uvicorn

from tapgate.core import telemetry
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.telemetry import TelemetryError
from tapgate.http.connection import BoundedConnection
from tapgate.http.connection_limit import ConnectionLimit
from tapgate.http.http_messages import Application, Response, encode_response
from tapgate.http.overload import RETRY_AFTER_SECONDS
from tapgate.http.protocol import HttpProtocol
from tapgate.http.traced_app import TracedApp
from tapgate.runtime import event_loop, logs, open_files
from tapgate.runtime.handover import (
    DRAIN_TIMEOUT_SECONDS,
    LIFELINE_FD_VARIABLE,
    LISTEN_BACKLOG,
    LISTENER_FD_VARIABLE,
    READY_BYTE,
)
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.store import StoreError
from tapgate_client.errors import ApiError, Code

_MIN_ACCEPT_BATCH = 2
_MAX_ACCEPT_BATCH = 64
#: The event loop's shortest timer delay.
ACCEPT_PAUSE_SECONDS = 0.001

#: Received data that the kernel may buffer per connection. By default it buffers megabytes.
_RECEIVE_BUFFER_BYTES = 64 * 1024
#: Data that the kernel may buffer per connection before sending it. By default it copies megabytes
#: from a response that the client does not read.
_UNSENT_BYTES = 64 * 1024

_REJECTED_READ_BYTES = 64 * 1024
_REJECTION_LOG_SECONDS = 60.0

#: Net new objects that trigger a garbage collection. Reference counting frees completed requests'
#: objects. With the default of 700, collections would constantly scan live requests.
_GC_THRESHOLD = 50_000

_log = structlog.get_logger()


def run(main: Callable[[], Any], *, service_name: str = "tapgate") -> None:
    """Run a service's main coroutine. Exit with one line for errors that an operator can fix.

    `service_name` is the service's default name in traces.
    """
    open_files.raise_open_file_limit()
    try:
        telemetry.configure(service_name, os.environ)
        event_loop.run(main())
    except (SettingsError, StoreError, TelemetryError) as error:
        sys.exit(f"tapgate: {error}")
    except ApiError as error:
        sys.exit(f"tapgate: {error.message or error.error}")
    finally:
        logs.flush()


async def serve(
    app: Application,
    limit: ConnectionLimit | None = None,
    *,
    health: HealthMonitor | None = None,
    drain_seconds: float = 0,
) -> None:
    """Serve until a stop signal arrives or the supervisor dies.

    On a stop signal, `health` reports that the process is not ready. The process accepts
    connections for another `drain_seconds`, so that load balancers have time to react.
    """
    config = uvicorn.Config(
        cast(Any, app if telemetry.tracer is None else TracedApp(app)),
        http=HttpProtocol,
        interface="asgi3",  # no wrapper: the protocol calls `Application.respond`
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        # Limits depend on the peer address, which a header must not override.
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_TIMEOUT_SECONDS,
    )
    with (
        socket.socket(fileno=int(os.environ[LISTENER_FD_VARIABLE])) as listener,
        socket.socket(fileno=int(os.environ[LIFELINE_FD_VARIABLE])) as lifeline,
    ):
        server = WorkerServer(config, lifeline, limit, health, drain_seconds)
        await server.serve(sockets=[listener])


class WorkerServer(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        lifeline: socket.socket,
        limit: ConnectionLimit | None = None,
        health: HealthMonitor | None = None,
        drain_seconds: float = 0,
    ) -> None:
        super().__init__(config)
        self.lifeline = lifeline
        self._limit = limit
        self._health = health
        self._drain_seconds = drain_seconds
        self._is_draining = False
        if limit is not None:
            BoundedConnection.body_budget.is_trusted = limit.is_trusted
        self._rejected_count = 0  # rejected connections since the last log line
        self._next_log_at = 0.0
        self._accept_batch = _MIN_ACCEPT_BATCH
        self.connecting: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        freeze_startup_objects()
        try:
            self.lifeline.sendall(READY_BYTE)
        except OSError:  # the supervisor has died: exit without accepting connections
            self.should_exit = True
            return
        loop = asyncio.get_running_loop()
        for listener in sockets or []:
            listener.setblocking(False)
            _limit_kernel_buffers(listener)
            loop.add_reader(listener, self.accept, listener)
        self.servers = []
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in sockets or []:
            asyncio.get_running_loop().remove_reader(listener)
            self._accept_waiting(listener)
            listener.close()  # immediately: a connection that arrives in between is reset
        await asyncio.gather(*self.connecting)  # `super().shutdown` must see them
        await super().shutdown()

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection batch, then pause so that other workers can accept some.

        Without the pause, the fastest worker would accept most connections and keep them. The batch
        grows while more connections are waiting, and is reset when none is.
        """
        for accepted in range(self._accept_batch):
            try:
                connection, address = listener.accept()
            except BlockingIOError:
                self._accept_batch = _MIN_ACCEPT_BATCH
                if not accepted:
                    return  # another worker was faster
                break
            except OSError:  # too many open files, or the client has disconnected
                break
            self._admit_connection(connection, address[0])
        else:
            self._accept_batch = min(self._accept_batch + 1, _MAX_ACCEPT_BATCH)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume_accepting, listener)

    def _accept_waiting(self, listener: socket.socket) -> None:
        """Accept the connections that wait, because closing the socket would reset them."""
        with contextlib.suppress(OSError):
            for _ in range(LISTEN_BACKLOG):
                connection, address = listener.accept()
                self._admit_connection(connection, address[0])

    def _resume_accepting(self, listener: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listener, self.accept, listener)

    def _admit_connection(self, connection: socket.socket, address: str) -> None:
        on_lost = None
        if self._limit is not None:
            on_lost = self._limit.acquire(address)
            if on_lost is None:
                self._reject_connection(connection)
                return
        task = asyncio.create_task(self.connect(connection, on_lost))
        self.connecting.add(task)
        task.add_done_callback(self.connecting.discard)

    def _reject_connection(self, connection: socket.socket) -> None:
        """Send 503 without a transport or task, so that a connection flood stays cheap."""
        with connection, contextlib.suppress(OSError):
            connection.setblocking(False)
            connection.send(self._rejection_response)
            connection.shutdown(socket.SHUT_WR)
            # Closing with unread data would reset the connection and lose the response.
            connection.recv(_REJECTED_READ_BYTES)
        self._rejected_count += 1
        now = asyncio.get_running_loop().time()
        if now >= self._next_log_at:
            _log.warning("connections.rejected", count=self._rejected_count)
            self._rejected_count, self._next_log_at = 0, now + _REJECTION_LOG_SECONDS

    @functools.cached_property
    def _rejection_response(self) -> bytes:
        error = ApiError(
            Code.SERVICE_UNAVAILABLE,
            "Too many connections. Try again shortly.",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
        response: Response = self.config.loaded_app.render_error(error)
        return encode_response(response, self.server_state.default_headers, keep_alive=False)

    async def connect(
        self, connection: socket.socket, on_lost: Callable[[], None] | None = None
    ) -> None:
        protocol = HttpProtocol(self.config, self.server_state, self.lifespan.state)
        if on_lost is not None:
            protocol.on_lost = on_lost
        if self._is_draining:
            protocol.drain()
        try:
            connection.setblocking(False)
            # A response is a single write: Nagle's algorithm would only delay it.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:  # the client has already disconnected
            connection.close()
            if on_lost is not None:
                on_lost()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop serving on SIGINT, on SIGTERM or when the supervisor dies.

        Unlike uvicorn's implementation, this one does not raise the signal again, which would end
        the process before its cleanup.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._drain)
        loop.add_reader(self.lifeline, self._stop)
        try:
            yield
        finally:
            loop.remove_reader(self.lifeline)

    def _drain(self) -> None:
        """Fail the readiness check, serve for `drain_seconds`, and then stop.

        Responses ask clients to close their connections, so that they connect to other nodes.
        Further signals have no effect: a service manager may signal the supervisor and the workers.
        """
        if self._is_draining:
            return
        self._is_draining = True
        if self._health is not None:
            self._health.is_draining = True
        for connection in self.server_state.connections:
            cast(HttpProtocol, connection).drain()
        asyncio.get_running_loop().call_later(self._drain_seconds, self._stop)

    def _stop(self) -> None:
        self.should_exit = True
        asyncio.get_running_loop().remove_reader(self.lifeline)


def _limit_kernel_buffers(listener: socket.socket) -> None:
    """Limit the kernel's memory per connection. Accepted connections inherit these options."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)


def freeze_startup_objects() -> None:
    """Exclude startup objects from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
