"""Alert page in currencies that do not have two decimal places."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.payments import decode_id, list_alerts, update_rule
from drivers.console import ConsoleClients
from harness import Harness
from tapgate.core.settings import Settings, load_settings
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate_client import money


@pytest.fixture(params=["JPY", "KWD"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> Settings:
    environ: Mapping[str, str] = {
        "TAPGATE_DATA_DIR": str(tmp_path),
        "TAPGATE_DATABASE_URL": database_url,
        "TAPGATE_CURRENCY": request.param,
    }
    return load_settings(environ)


async def test_alert_page_of_a_transfer_without_a_fee_mentions_no_fee(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    currency = harness.services.settings.currency
    payer = await harness.create_subscriber(balance="500")
    receiver = await harness.create_subscriber()
    await update_rule(harness, "Large amount", threshold="50")
    command = Command(
        type=chart.TRANSFER,
        channel="admin",
        payer=commands.subscriber_party(decode_id(payer["id"])),
        payee=commands.subscriber_party(decode_id(receiver["id"])),
        amount=money.parse("100", currency),
    )
    outcome = await harness.services.ledger.submit(command)
    assert outcome.require_accepted().status == "under_review"
    (alert,) = await list_alerts(harness)
    text = await (await console_clients.create_signed_in("C")).get_page_text(
        f"/console/compliance/alerts/{alert['id']}"
    )
    assert f"{currency} is on hold." in text and "a fee of" not in text
