"""The signed-in admin's work queues."""

from typing import Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.work_queues import WorkQueueName

pages = Pages()


class _QueueLabel(NamedTuple):
    title: str
    path: str
    description: str


QUEUES: Final = {
    WorkQueueName.KYC_REVIEWS: _QueueLabel(
        "KYC reviews", "/console/kyc", "Customers who wait for a decision on their documents"
    ),
    WorkQueueName.SUPPORT_REQUESTS: _QueueLabel(
        "Support requests", "/console/support", "Customers who wait for a reply"
    ),
    WorkQueueName.HELD_PAYMENTS: _QueueLabel(
        "Held payments", "/console/compliance?status=held", "Payments to release or reject"
    ),
    WorkQueueName.RECALLS: _QueueLabel(
        "Recalls", "/console/recalls", "Transfers to the wrong person that senders ask back"
    ),
    WorkQueueName.ALERTS: _QueueLabel(
        "Compliance alerts", "/console/compliance", "Open alerts without a held payment"
    ),
    WorkQueueName.DISPUTES: _QueueLabel(
        "Disputes", "/console/disputes", "Payments that customers contest, overdue ones first"
    ),
    WorkQueueName.LOW_FLOAT: _QueueLabel(
        "Agents with low float",
        "/console/agents?low_float=true",
        "Agents who may soon be unable to accept cash-ins",
    ),
    WorkQueueName.FAILING_WEBHOOKS: _QueueLabel(
        "Failing webhooks",
        "/console/webhooks?failing=true",
        "Endpoints that are disabled, or whose last attempt failed",
    ),
}


@pages.get("/console/work")
async def show_queues(request: PageRequest) -> Reply[bytes]:
    queues = await request.get("/api/v1/work-queues", {"fresh": "true"})
    counts = {queue["name"]: queue for queue in queues["data"]}
    return request.render(
        "work.html",
        queues=[(label, counts[name]) for name, label in QUEUES.items() if name in counts],
        now=request.context.services.clock(),
    )
