"""Steps of setting up a new installation: done once the records exist, until dismissed."""

from typing import Any

from builders.approvals import build_rule, set_rules
from builders.participants import create_agent
from builders.payments import PosDriver
from harness import Harness, parse_error
from tapgate.http.api.services import Services
from tapgate.runtime.store.installation import start_onboarding
from tapgate.server.gateway_installation import prepare_installation
from tapgate_client import ids

URL = "/api/v1/admin/onboarding"


async def get_onboarding(harness: Harness) -> Any:
    response = await harness.get(URL, auth=await harness.create_admin())
    assert response.status_code == 200, response.text
    return response.json()


async def list_done(harness: Harness) -> set[str]:
    return {step["name"] for step in (await get_onboarding(harness))["steps"] if step["done"]}


async def test_new_installation_without_demo_data_has_open_steps(
    harness: Harness, services: Services
) -> None:
    url = str(services.settings.database_url)
    async for _ in prepare_installation(services.settings, url):
        pass
    onboarding = await get_onboarding(harness)
    assert onboarding["open"] and len(onboarding["steps"]) == 9
    admin = await harness.create_admin()
    dismissed = await harness.post(f"{URL}/dismiss", json={}, auth=admin)
    closed = {"open": False, "steps": [], "agent_id": None, "processor_id": None}
    assert dismissed.json() == closed
    assert await get_onboarding(harness) == closed
    async for _ in prepare_installation(services.settings, url):
        pass
    assert not (await get_onboarding(harness))["open"]


async def test_installation_with_data_has_no_steps(harness: Harness) -> None:
    assert not (await get_onboarding(harness))["open"]


async def test_steps_are_done_when_their_records_exist(
    harness: Harness, services: Services
) -> None:
    await start_onboarding(services.database)
    assert await list_done(harness) == set()  # the only admin is the caller
    agent = await create_agent(harness, balance="0")
    onboarding = await get_onboarding(harness)
    assert onboarding["agent_id"] == agent["id"]
    assert await list_done(harness) == {"agent", "second_admin"}
    body = {"amount": "100.00", "request_id": "float-1"}
    funded = await harness.post(
        f"/api/v1/agents/{agent['id']}/fund", json=body, auth=await harness.create_admin()
    )
    assert funded.status_code == 200, funded.text
    pos = await PosDriver.create(harness)
    assert await list_done(harness) == {"agent", "second_admin", "float", "customer", "cards"}
    assert (await pos.pay("10000")).status_code == 403
    assert "payment" not in await list_done(harness)
    assert (await pos.pay("10")).status_code == 200
    hook = {"url": "http://127.0.0.1:9/", "events": ["*"]}
    await harness.post(
        "/api/v1/admin/webhook-endpoints", json=hook, auth=await harness.create_admin()
    )
    assert len(await list_done(harness)) == 7
    await set_rules(harness, build_rule("agent_fund"))
    assert len(await list_done(harness)) == 8
    shop = await harness.get_processor_id(pos.merchant_auth)
    assert (await get_onboarding(harness))["processor_id"] == shop
    await harness.create_owner_user("M", shop)
    assert len(await list_done(harness)) == 9


async def test_owner_user_is_no_second_administrator(harness: Harness, services: Services) -> None:
    await start_onboarding(services.database)
    await harness.create_owner_user("M", ids.encode(ids.PROCESSOR, 1))
    assert await list_done(harness) == {"merchant"}


async def test_skipped_step_is_done(harness: Harness, services: Services) -> None:
    admin = await harness.create_admin()
    url = f"{URL}/approval_rules/skip"
    closed = await harness.post(url, json={}, auth=admin)
    assert not closed.json()["open"]
    await start_onboarding(services.database)
    for _ in range(2):
        skipped = await harness.post(url, json={}, auth=admin)
        expected = ["approval_rules"]
        assert [step["name"] for step in skipped.json()["steps"] if step["done"]] == expected
    value = await services.database.fetchval(
        "SELECT value FROM installation WHERE name = 'onboarding'"
    )
    assert value == "open approval_rules"
    unknown = await harness.post(f"{URL}/open/skip", json={}, auth=admin)
    assert parse_error(unknown) == (404, "NOT_FOUND")
