"""How items of the work queues look: their text, symbol, page and button."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tapgate.sites.console.page_request import PageRequest
from tapgate_client.schemas.work_queues import WorkQueueName

ITEMS_PATH: Final = "/api/v1/work-items"


class QueueLabel(NamedTuple):
    """`item_path` is the page of an item, and `button` what the admin does there."""

    title: str
    path: str
    item: str
    item_path: str
    button: str
    symbol: str


QUEUES: Final[Mapping[str, QueueLabel]] = {
    WorkQueueName.APPROVALS: QueueLabel(
        "Approvals", "/console/approvals", "Approval", "/console/approvals/{id}", "Review", "stamp"
    ),
    WorkQueueName.HELD_PAYMENTS: QueueLabel(
        "Held payments",
        "/console/compliance?status=held",
        "Held payment",
        "/console/compliance/alerts/{id}",
        "Decide",
        "pause",
    ),
    WorkQueueName.ALERTS: QueueLabel(
        "Alerts",
        "/console/compliance",
        "Alert",
        "/console/compliance/alerts/{id}",
        "Investigate",
        "shield-alert",
    ),
    WorkQueueName.SUPPORT_REQUESTS: QueueLabel(
        "Support",
        "/console/support",
        "Support request",
        "/console/support/{id}",
        "Reply",
        "headset",
    ),
    WorkQueueName.RECALLS: QueueLabel(
        "Recalls",
        "/console/recalls",
        "Recalled transfer",
        "/console/recalls/{id}",
        "Decide",
        "rotate-ccw",
    ),
    WorkQueueName.DISPUTES: QueueLabel(
        "Disputes",
        "/console/disputes",
        "Contested payment",
        "/console/disputes/{id}",
        "Decide",
        "circle-alert",
    ),
    WorkQueueName.PAYOUTS: QueueLabel(
        "Payouts",
        "/console/payouts",
        "Payout",
        "/console/payouts/{id}",
        "Open payout",
        "banknote-arrow-up",
    ),
    WorkQueueName.KYC_REVIEWS: QueueLabel(
        "KYC", "/console/kyc", "KYC review", "/console/kyc/{id}", "Check", "id-card"
    ),
    WorkQueueName.LOW_FLOAT: QueueLabel(
        "Low float",
        "/console/agents?low_float=true",
        "Low float",
        "/console/agents/{id}",
        "Open agent",
        "hand-coins",
    ),
    WorkQueueName.FLOAT_REQUESTS: QueueLabel(
        "Float requests",
        "/console/float-requests",
        "Float request",
        "/console/float-requests/{id}",
        "Fund",
        "hand-coins",
    ),
    WorkQueueName.FAILING_WEBHOOKS: QueueLabel(
        "Webhooks",
        "/console/webhooks?failing=true",
        "Failing webhook",
        "/console/webhooks/{id}",
        "Inspect",
        "webhook",
    ),
}


class WorkRow(NamedTuple):
    """Item with its label and the address of its page."""

    item: Mapping[str, Any]
    label: QueueLabel
    path: str


async def load_work(request: PageRequest, limit: int) -> tuple[list[WorkRow], bool]:
    """Return the first items that wait for the admin, and whether more do."""
    items = await request.get(ITEMS_PATH, {"limit": limit, "fresh": "true"})
    return build_rows(items["data"]), items["has_more"]


def build_rows(items: Sequence[Mapping[str, Any]]) -> list[WorkRow]:
    return [
        WorkRow(item, QUEUES[item["queue"]], QUEUES[item["queue"]].item_path.format(id=item["id"]))
        for item in items
    ]
