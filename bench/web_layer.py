"""Edge benchmark: CPU time per request to an endpoint that does nothing.

Authentication is faked. The time is measured with and without the HTTP server.

    python bench/web_layer.py
"""

import asyncio
import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Awaitable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import uvicorn
import uvloop

from tapgate.auth.principals import Principal
from tapgate.business.staff.request_logs.recorder import RequestLog
from tapgate.core import settings
from tapgate.core.id_generator import IdGenerator
from tapgate.http.api.access import Access
from tapgate.http.api.app import App
from tapgate.http.api.latency_samples import LatencySamples
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate.http.endpoint import Endpoints
from tapgate.http.protocol import HttpProtocol
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.runtime import logs
from tapgate.runtime.node_files import get_shared_folder
from tapgate_client.clock import system_clock
from tapgate_client.schemas.fields import Amount, CardSerial, IdempotencyKey, Metadata, Pin, Text

APP_REQUESTS = 100_000
SERVER_REQUESTS = 40_000
CONNECTIONS = 16

BODY = (
    b'{"request_id":"7d4f1c1e-3d0b-4f5e-9a53-0f6f3a1c2b4d","card_serial":"TAP-000001",'
    b'"amount":"25.00","pin":"4071","merchant_name":"Kamara Stores"}'
)


class Payment(msgspec.Struct):
    request_id: IdempotencyKey
    card_serial: CardSerial
    amount: Amount
    pin: Pin | None = None
    merchant_name: Text | None = None
    metadata: Metadata | None = None


class Receipt(msgspec.Struct):
    success: bool
    message: str
    transaction_id: str
    status: str
    amount: str


endpoints = Endpoints("Bench")


@endpoints.post("/api/v1/pos/payment", access=Access(hmac="pos"))
async def payment(request: RequestContext, body: Payment) -> Receipt:
    """Do nothing."""
    return Receipt(True, "Payment completed", "txn_0000000000001", "completed", body.amount)


class FakeAuthenticator:
    principal = Principal(kind="processor", id="key_0000000000001", name="Till", processor_id=1)

    async def authenticate(self, *_: object) -> Principal | None:
        return self.principal


def create_app(folder: Path) -> App:
    environ = {"TAPGATE_RATE_LIMIT": "1000000", "TAPGATE_RATE_BURST": "1000000"}
    app_settings = settings.load_settings({"TAPGATE_DATA_DIR": str(folder), **environ})
    logs.configure(open(os.devnull, "ab", buffering=0))  # noqa: PTH123, SIM115 - stays open
    unused: Any = None
    services = Services(
        settings=app_settings,
        database=unused,
        queue_database=unused,
        rejection_log=unused,
        request_log=RequestLog(app_settings, unused, IdGenerator(2), lambda _count: None),
        run_guarded=unused,
        signals=unused,
        vault=unused,
        pin_verifier=unused,
        book_peers=unused,
        proof_verifier=unused,
        authenticator=cast(Any, FakeAuthenticator()),
        ledger=unused,
        health=unused,
        nodes=unused,
        clock=system_clock,
        new_id=IdGenerator(1),
        throttle=Throttle(app_settings),
        latency_samples=LatencySamples(get_shared_folder(app_settings.data_dir)),
    )
    return App(services, endpoints)


T = TypeVar("T")


class CompleteRequest:
    """Request whose body has been received completely."""

    method = "POST"
    path = "/api/v1/pos/payment"
    query = b""
    peer = "127.0.0.1"
    is_complete = True
    headers = {  # noqa: RUF012 - shared and never modified
        b"host": b"127.0.0.1:8000",
        b"content-type": b"application/json",
        b"content-length": b"%d" % len(BODY),
        b"x-api-key-id": b"key_0000000000001",
        b"x-timestamp": b"2026-01-31T12:00:00Z",
        b"x-signature": b"0" * 64,
    }

    async def read_body(self, limit: int) -> bytes:
        return BODY

    async def cancel_on_disconnect(self, work: Awaitable[T]) -> T:
        return await work


async def measure_app(app: App) -> float:
    """Return the CPU seconds per request in the application, without the HTTP server."""
    request = CompleteRequest()
    started = time.process_time()
    for _ in range(APP_REQUESTS):
        response = await app.respond(request)
        if response.status != 200:
            raise RuntimeError(response)
    return (time.process_time() - started) / APP_REQUESTS


def run_server(folder: Path, pipe: Connection) -> None:
    """Run a server that reports its port and, at the end, the CPU time that the load needed."""

    async def run() -> None:
        config = uvicorn.Config(
            cast(Any, create_app(folder)),
            access_log=False,
            log_config=None,
            lifespan="off",
            http=HttpProtocol,
            interface="asgi3",
            ws="none",
            server_header=False,
            proxy_headers=False,
        )
        server = uvicorn.Server(config)
        listener = socket.create_server(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        pipe.send(listener.getsockname()[1])
        await asyncio.to_thread(pipe.recv)
        started = time.process_time()
        pipe.send(None)
        await asyncio.to_thread(pipe.recv)
        pipe.send(time.process_time() - started)
        server.should_exit = True
        await task

    uvloop.run(run())


async def send_load(port: int, requests: int) -> None:
    request = (
        b"POST /api/v1/pos/payment HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\n"
        b"X-API-Key-ID: key_0000000000001\r\nX-Timestamp: 2026-01-31T12:00:00Z\r\n"
        b"X-Signature: " + b"0" * 64 + b"\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
    )

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(requests // CONNECTIONS):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head)
            length = int(head.partition(b"content-length: ")[2].split(b"\r")[0])
            await reader.readexactly(length)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


def measure_server(folder: Path) -> float:
    """Return the CPU seconds per request in a uvicorn process.

    The process serves keep-alive connections over loopback.
    """
    context = get_context("spawn")
    pipe, server_pipe = context.Pipe()
    process = context.Process(target=run_server, args=(folder, server_pipe), daemon=True)
    process.start()
    port = pipe.recv()
    uvloop.run(send_load(port, SERVER_REQUESTS // 10))
    pipe.send("begin")
    pipe.recv()
    uvloop.run(send_load(port, SERVER_REQUESTS))
    pipe.send("end")
    seconds: float = pipe.recv()
    process.join()
    return seconds / SERVER_REQUESTS


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(
            f"application alone: {uvloop.run(measure_app(create_app(folder))) * 1e6:6.1f}"
            " us/request"
        )
        print(f"behind uvicorn:    {measure_server(folder) * 1e6:6.1f} us/request")


if __name__ == "__main__":
    main()
