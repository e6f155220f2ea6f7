from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.line import Server


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a small gateway behind the wire that a real one has."""
    running = Server(tmp_path)
    yield running.port
    running.stop()
