"""Webhooks and receipts omit personal data about subscribers who are currently restricted."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from builders.participants import create_card
from builders.payments import create_processor, submit_and_get_id, submit_refund
from drivers.webhooks import ReceivedWebhook, WebhookReceiver, create_endpoint
from harness import PIN, Harness
from tapgate.core.settings import Settings
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.events.webhooks.event_data import REDACTORS
from tapgate.events.webhooks.worker import WebhookWorker
from tapgate.ledger import chart
from tapgate.ledger.rules import loaded_rules as ledger_rules
from tapgate.server.event_records import EVENT_RECORD_LOADERS
from tapgate_client.schemas.webhooks import WEBHOOK_EVENT_TYPES, get_resource_type

PROFILE = {
    "first_name": "Zebulonia",
    "last_name": "Quartermain",
    "email": "zq@secluded.example",
    "address": "77 Hidden Lane",
    "id_type": "PASSPORT",
    "id_number": "XK-5550199",
    "date_of_birth": "1987-11-23",
}
#: Resource types of events that are not about subscribers.
EXCLUDED_SUBJECTS = {
    "agent", "approval", "batch", "day", "payout", "processor", "reconciliation",
    "webhook_endpoint",
}  # fmt: skip


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.replace(receipts="all")


def test_every_event_about_a_subscriber_has_a_redactor() -> None:
    found = {get_resource_type(event) for event in WEBHOOK_EVENT_TYPES} - EXCLUDED_SUBJECTS
    assert found == REDACTORS.keys()


async def subscribe_to_events(harness: Harness, receiver: WebhookReceiver) -> None:
    await create_endpoint(harness.services, receiver.url)
    async with harness.services.transaction() as tx:
        ticket = await harness.services.signals.publish(tx, ledger_rules.RULES_CHANGED, "")
    await harness.services.signals.wait_for_acks(ticket)


async def deliver_all(harness: Harness) -> None:
    worker = WebhookWorker(harness.services, EVENT_RECORD_LOADERS)
    while await harness.database.fetchval(
        """SELECT count(*) FROM deliveries WHERE status = 'pending' AND next_attempt_at <= $1""",
        harness.services.clock(),
    ):
        await worker.start_due_attempts()
        await worker.wait_until_idle()


async def set_restricted(
    harness: Harness, subscriber: dict[str, Any], restricted: bool = True
) -> None:
    await harness.database.execute(
        "UPDATE subscribers SET restricted = $2 WHERE phone_number = $1",
        subscriber["phone_number"],
        restricted,
    )


async def cause_all_events(harness: Harness, subscriber: dict[str, Any]) -> dict[str, Any]:
    """Cause every event about an existing subscriber; return the block event records."""
    admin = await harness.create_admin()
    service = harness.get_service_auth()
    personal_text = f"Zebulonia {subscriber['phone_number']}"
    card, merchant = await create_card(harness), await create_processor(harness)
    url = f"/api/v1/subscribers/{subscriber['id']}"
    other = await harness.create_subscriber(balance="50")

    async def post(path: str, body: Any, auth: Any = admin) -> dict[str, Any]:
        response = await harness.post(f"/api/v1/{path}", json=body, auth=auth)
        assert response.is_success or response.status_code == 402, response.text
        record: dict[str, Any] = response.json()
        return record

    card_link = {"subscriber_id": subscriber["id"], "card_serial": card, "pin": PIN}
    await post("cards/link", card_link, service)
    paid = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "10")
    await submit_refund(harness, paid, merchant, "3")
    transfer = {
        "request_id": "too much",
        "sender_id": subscriber["id"],
        "recipient_card_serial": await harness.create_card(other["id"]),
        "amount": "45000",
        "pin": PIN,
        "memo": personal_text,
    }
    await post("wallet/transfer-p2p", transfer, service)
    await post("wallet/transfer-p2p", transfer | {"amount": "7", "request_id": "less"}, service)
    alert = {
        "alert_type": "odd",
        "details": {"note": personal_text, "figure": "12.00", "action": "alert"},
    }
    alerts = [
        await post("compliance/alerts", alert | subject, service)
        for subject in ({"subscriber_id": subscriber["id"]}, {"transaction_id": paid})
    ]
    message = {"phone_number": subscriber["phone_number"], "text": personal_text}
    await post("support/requests", message, service)
    resolution = {"status": "resolved", "resolution_notes": personal_text}
    await post(f"compliance/alerts/{alerts[0]['alert_id']}/resolve", resolution)
    blocked = {
        "card.blocked": (await post(f"cards/{card}/block", {"reason": "fraud"}))["card"],
        "subscriber.blocked": (
            await post(f"subscribers/{subscriber['id']}/block", {"reason": "r"})
        )["subscriber"],
    }
    body = {"document_type": "selfie", "image": IMAGE_DATA_URI}
    response = await harness.post(f"{url}/kyc-documents", json=body, auth=service)
    assert response.status_code == 201, response.text
    return blocked


IMAGE_DATA_URI = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptV"
    "AAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


async def list_personal_values(harness: Harness, subscriber: dict[str, Any]) -> set[str]:
    url = f"/api/v1/subscribers/{subscriber['id']}"
    record = (await harness.get(url, auth=harness.get_service_auth())).json()
    names = ("phone_number", "balance", *(name for name in PROFILE if name != "id_type"))
    return {record[name] for name in names}


def group_by_type(received: list[ReceivedWebhook]) -> dict[str, dict[str, Any]]:
    return {webhook.content["type"]: webhook.content["data"] for webhook in received}


EXPECTED_EVENTS = {
    "subscriber.created",
    "subscriber.blocked",
    "subscriber.kyc_changed",
    "card.linked",
    "card.blocked",
    "transaction.completed",
    "transaction.failed",
    "transaction.refunded",
    "alert.created",
    "alert.resolved",
    "support.requested",
}


async def cause_events_while_restricted(
    harness: Harness, subscriber: dict[str, Any]
) -> dict[str, Any]:
    await set_restricted(harness, subscriber)
    return await cause_all_events(harness, subscriber)


async def cause_events_before_restriction(
    harness: Harness, subscriber: dict[str, Any]
) -> dict[str, Any]:
    """Cause all events before the restriction, and leave their deliveries queued."""
    await cause_all_events(harness, subscriber)
    await set_restricted(harness, subscriber)
    return {}


@pytest.mark.parametrize(
    "cause_events", [cause_events_while_restricted, cause_events_before_restriction]
)
async def test_webhook_contains_no_personal_data_of_a_restricted_subscriber(
    harness: Harness,
    receiver: WebhookReceiver,
    cause_events: Callable[[Harness, dict[str, Any]], Awaitable[dict[str, Any]]],
) -> None:
    await subscribe_to_events(harness, receiver)
    subscriber = await harness.create_subscriber(balance="734.19", **PROFILE)
    blocked = await cause_events(harness, subscriber)
    await deliver_all(harness)
    assert {webhook.content["type"] for webhook in receiver.received} == EXPECTED_EVENTS
    values = await list_personal_values(harness, subscriber)
    about_subscriber = [
        webhook for webhook in receiver.received if subscriber["id"].encode() in webhook.body
    ]
    assert len(about_subscriber) >= len(EXPECTED_EVENTS)
    for webhook in receiver.received:
        assert not [value for value in values if value.encode() in webhook.body], webhook.body
    events = group_by_type(receiver.received)
    for event, response in blocked.items():
        assert events[event] == response
    assert events["subscriber.blocked"].keys() == {"id", "status", "status_reason", "restricted"}
    assert events["card.blocked"]["restricted"] is True
    failed = events["transaction.failed"]
    assert failed["masked"] is True and failed["from"] == {
        "type": "subscriber",
        "id": subscriber["id"],
    }
    assert events["alert.resolved"]["details"] == {"figure": "12.00", "action": "alert"}


async def test_redelivery_is_redacted_only_while_the_subscriber_is_restricted(
    harness: Harness, receiver: WebhookReceiver
) -> None:
    await subscribe_to_events(harness, receiver)
    subscriber = await harness.create_subscriber(balance="734.19", **PROFILE)
    await cause_all_events(harness, subscriber)
    await deliver_all(harness)
    values = await list_personal_values(harness, subscriber)
    assert any(b"Quartermain" in webhook.body for webhook in receiver.received)
    sent = len(receiver.received)
    for restricted in (True, False):
        await set_restricted(harness, subscriber, restricted)
        receiver.received.clear()
        await harness.database.execute(
            "UPDATE deliveries SET status = 'pending', next_attempt_at = $1, ended_at = NULL",
            harness.services.clock(),
        )
        await deliver_all(harness)
        assert len(receiver.received) == sent
        unredacted = [
            webhook
            for webhook in receiver.received
            if any(value.encode() in webhook.body for value in values)
        ]
        assert bool(unredacted) is not restricted


async def test_receipt_of_the_counterparty_names_a_restricted_subscriber_by_id(
    harness: Harness,
) -> None:
    subscriber = await harness.create_subscriber(balance="100", **PROFILE)
    other = await harness.create_subscriber(balance="100")
    await set_restricted(harness, subscriber)
    await submit_and_get_id(harness, chart.TRANSFER_P2P, subscriber, other, "10")
    await submit_and_get_id(harness, chart.TRANSFER_P2P, other, subscriber, "5")
    await ReceiptWorker(harness.services).enqueue_due()
    for template in ("money_received", "payment_made"):
        ((_, name, _),) = await harness.list_pending_messages(other["phone_number"], template)
        assert name == subscriber["id"]
        # The restricted subscriber's own receipt names the counterparty.
        ((_, name, _),) = await harness.list_pending_messages(subscriber["phone_number"], template)
        assert name == "Aminata K."
