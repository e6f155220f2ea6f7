"""Fake provider HTTP server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import uvicorn

from tapgate.http.protocol import HttpProtocol
from tapgate_sandbox.fake_provider.app import App
from tapgate_sandbox.fake_provider.provider import Provider


@asynccontextmanager
async def serve(provider: Provider, port: int = 0) -> AsyncIterator[str]:
    """Serve the provider and yield its URL; port 0 selects a free port."""
    config = uvicorn.Config(
        cast(Any, App(provider)),
        http=HttpProtocol,
        interface="asgi3",
        ws="none",
        lifespan="off",
        proxy_headers=False,  # adds a wrapper
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    with socket.create_server(("127.0.0.1", port)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task
            await provider.webhooks.close()
            await provider.sms.close()


class _Server(uvicorn.Server):
    """Uvicorn server that sets `ready` after startup and installs no signal handlers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
