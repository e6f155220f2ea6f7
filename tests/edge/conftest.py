from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edge.line import Server
from edge.log_lines import lines
from edge.stage import Stage, stage

__all__ = ["lines"]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as made:
        yield made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def port(server: Server) -> int:
    return server.port
