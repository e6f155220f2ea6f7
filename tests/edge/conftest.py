from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.stage import Stage, stage


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as made:
        yield made
