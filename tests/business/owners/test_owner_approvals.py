"""Keys that a merchant's users create wait for approval, and their makers read the result."""

from typing import Any

import pytest

from builders.approvals import APPROVALS_URL, V1, approve, build_rule, require_held, set_rules
from builders.payments import PosDriver
from cases import each
from drivers.console import ConsoleClients
from drivers.in_process import AppTransport
from harness import BearerAuth, Harness, HmacAuth, parse_error
from tapgate.server.gateway import create_app
from tapgate_client import ids


@pytest.fixture
async def pos(harness: Harness) -> PosDriver:
    return await PosDriver.create(harness, balance="5000")


@pytest.fixture
async def shop(harness: Harness, pos: PosDriver) -> str:
    return await harness.get_processor_id(pos.merchant_auth)


@pytest.fixture
async def manager(harness: Harness, shop: str) -> BearerAuth:
    return await harness.create_owner_user("M", shop)


async def read(harness: Harness, approval: dict[str, Any], auth: BearerAuth) -> dict[str, Any]:
    response = await harness.get(f"{APPROVALS_URL}/{approval['id']}", auth=auth)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def test_terminal_of_a_manager_waits_and_its_key_is_shown_once(
    harness: Harness, pos: PosDriver, shop: str, manager: BearerAuth
) -> None:
    """A terminal key refunds without the rule for refunds, so the key waits instead."""
    payment = (await pos.pay("300.00")).json()["transaction_id"]
    await set_rules(harness, build_rule("refunds"), build_rule("merchant_keys"))
    url, body = f"{V1}/processors/{shop}/terminals", {"name": "Till 7"}
    held = require_held(await harness.post(url, json=body, auth=manager))
    listed = (await harness.get(url, auth=manager)).json()["data"]
    assert "Till 7" not in [terminal["name"] for terminal in listed]
    assert (await approve(harness, held))["status"] == "executed"
    result = await read(harness, held, manager)
    assert (result["disclosed"], result["approvers"], result["decisions"]) == (True, [], [])
    key = HmacAuth(result["result"]["api_key_id"], result["result"]["hmac_secret"])
    refund = {"original_transaction_id": payment, "reason": "returned", "request_id": "a"}
    refunded = await harness.post(f"{V1}/pos/refund", json=refund, auth=key)
    assert refunded.status_code == 200, refunded.text
    again = await read(harness, held, manager)
    assert "disclosed" not in again
    assert result["result"]["hmac_secret"] not in str(again)


@each(
    "path, body", [("keys", {}), ("terminals/{terminal}/unblock", {}), ("terminals", {"name": "T"})]
)
async def test_rule_for_merchant_keys_applies_to_owner_users(
    harness: Harness, path: str, body: dict[str, Any]
) -> None:
    shop = await harness.get_processor_id(await harness.create_processor())
    manager = await harness.create_owner_user("M", shop)
    url = f"{V1}/processors/{shop}"
    added = await harness.post(f"{url}/terminals", json={"name": "Till 1"}, auth=manager)
    terminal = added.json()["terminal"]["id"]
    blocked = await harness.post(f"{url}/terminals/{terminal}/block", json={}, auth=manager)
    assert blocked.status_code == 200, blocked.text
    rules = build_rule("merchant_keys")
    await set_rules(harness, rules)
    url += f"/{path.format(terminal=terminal)}"
    held = require_held(await harness.post(url, json=body, auth=manager))
    assert (await approve(harness, held))["status"] == "executed"
    await harness.database.execute("DELETE FROM approval_rules")


async def test_users_see_only_their_own_requests(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    await set_rules(harness, build_rule("merchant_keys"))
    url = f"{V1}/processors/{shop}/keys"
    held = require_held(await harness.post(url, json={}, auth=manager))
    other = await harness.get_processor_id(await harness.create_processor())
    strangers = [
        await harness.create_owner_user("M", shop),
        await harness.create_owner_user("K", shop),
        await harness.create_owner_user("M", other),
    ]
    for auth in strangers:
        unknown = await harness.get(f"{APPROVALS_URL}/{ids.encode(ids.APPROVAL, 1)}", auth=auth)
        refused = await harness.get(f"{APPROVALS_URL}/{held['id']}", auth=auth)
        assert (refused.status_code, refused.json()) == (404, unknown.json())
        assert (await harness.get(APPROVALS_URL, auth=auth)).json()["data"] == []
    listed = (await harness.get(APPROVALS_URL, auth=manager)).json()["data"]
    assert [row["id"] for row in listed] == [held["id"]]
    for verb in ("approve", "reject", "cancel"):
        decided = await harness.post(
            f"{APPROVALS_URL}/{held['id']}/{verb}", json={"reason": "x"}, auth=manager
        )
        assert parse_error(decided) == (403, "FORBIDDEN"), verb


async def test_portal_leads_to_the_request_and_shows_the_key_once(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    await set_rules(harness, build_rule("merchant_keys"))
    transport = AppTransport(create_app(harness.services))
    client = ConsoleClients(harness, transport).create_signed_out()
    client.site = client.referer = "/portal"
    client.set_session(manager)
    response = await client.submit_action(
        "terminal.add", {"name": "Till 7", "approval_reason": "New till"}, id=shop
    )
    path = response.headers["HX-Redirect"]
    assert path.startswith("/portal/approvals/apr_")
    assert "Till 7" not in (await client.get("/portal/terminals")).text
    assert path in (await client.get("/portal/approvals")).text
    assert "New till" in (await client.get(path)).text
    await approve(harness, {"id": path.rpartition("/")[2]})
    assert "Secrets are shown only now" in (await client.get(path)).text
    assert "Secrets are shown only now" not in (await client.get(path)).text
