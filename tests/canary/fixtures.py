"""For tests within one process: no secret is left anywhere in the end."""

from collections.abc import AsyncIterator

import pytest

from canary.watch import LeakDetector, detect_leaks
from tapgate.settings import Settings


@pytest.fixture
async def watch(database_url: str) -> AsyncIterator[LeakDetector]:
    async with detect_leaks(database_url) as watch:
        yield watch


@pytest.fixture
def settings(watch: LeakDetector, settings: Settings) -> Settings:
    """Nobody connects before the watch has begun."""
    watch.add_settings_secrets(settings)
    return settings
