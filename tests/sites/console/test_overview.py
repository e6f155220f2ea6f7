"""Console home page and reports: status, order by role, figures, and the steps of setup."""

import re

import pytest

from builders.alerts import create_alert
from builders.participants import create_agent
from builders.payments import PosDriver
from drivers.console import ConsoleClients
from harness import Harness
from tapgate.http.api.services import Services
from tapgate.runtime.store.installation import start_onboarding
from tapgate.sites.console.components.work_items import QUEUES
from tapgate.sites.console.navigation import GROUPS
from tapgate_client.schemas.work_queues import WorkQueueName


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
    page = await (await console_clients.create_signed_in("C")).get_page_text("/console/reports")
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
    page = await console.get_page_text("/console/reports")
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
    assert "Use the recommended rules" not in page, "one administrator cannot approve alone"
    finance = await console_clients.create_signed_in("F")
    assert "Get started" not in await finance.get_page_text("/console")
    page = (await ada.get("/console")).text
    assert "Require a second person" in page and "Use the recommended rules" in page
    saved = await ada.post_partial("/console/approvals/rules", {"recommended": "yes"})
    assert saved.headers["HX-Redirect"] == "/console/approvals/rules"
    page = (await ada.get("/console")).text
    assert "Use the recommended rules" not in page
    assert "2 of 9 done" not in page and "3 of 9 done" in page
    await ada.submit_action("onboarding.skip", {}, step="webhook")
    assert "4 of 9 done" in (await ada.get("/console")).text
    await ada.submit_action("onboarding.dismiss", {})
    assert "Get started" not in await ada.get_page_text("/console")


@pytest.mark.parametrize("role", ["A", "C", "S", "F"])
async def test_role_decides_the_order_of_the_home_page(
    console_clients: ConsoleClients, role: str
) -> None:
    page = await (await console_clients.create_signed_in(role)).get_page_text("/console")
    assert (page.index('id="my-work"') < page.index('id="figures-title"')) == (role != "F")
    assert page.count('class="tiles') == 1 and page.count("<dt>") == 4
    assert "Ledger not verified yet" in page and "No approvals wait for you" in page
    assert ("1 of 1 nodes ready" in page or "nodes ready" in page) == (role in "AS")


async def test_home_page_lists_work_with_its_page_and_button(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    officer = await console_clients.create_signed_in("C")
    assert "Nothing waits for you." in await officer.get_page_text("/console")
    alert = await create_alert(harness, severity="CRITICAL")
    for path in ("/console", "/console/work", "/console/work?queue=alerts"):
        page = await officer.get_page_text(path)
        assert f'href="/console/compliance/alerts/{alert["id"]}"' in page and "Investigate" in page
    assert alert["id"] not in await officer.get_page_text("/console/work?queue=kyc_reviews")


async def test_report_of_chosen_days_links_to_their_transactions_and_is_exported(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    pos = await PosDriver.create(harness)
    await pos.pay("12.50")
    day = f"{harness.services.clock():%Y-%m-%d}"
    ada = await console_clients.create_signed_in("A")
    page = (await ada.get(f"/console/reports?from={day}&to={day}")).text
    assert f"/console/transactions?from={day}&amp;to={day}&amp;type=pos_payment" in page
    file = await ada.get(f"/console/reports/export?from={day}&to={day}")
    assert file.headers["content-type"].startswith("text/csv")
    assert "pos_payment,1,1,0,0,12.50," in file.text
    page = await ada.get_page_text("/console/reports?from=2026-02-01&to=2026-01-01")
    assert "must not be before" in page


def test_every_work_queue_has_a_label_and_the_navigation_is_short() -> None:
    assert set(QUEUES) == set(WorkQueueName)
    entries = [entry for group in GROUPS for entry in group.entries]
    assert len(entries) <= 14
    paths = [page.path for entry in entries for page in entry.pages]
    assert len(set(paths)) == len(paths)
