"""Console home page: the number of open alerts, and the steps for a new installation."""

import re

import pytest

from builders.participants import create_agent
from drivers.console import ConsoleClients
from harness import Harness
from tapgate.http.api.services import Services
from tapgate.runtime.store.installation import start_onboarding


def parse_tile(page: str, label: str) -> str:
    """Return the text of one tile without markup."""
    match = re.search(rf"<dt>{label}</dt><dd>(.*?)</dd>", page, re.DOTALL)
    assert match is not None, page
    return " ".join(re.sub(r"<[^>]+>", " ", match[1]).split())


@pytest.mark.parametrize(
    ("severities", "output"),
    [
        (["CRITICAL", "HIGH", "HIGH", "LOW"], "4 Critical 1 High 2"),
        (["CRITICAL"], "1 Critical 1"),
        (["HIGH", "MEDIUM"], "2 High 1"),
        (["LOW"], "1 none high or critical"),
    ],
)
async def test_tile_counts_open_alerts_and_high_and_critical_alerts(
    console_clients: ConsoleClients, harness: Harness, severities: list[str], output: str
) -> None:
    for severity in severities:
        response = await harness.post(
            "/api/v1/compliance/alerts",
            json={"alert_type": "by hand", "severity": severity, "details": {}},
            auth=harness.get_service_auth(),
        )
        assert response.status_code == 201, response.text
    page = await (await console_clients.create_signed_in("C")).get_page_text("/console")
    assert parse_tile(page, "Open alerts") == output


async def test_alerts_under_investigation_are_counted_separately(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    console = await console_clients.create_signed_in("C")
    for severity in ("HIGH", "CRITICAL"):
        response = await harness.post(
            "/api/v1/compliance/alerts",
            json={"alert_type": "by hand", "severity": severity, "details": {}},
            auth=harness.get_service_auth(),
        )
        alert = response.json()["alert_id"]
    await harness.post(
        f"/api/v1/compliance/alerts/{alert}/investigate", auth=await harness.create_admin("C")
    )
    page = await console.get_page_text("/console")
    assert parse_tile(page, "Open alerts") == "1 High 1, 1 under investigation"


async def test_overview_shows_open_steps_to_system_admins_until_all_are_done(
    harness: Harness, services: Services, console_clients: ConsoleClients
) -> None:
    ada = await console_clients.create_signed_in("A")
    assert "Get started" not in await ada.get_page_text("/console")
    await start_onboarding(services.database)
    page = (await ada.get("/console")).text
    assert "Get started" in page and "/console/cards/upload" in page
    assert "/console/actions/agent.register" in page and "agent.fund" not in page
    agent = await create_agent(harness, balance="0")
    assert f"agent.fund?id={agent['id']}" in (await ada.get("/console")).text
    finance = await console_clients.create_signed_in("F")
    assert "Get started" not in await finance.get_page_text("/console")
    assert "Require a second person" in (await ada.get("/console")).text
    saved = await ada.post_partial("/console/approvals/rules", {"recommended": "yes"})
    assert saved.headers["HX-Redirect"] == "/console/approvals/rules"
    page = (await ada.get("/console")).text
    assert "Use the recommended rules" not in page
    assert "2 of 8 done" not in page and "3 of 8 done" in page
    await ada.submit_action("onboarding.skip", {}, step="webhook")
    assert "4 of 8 done" in (await ada.get("/console")).text
    await ada.submit_action("onboarding.dismiss", {})
    assert "Get started" not in await ada.get_page_text("/console")
