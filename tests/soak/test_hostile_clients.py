"""A short version of `make soak`: every hostile client for a moment, against both services."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from databases import ScratchDatabases, build_database_url
from soak.run import Services, measure, run_services
from soak.shapes import SHAPES

_SECONDS = 0.5
#: Much longer than in `make soak`: other tests use the same processors.
_MAX_P99_SECONDS = 10.0


@pytest.fixture(scope="module")
async def services(postgres: str, scratch_databases: ScratchDatabases) -> AsyncIterator[Services]:
    name = await scratch_databases.acquire()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as folder:
        async with run_services(Path(folder), build_database_url(name, postgres)) as services:
            yield services
    await scratch_databases.release(name)


@pytest.mark.parametrize(
    ("name", "service"),
    [(name, service) for name, shape in SHAPES.items() for service in shape.services],
)
async def test_memory_stays_flat_and_others_are_served(
    services: Services, name: str, service: str
) -> None:
    measurement = await measure(services, SHAPES[name], service, _SECONDS)
    assert measurement.is_flat, str(measurement)
    assert measurement.failures == 0, str(measurement)
    assert measurement.p99_seconds < _MAX_P99_SECONDS, str(measurement)
