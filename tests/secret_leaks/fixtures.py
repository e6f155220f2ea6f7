"""Fixtures for single-process tests, which fail at the end if a secret has leaked."""

from collections.abc import AsyncIterator

import pytest

from secret_leaks.detector import LeakDetector, detect_leaks
from tapgate.core.settings import Settings


@pytest.fixture
async def leak_detector(database_url: str) -> AsyncIterator[LeakDetector]:
    async with detect_leaks(database_url) as detector:
        yield detector


@pytest.fixture
def settings(leak_detector: LeakDetector, settings: Settings) -> Settings:
    """Register the installation's secrets before the first connection is opened."""
    leak_detector.add_settings_secrets(settings)
    return settings
