from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from builders.http_apps import EdgeApp, log_capture, run_edge_app
from drivers.connections import EdgeServer

__all__ = ["log_capture"]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[EdgeApp]:
    async with run_edge_app(tmp_path) as app:
        yield app


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EdgeServer]:
    edge_server = EdgeServer(tmp_path)
    yield edge_server
    edge_server.stop()


@pytest.fixture
def port(server: EdgeServer) -> int:
    return server.port
