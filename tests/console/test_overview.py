"""Console home page: the tile with the number of open alerts."""

import re

import pytest

from drivers.console import ConsoleClients
from harness import Harness


def parse_tile(page: str, label: str) -> str:
    """Return the text of one tile without markup."""
    match = re.search(rf"<dt>{label}</dt><dd>(.*?)</dd>", page, re.DOTALL)
    assert match is not None, page
    return " ".join(re.sub(r"<[^>]+>", " ", match[1]).split())


@pytest.mark.parametrize(
    ("severities", "output"),
    [
        (["CRITICAL", "HIGH", "HIGH", "LOW"], "4 ■ Critical 1 ■ High 2"),
        (["CRITICAL"], "1 ■ Critical 1"),
        (["HIGH", "MEDIUM"], "2 ■ High 1"),
        (["LOW"], "1 none high or critical"),
    ],
)
async def test_tile_counts_open_alerts_and_those_of_high_and_critical_severity(
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
    assert parse_tile(page, "Open alerts") == "1 ■ High 1, 1 under investigation"
