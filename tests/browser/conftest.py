"""What browser tests share: one Chromium, one running Tapgate with the demo, a watched tab each."""

import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.async_api import Browser, expect

from browser import chromium
from browser.chromium import DESKTOP, Tab
from conftest import Copies, url_of
from gateway.running import ADMIN, free_port, started
from journeys.lines import connected
from journeys.platform import Platform
from journeys.staff import Admin
from tapgate.demo.examples import load_examples

#: What is awaited comes at once on an idle machine; this one may be busy with other tests.
expect.set_options(timeout=30_000)

_MISSING = f"needs a Chromium: none of {', '.join(chromium.NAMES)} is on the PATH"


class Hero(NamedTuple):
    """Of whom the demo's examples are told."""

    id: str
    name: str
    phone: str
    card: str
    pin: str


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    if chromium.executable() is None:
        assert os.environ.get("TAPGATE_TEST_BROWSER") != "required", _MISSING
        pytest.skip(_MISSING)
    async with chromium.started() as running:
        yield running


@pytest.fixture(scope="session")
async def platform(browser: Browser, postgres: str, copies: Copies) -> AsyncIterator[Platform]:
    """A gateway with the small demo and a messenger, as `make run` starts them."""
    name = await copies.make()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as place:
        folder, url = Path(place), url_of(name, postgres)
        async with (
            started(
                folder, url, workers=1, demo="small", command="up", messenger_port=free_port()
            ) as running,
            connected(running.address) as client,
        ):
            while not (await running.says.readline()).startswith(b"The messenger listens"):
                pass
            platform = Platform(client, folder, url)
            yield platform
            await platform.require_sound_books()
        assert '"level":"error"' not in (folder / "log").read_text()
    await copies.done_with(name)


@pytest.fixture(scope="session")
def hero(platform: Platform) -> Hero:
    text = "\n".join(load_examples(platform.settings.data_dir))
    said = re.search(r"# (.+): phone (\S+), card (\S+), PIN (\d{4})", text)
    public_id = re.search(r"/subscribers/(sub_\w+)", text)
    assert said is not None and public_id is not None, text
    return Hero(public_id[1], *said.groups())


@pytest.fixture(scope="session")
async def ada(platform: Platform) -> Admin:
    """A system_admin over the API, to bring about what a test looks at."""
    return await platform.ada()


@pytest.fixture
async def stranger(browser: Browser, platform: Platform) -> AsyncIterator[Tab]:
    """A tab in which nobody is signed in. In the end nothing may have gone wrong in it."""
    async with chromium.tab(browser, str(platform.client.base_url), DESKTOP) as opened:
        yield opened


@pytest.fixture
async def tab(stranger: Tab) -> Tab:
    """A system_admin's."""
    await stranger.is_signed_in(ADMIN["email"], ADMIN["password"])
    return stranger
