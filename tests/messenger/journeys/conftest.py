from collections.abc import AsyncIterator

import pytest

from drivers.messenger import MessengerDriver, ServicesDriver, build_flow_key
from harness import Harness
from secret_leaks.detector import LeakDetector
from secret_leaks.fixtures import leak_detector, settings

__all__ = ["leak_detector", "settings"]


@pytest.fixture
async def services_driver(
    leak_detector: LeakDetector,
    harness: Harness,
    database_url: str,
    capfd: pytest.CaptureFixture[str],
) -> AsyncIterator[ServicesDriver]:
    """Yield a driver for the services under leak detection.

    Teardown checks that no secret is in a table, statement, response or log line, and no PIN in
    a reply.
    """
    leak_detector.add_secret("the key of forms", build_flow_key()[0])
    services_driver = ServicesDriver(harness, database_url)
    yield services_driver
    out, err = capfd.readouterr()
    leak_detector.add_source("logs", out + err)
    texts, codes = await services_driver.list_sent_texts()
    leak_detector.add_pin_source("replies", texts)
    for code in codes:
        leak_detector.add_secret("a one-time code", code)


@pytest.fixture
async def messenger(services_driver: ServicesDriver) -> AsyncIterator[MessengerDriver]:
    async with services_driver.run_messenger() as messenger:
        yield messenger
