"""Subscribers who opt out get no receipts, but every other message."""

import pytest

from builders.payments import submit_and_get_id
from harness import Harness
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.settings import Settings
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.ledger import chart


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.replace(receipts="all")


def test_only_receipts_are_not_essential() -> None:
    optional = {name for name, template in TEMPLATES.items() if not template.is_essential}
    assert optional == {"money_received", "payment_made"}


async def test_opted_out_subscriber_gets_notices_but_no_receipts(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="500")
    receiver = await harness.create_subscriber()
    assert receiver["messages"] == "all"
    path = f"/api/v1/subscribers/{receiver['id']}"
    response = await harness.put(
        path, json={"messages": "essential"}, auth=harness.get_service_auth()
    )
    assert response.json()["messages"] == "essential"
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10.00")
    await ReceiptWorker(harness.services).enqueue_due()
    assert await harness.list_pending_messages(receiver["phone_number"], "money_received") == []
    assert len(await harness.list_pending_messages(sender["phone_number"], "payment_made")) == 1
    admin = await harness.create_admin()
    await harness.post(f"{path}/block", json={"reason": "check"}, auth=admin)
    assert len(await harness.list_pending_messages(receiver["phone_number"], "wallet_changed")) == 1
    invalid = await harness.put(path, json={"messages": "none"}, auth=admin)
    assert invalid.status_code == 422
    assert "messages" in invalid.json()["details"]["fields"]
