"""Browser test fixtures: one Chromium and one demo installation, a monitored tab per test."""

import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.async_api import Browser

from databases import ScratchDatabases, build_database_url
from drivers import chromium
from drivers.actors import Admin, require_success
from drivers.chromium import DESKTOP_VIEWPORT, Tab
from drivers.deployments import Deployment
from drivers.processes import ADMIN, free_port, open_client, start_tapgate
from tapgate_sandbox.demo.examples import load_examples

_NO_CHROMIUM = f"needs a Chromium: none of {', '.join(chromium.EXECUTABLE_NAMES)} is on the PATH"


class DemoCustomer(NamedTuple):
    """The subscriber used in the demo's examples."""

    id: str
    name: str
    phone: str
    card: str
    pin: str


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    if chromium.find_executable() is None:
        assert os.environ.get("TAPGATE_TEST_BROWSER") != "required", _NO_CHROMIUM
        pytest.skip(_NO_CHROMIUM)
    async with chromium.launch() as running:
        yield running


@pytest.fixture(scope="session")
async def deployment(
    browser: Browser, postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[Deployment]:
    """Yield a gateway with the small demo and a messenger, started by `tapgate up`."""
    name = await scratch_databases.acquire()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as temporary_folder:
        folder, url = Path(temporary_folder), build_database_url(name, postgres)
        async with (
            start_tapgate(
                folder,
                url,
                workers=1,
                demo="small",
                command="up",
                messenger_port=free_port(),
                variables={
                    "TAPGATE_BANK_ACCOUNT_COOLDOWN": "0",
                    # The demo's newest transfer may be older than a day.
                    "TAPGATE_RECALL_HOURS": "720",
                },
            ) as running,
            open_client(running.address) as client,
        ):
            while not (await running.stdout.readline()).startswith(b"The messenger listens"):
                pass
            platform = Deployment(client, folder, url)
            yield platform
            await platform.require_balanced_books()
        assert '"level":"error"' not in (folder / "log").read_text()
    await scratch_databases.release(name)


@pytest.fixture(scope="session")
def demo_customer(deployment: Deployment) -> DemoCustomer:
    text = "\n".join(load_examples(deployment.settings.data_dir))
    customer = re.search(r"# (.+): phone (\S+), card (\S+), PIN (\d{4})", text)
    subscriber_id = re.search(r"/subscribers/(sub_\w+)", text)
    assert customer is not None and subscriber_id is not None, text
    return DemoCustomer(subscriber_id[1], *customer.groups())


@pytest.fixture(scope="session")
async def ada(deployment: Deployment) -> Admin:
    """Log in as a system admin, who creates test data through the API."""
    return await deployment.log_in_admin()


@pytest.fixture
async def signed_out_tab(browser: Browser, deployment: Deployment) -> AsyncIterator[Tab]:
    """Yield a tab that is not signed in. The test fails if its page had problems."""
    async with chromium.open_tab(
        browser, str(deployment.client.base_url), DESKTOP_VIEWPORT
    ) as opened:
        yield opened


@pytest.fixture
async def tab(signed_out_tab: Tab) -> Tab:
    """Return a tab that is signed in as a system admin."""
    await signed_out_tab.sign_in_by_request(ADMIN["email"], ADMIN["password"])
    return signed_out_tab


@pytest.fixture
async def french(ada: Admin) -> AsyncIterator[None]:
    """Show the console in French to the admin of all tests, until the end of the test."""
    require_success(await ada.put("admin/me/preferences", language="fr"))
    yield
    require_success(await ada.put("admin/me/preferences", language=""))
