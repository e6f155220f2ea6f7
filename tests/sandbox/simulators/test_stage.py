"""Stage: access, the feed of the ledger, and the API calls of its acts.

The browser tests play its scenes.
"""

import json
import re
from pathlib import Path
from typing import Final

import pytest

import tapgate.sites.console
import tapgate_sandbox.simulators
from builders.payments import PosDriver, submit_transfer
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate_sandbox.demo import examples
from tapgate_sandbox.simulators.stage_calls import OPERATIONS, render_call

_ASSETS: Final = Path(tapgate_sandbox.simulators.__path__[0]) / "assets"
_CONSOLE_ASSETS: Final = Path(tapgate.sites.console.__path__[0]) / "assets"
PATHS = ("/stage", "/stage/feed")
PEOPLE = [
    "# Aminata Kamara: phone +23225000001, card DEMO-000001, PIN 4826",
    "# Mohamed Sesay: phone +23225000002, card DEMO-000002, PIN 7391",
]


async def test_stage_needs_a_system_admin_in_development(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    for role in "SCF":
        console = await console_clients.create_signed_in(role)
        for path in PATHS:
            assert (await console.get(path)).status_code == 403, (role, path)
    ada = await console_clients.create_signed_in("A")
    for path in PATHS:
        assert (await ada.get(path)).status_code == 200, path
    harness.services.settings = harness.services.settings.replace(environment="testing")
    for path in PATHS:
        assert (await ada.get(path)).status_code == 404, path


async def test_stage_shows_the_people_and_terminals_of_the_demo(
    ada: ConsoleClient, harness: Harness
) -> None:
    assert "The stage needs the demo" in await ada.get_page_text("/stage")
    await ada.post_form("/simulator/pos/terminals")
    examples.save_examples(harness.services.settings.data_dir, PEOPLE)
    page = await ada.get_page_text("/stage")
    for phone in ("+23225000001", "+23225000002"):
        assert f'data-phone="{phone}"' in page
    assert "/simulator/phone?phone=%2B23225000001" in page
    assert "data:image/svg+xml" in page
    opened = await ada.get_page_text("/simulator/phone?phone=%2B23225000009")
    assert "data-phone" not in opened  # an unknown number


async def test_feed_has_new_transactions_with_their_entries(
    ada: ConsoleClient, harness: Harness
) -> None:
    pos = await PosDriver.create(harness)
    first = (await pos.pay("35.00")).json()["transaction_id"]
    (shown,) = (await ada.get(f"/stage/feed?after={first[:-1]}")).json()["transactions"]
    assert (shown["id"], shown["amount"], shown["call"]) == (first, "35.00", None)
    sides = {side for entry in shown["entries"] for side in (entry["debit"], entry["credit"])}
    assert "Platform" in sides and len(sides) == 3
    second = (await pos.pay("1.00")).json()["transaction_id"]
    newer = (await ada.get(f"/stage/feed?after={first}")).json()["transactions"]
    assert [item["id"] for item in newer] == [second]
    assert (await ada.get(f"/stage/feed?after={second}")).json() == {
        "transactions": [],
        "alert": None,
    }
    assert (await ada.get(f"/stage/feed?after={second}&card={pos.card}")).json()["alert"] is None


async def test_feed_has_no_call_for_a_transfer_that_was_not_sent_in_the_chat(
    ada: ConsoleClient, harness: Harness
) -> None:
    people = [await harness.create_subscriber(balance="100") for _ in range(2)]
    await submit_transfer(harness, people[0]["id"], people[1]["id"], "5.00")
    assert (await ada.get("/stage/feed")).json()["transactions"][0]["call"] is None


async def test_call_is_code_in_every_language_with_the_pin_masked(ada: ConsoleClient) -> None:
    body = {"card_serial": "DEMO-000001", "amount": "5.00", "pin": "4826", "card_proof": None}
    token = await ada.get_csrf_token()
    call = await ada.client.post(
        "/stage/call",
        content=json.dumps({"path": "/api/v1/pos/payment", "body": body}),
        headers={"X-CSRF-Token": token},
    )
    shown = call.json()
    assert shown["samples"].keys() == {"sh", "python", "ts"}
    assert shown["page"] == "/guide/api/pos#take-a-payment-by-card"
    for code in shown["samples"].values():
        assert "DEMO-000001" in code and "••••" in code
        assert "4826" not in code and "card_proof" not in code


@each("content", [b"", b"{", b'{"path": "/api/v1/admin/users", "body": {}}', b"[" * 9000])
async def test_other_calls_are_refused(ada: ConsoleClient, content: bytes) -> None:
    headers = {"X-CSRF-Token": await ada.get_csrf_token()}
    response = await ada.client.post("/stage/call", content=content, headers=headers)
    assert response.status_code in (400, 404)
    assert (await ada.client.post("/stage/call", content=content)).status_code == 403


@pytest.mark.parametrize("path", sorted(OPERATIONS))
def test_every_act_of_the_stage_has_a_call(path: str) -> None:
    call = render_call(path, {"amount": "1.00"})
    assert call is not None
    assert path in call.samples["sh"]


def test_classes_of_the_whole_page_have_no_style_in_the_console() -> None:
    scripts = "".join(path.read_text() for path in _ASSETS.glob("*.js"))
    added = set(re.findall(r'document\.body\.classList\.\w+\("([\w-]+)"', scripts))
    assert added
    styles = "".join(path.read_text() for path in _CONSOLE_ASSETS.glob("*.css"))
    assert [name for name in added if re.search(rf"\.{name}\b", styles)] == []
