"""Fixtures: all journeys share a gateway and its database.

The books are verified after each journey. After the last, the leak detector searches for all
secrets that the journeys used.
"""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from databases import ScratchDatabases, build_database_url
from drivers.actors import Admin
from drivers.deployments import Deployment
from drivers.processes import open_client, run_gateway
from harness import Harness
from secret_leaks.detector import detect_leaks
from tapgate.ledger.verification.verify import verify

#: PostgreSQL accepts any password here.
_DATABASE_PASSWORD = "canary-of-the-database-4c1f"


@pytest.fixture(scope="package")
async def shared_deployment(
    postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[Deployment]:
    """Run a gateway with two workers on a fresh database."""
    name = await scratch_databases.acquire()
    database_url = build_database_url(name, postgres).replace("@/", f":{_DATABASE_PASSWORD}@/")
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as directory:
        folder = Path(directory)
        async with detect_leaks(database_url) as leak_detector:
            async with (
                run_gateway(folder, database_url, workers=2, fork_workers=False) as address,
                open_client(address) as client,
            ):
                deployment = Deployment(client, folder, database_url)
                leak_detector.add_settings_secrets(deployment.settings)
                leak_detector.add_secret("the database's password", _DATABASE_PASSWORD)
                yield deployment
                leak_detector.add_source("metrics", (await client.get("/metrics")).content)
                leak_detector.add_processes()
            log = (folder / "log").read_text()
            leak_detector.add_source("logs", log)
            leak_detector.add_folder(folder / "gateway")
        assert '"level":"error"' not in log
    await scratch_databases.release(name)


@pytest.fixture
async def deployment(shared_deployment: Deployment) -> AsyncIterator[Deployment]:
    """Yield the deployment, and verify the books after the journey."""
    yield shared_deployment
    await shared_deployment.require_balanced_books()


@pytest.fixture
async def ada(deployment: Deployment) -> Admin:
    return await deployment.log_in_admin()


@pytest.fixture
async def local_admin(harness: Harness) -> AsyncIterator[Admin]:
    """Yield an admin on a gateway in this process, and verify the books after the journey."""
    auth = await harness.create_admin()
    yield Admin(harness.client, auth.credential, {"id": auth.id})
    async with harness.database.connection() as connection:
        proof = await verify(connection)
    assert proof.is_valid, proof
