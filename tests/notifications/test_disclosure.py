"""Webhooks and messages carry no personal data of subscribers who are restricted when they go."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from cards.stage import new_card
from notifications.receiver import Received, Receiver
from notifications.stage import endpoint
from tapgate.gateway import EVENT_RECORD_LOADERS
from tapgate.ledger import chart
from tapgate.ledger import rules as ledger_rules
from tapgate.notifications.events import WEBHOOK_EVENT_TYPES, get_resource_type
from tapgate.notifications.receipts import ReceiptWorker
from tapgate.notifications.webhooks.event_data import REDACTORS
from tapgate.notifications.webhooks.worker import WebhookWorker
from tapgate.settings import Settings
from transactions.movements import move, processor, refund
from world import PIN, World

PROFILE = {
    "first_name": "Zebulonia",
    "last_name": "Quartermain",
    "email": "zq@secluded.example",
    "address": "77 Hidden Lane",
    "id_type": "PASSPORT",
    "id_number": "XK-5550199",
    "date_of_birth": "1987-11-23",
}
#: Kinds of events whose records are not about subscribers.
OTHERS = {"agent", "processor", "webhook_endpoint"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, receipts="all")


def test_every_event_about_a_subscriber_is_reduced() -> None:
    assert {get_resource_type(event) for event in WEBHOOK_EVENT_TYPES} - OTHERS == REDACTORS.keys()


async def listen(world: World, receiver: Receiver) -> None:
    await endpoint(world.services, receiver.url)
    async with world.services.database.transaction() as tx:
        ticket = await world.services.signals.publish(tx, ledger_rules.RULES_CHANGED, "")
    await world.services.signals.wait_for_acks(ticket)


async def deliver(world: World) -> None:
    work = WebhookWorker(world.services, EVENT_RECORD_LOADERS)
    while await world.services.database.fetchval(
        """SELECT count(*) FROM deliveries WHERE status = 'pending' AND next_attempt_at <= $1""",
        world.services.clock(),
    ):
        await work.start_due_attempts()
        await work.wait_until_idle()


async def restrict(world: World, person: dict[str, Any], restricted: bool = True) -> None:
    await world.services.database.execute(
        "UPDATE subscribers SET restricted = $2 WHERE phone_number = $1",
        person["phone_number"],
        restricted,
    )


async def live(world: World, person: dict[str, Any]) -> dict[str, Any]:
    """Cause every event there is about a subscriber; return what the responses of block were."""
    admin, service, about = (
        await world.admin(),
        world.service(),
        f"Zebulonia {person['phone_number']}",
    )
    card, shop = await new_card(world), await processor(world)
    url, other = f"/api/v1/subscribers/{person['id']}", await world.subscriber(balance="50")

    async def post(path: str, body: Any, auth: Any = admin) -> dict[str, Any]:
        answer = await world.client.post(f"/api/v1/{path}", json=body, auth=auth)
        assert answer.is_success or answer.status_code == 402, answer.text
        found: dict[str, Any] = answer.json()
        return found

    own = {"subscriber_id": person["id"], "card_serial": card, "pin": PIN}
    await post("cards/link", own, service)
    paid = await move(world, chart.POS_PAYMENT, card, shop, "10")
    await refund(world, paid, shop, "3")
    send = {
        "request_id": "too much",
        "sender_id": person["id"],
        "recipient_card_serial": await world.card(other["id"]),
        "amount": "45000",
        "pin": PIN,
        "memo": about,
    }
    await post("wallet/transfer-p2p", send, service)
    await post("wallet/transfer-p2p", send | {"amount": "7", "request_id": "less"}, service)
    alert = {"alert_type": "odd", "details": {"note": about, "figure": "12.00", "action": "alert"}}
    raised = [
        await post("compliance/alerts", alert | subject, service)
        for subject in ({"subscriber_id": person["id"]}, {"transaction_id": paid})
    ]
    resolution = {"status": "resolved", "resolution_notes": about}
    await post(f"compliance/alerts/{raised[0]['alert_id']}/resolve", resolution)
    blocked = {
        "card.blocked": (await post(f"cards/{card}/block", {"reason": "fraud"}))["card"],
        "subscriber.blocked": (await post(f"subscribers/{person['id']}/block", {"reason": "r"}))[
            "subscriber"
        ],
    }
    body = {"document_type": "selfie", "image": PICTURE}
    answer = await world.client.post(f"{url}/kyc-documents", json=body, auth=service)
    assert answer.status_code == 201, answer.text
    return blocked


PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptV"
    "AAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


async def personal_values(world: World, person: dict[str, Any]) -> set[str]:
    url = f"/api/v1/subscribers/{person['id']}"
    record = (await world.client.get(url, auth=world.service())).json()
    names = ("phone_number", "balance", *(name for name in PROFILE if name != "id_type"))
    return {record[name] for name in names}


def by_type(received: list[Received]) -> dict[str, dict[str, Any]]:
    return {one.content["type"]: one.content["data"] for one in received}


EXPECTED = {
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
}


async def while_restricted(world: World, person: dict[str, Any]) -> dict[str, Any]:
    await restrict(world, person)
    return await live(world, person)


async def before_the_restriction(world: World, person: dict[str, Any]) -> dict[str, Any]:
    """All is stored, and nothing sent, when the restriction begins."""
    await live(world, person)
    await restrict(world, person)
    return {}


@pytest.mark.parametrize("order", [while_restricted, before_the_restriction])
async def test_no_webhook_has_a_personal_value(
    world: World,
    receiver: Receiver,
    order: Callable[[World, dict[str, Any]], Awaitable[dict[str, Any]]],
) -> None:
    await listen(world, receiver)
    person = await world.subscriber(balance="734.19", **PROFILE)
    blocked = await order(world, person)
    await deliver(world)
    assert {one.content["type"] for one in receiver.received} == EXPECTED
    values = await personal_values(world, person)
    about_person = [one for one in receiver.received if person["id"].encode() in one.body]
    assert len(about_person) >= len(EXPECTED)
    for one in receiver.received:
        assert not [value for value in values if value.encode() in one.body], one.body
    events = by_type(receiver.received)
    for event, response in blocked.items():
        assert events[event] == response
    assert events["subscriber.blocked"].keys() == {"id", "status", "status_reason", "restricted"}
    assert events["card.blocked"]["restricted"] is True
    failed = events["transaction.failed"]
    assert failed["masked"] is True and failed["from"] == {"type": "subscriber", "id": person["id"]}
    assert events["alert.resolved"]["details"] == {"figure": "12.00", "action": "alert"}


async def test_a_redelivery_after_the_restriction_is_reduced(
    world: World, receiver: Receiver
) -> None:
    await listen(world, receiver)
    person = await world.subscriber(balance="734.19", **PROFILE)
    await live(world, person)
    await deliver(world)
    values = await personal_values(world, person)
    assert any(b"Quartermain" in one.body for one in receiver.received)
    sent = len(receiver.received)
    for restricted in (True, False):
        await restrict(world, person, restricted)
        receiver.received.clear()
        await world.services.database.execute(
            "UPDATE deliveries SET status = 'pending', next_attempt_at = $1, ended_at = NULL",
            world.services.clock(),
        )
        await deliver(world)
        assert len(receiver.received) == sent
        told = [one for one in receiver.received if any(v.encode() in one.body for v in values)]
        assert bool(told) is not restricted


async def test_a_message_to_the_other_side_names_a_restricted_subscriber_by_id(
    world: World,
) -> None:
    person = await world.subscriber(balance="100", **PROFILE)
    other = await world.subscriber(balance="100")
    await restrict(world, person)
    await move(world, chart.TRANSFER_P2P, person["id"], other["id"], "10")
    await move(world, chart.TRANSFER_P2P, other["id"], person["id"], "5")
    await ReceiptWorker(world.services).enqueue_due()
    for template in ("money_received", "payment_made"):
        ((_, name, _),) = await world.sent_to(other["phone_number"], template)
        assert name == person["id"]
        # What the restricted subscriber receives is about the other.
        ((_, name, _),) = await world.sent_to(person["phone_number"], template)
        assert name == "Aminata K."
