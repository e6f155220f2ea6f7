"""docs/sdk.md: its examples run as printed against a gateway and print what it says."""

import asyncio
import contextlib
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from client.stage import Stage
from client.unsteady import Unsteady
from tapgate import signing
from tapgate.clock import system_clock
from tapgate.notifications.webhooks import model

DOCUMENT = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text()
ADDRESS = "http://127.0.0.1:8000"
BLOCK = re.compile(r"^```(python|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECRET = signing.new_standard_secret()

SCOPES = (
    "subscribers:read subscribers:write cards:read cards:write payments:read payments:write "
    "balance:read"
).split()


@pytest.fixture
async def address(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A gateway as the page assumes it: two new cards, an agent, a key for everybody."""
    admin = await stage.admin()
    await admin.cards.upload(b"Serial No.,MAC Address\nTAP-000001,\nTAP-000002,\n")
    key = await admin.admin.create_api_key(name="Shop", scopes=SCOPES)
    agent = await admin.agents.register(
        agent_type="super_agent", name="Ibrahim", phone_number="+23276123458", pin="6083"
    )
    await admin.agents.fund(agent.agent_id, amount="5000")
    processor = await admin.processors.create(
        name="Shop", phone_number="+23276123459", email="shop@example.com"
    )
    for name, value in {
        "API_KEY": key.key,
        "AGENT_ID": agent.agent_id,
        "AGENT_PIN": "6083",
        "POS_KEY_ID": processor.api_key_id,
        "POS_SECRET": processor.hmac_secret,
        "WEBHOOK_SECRET": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    async with Unsteady(stage.transport).listening() as server:
        yield server.url


async def test_the_examples_print_what_the_page_says(address: str) -> None:
    names: dict[str, Any] = {}
    try:
        await run_the_examples(address, names)
    finally:
        names["gateway"].close()
    assert answers_to_events(names["receive"]) == (204, 400)


async def run_the_examples(address: str, names: dict[str, Any]) -> None:
    printed = ""
    for language, text in BLOCK.findall(DOCUMENT):
        if language == "output":
            assert printed == text
            printed = ""
            continue
        assert printed == "", "an example prints, and the page does not say what"
        program = compile(text.replace(ADDRESS, address), "docs/sdk.md", "exec")
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            await asyncio.to_thread(exec, program, names)
        printed = heard.getvalue()


def answers_to_events(receive: Any) -> tuple[int, int]:
    body = model.body("card.linked", system_clock(), '{"id": "x"}')
    headers = model.headers(1, SECRET, body, system_clock())
    with contextlib.redirect_stdout(io.StringIO()):
        return receive(headers, body), receive(headers, body + b" ")


def test_the_page_shows_both_modes_and_every_credential() -> None:
    for name in "ApiKey Login AccessToken PosKey PartnerKey ServiceSecret AsyncGateway".split():
        assert name in DOCUMENT
