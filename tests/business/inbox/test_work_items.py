"""List of all work: order, who sees which item, and what an item discloses."""

from typing import Any

from builders.alerts import create_alert
from builders.approvals import approve, build_rule, decide, require_held, set_rules
from builders.kyc_documents import upload_document
from builders.participants import create_agent
from builders.payments import ALERTS_URL, create_held_transfer
from builders.support import send_message
from harness import BearerAuth, Harness
from tapgate.business.inbox.queues import QUEUES
from tapgate_client.schemas.work_queues import WorkQueueName

URL = "/api/v1/work-items"


async def list_items(harness: Harness, admin: BearerAuth, **query: Any) -> list[dict[str, Any]]:
    response = await harness.get(URL, params={"fresh": "true", **query}, auth=admin)
    assert response.status_code == 200, response.text
    data: list[dict[str, Any]] = response.json()["data"]
    return data


def test_every_queue_is_declared_once() -> None:
    assert sorted(queue.name for queue in QUEUES) == sorted(WorkQueueName)


async def test_items_are_ordered_by_urgency_and_then_by_age(harness: Harness) -> None:
    admin = await harness.create_admin()
    customer = await harness.create_subscriber(first_name="Isatu", last_name="Bangura")
    await upload_document(harness, customer)
    harness.advance_clock(minutes=1)
    minor = await create_alert(harness, severity="LOW")
    critical = await create_alert(harness, severity="CRITICAL")
    held, *_ = await create_held_transfer(harness)
    agent = await create_agent(harness, business_name="Kiosk", balance="1.50")
    items = await list_items(harness, admin)
    assert [(item["queue"], item["id"]) for item in items] == [
        ("alerts", critical["id"]),
        ("held_payments", held["id"]),
        ("kyc_reviews", customer["id"]),
        ("alerts", minor["id"]),
        ("low_float", agent["id"]),
    ]
    assert [item["urgency"] for item in items] == ["critical", "high", *["normal"] * 3]
    assert items[1]["amount"] is not None
    assert (items[2]["subject"], items[2]["is_mine"]) == ("Isatu Bangura", False)
    assert (items[4]["subject"], items[4]["amount"], items[4]["since"]) == ("Kiosk", "1.50", None)
    assert len(await list_items(harness, admin, limit=2)) == 2


async def test_items_of_a_colleague_are_left_out_and_own_items_are_marked(
    harness: Harness,
) -> None:
    officer, colleague = await harness.create_admin("C"), await harness.create_admin("C")
    alerts = [await create_alert(harness) for _ in range(2)]
    for alert, admin in zip(alerts, (officer, colleague), strict=True):
        await harness.post(f"{ALERTS_URL}/{alert['id']}/assign", auth=admin)
    (item,) = await list_items(harness, officer)
    assert (item["id"], item["is_mine"]) == (alerts[0]["id"], True)


async def test_restricted_customer_is_not_named(harness: Harness) -> None:
    customer = await harness.create_restricted_subscriber()
    await send_message(harness, "Help", customer["phone_number"])
    (item,) = await list_items(harness, await harness.create_admin("S"))
    assert (item["queue"], item["subject"]) == ("support_requests", None)
    assert customer["phone_number"] not in str(item)


async def test_approval_waits_for_admins_who_may_decide_and_have_not(harness: Harness) -> None:
    agent, maker = await create_agent(harness, balance="5000"), await harness.create_admin()
    await set_rules(harness, build_rule("agent_fund", approvers=2))
    approval = require_held(
        await harness.post(f"/api/v1/agents/{agent['id']}/fund", json={"amount": "70"}, auth=maker)
    )
    first, second = await harness.create_admin("F"), await harness.create_admin("F")
    support = await harness.create_admin("S")
    (item,) = await list_items(harness, first)
    assert (item["queue"], item["id"], item["amount"]) == ("approvals", approval["id"], "70.00")
    assert item["detail"] == approval["summary"]
    assert await list_items(harness, maker) == await list_items(harness, support) == []
    await approve(harness, approval, first)
    assert await list_items(harness, first) == []
    assert len(await list_items(harness, second)) == 1
    await decide(harness, approval, "reject", second, reason="No")
    assert await list_items(harness, second) == []
