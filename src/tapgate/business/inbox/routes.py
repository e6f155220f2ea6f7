"""Work queue endpoint."""

from collections.abc import Mapping
from typing import Final

from tapgate.business.agents import routes as agents
from tapgate.business.compliance.alerts import routes as alerts
from tapgate.business.customers.subscribers.kyc_documents import review_routes as kyc_reviews
from tapgate.business.inbox.counts import load_counts
from tapgate.business.support import routes as support
from tapgate.core.records import build_record
from tapgate.events.webhooks import routes as webhooks
from tapgate.http.api.access import Access, map_access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client.schemas.work_queues import (
    WorkQueueName,
    WorkQueueRecord,
    WorkQueues,
    WorkQueuesQuery,
)

endpoints = Endpoints("Work queues", objects=ObjectAccess.NO_OBJECT)

#: The endpoint that lists a queue. Its callers may see the count.
_LIST_ENDPOINTS: Final[Mapping[WorkQueueName, str]] = {
    WorkQueueName.KYC_REVIEWS: "GET /api/v1/kyc-reviews",
    WorkQueueName.SUPPORT_REQUESTS: "GET /api/v1/support/requests",
    WorkQueueName.ALERTS: "GET /api/v1/compliance/alerts",
    WorkQueueName.HELD_PAYMENTS: "GET /api/v1/compliance/alerts",
    WorkQueueName.FAILING_WEBHOOKS: "GET /api/v1/admin/webhook-endpoints",
    WorkQueueName.LOW_FLOAT: "GET /api/v1/agents",
}
_ACCESS: Final = map_access(
    kyc_reviews.endpoints,
    support.endpoints,
    alerts.endpoints,
    webhooks.endpoints,
    agents.endpoints,
)


@endpoints.get("/api/v1/work-queues", access=Access(roles="ACSF"))
async def get_work_queues(request: RequestContext, query: WorkQueuesQuery) -> WorkQueues:
    """Get the number of items in each work queue that the caller's role may read.

    Each queue is counted up to 100. The counts may be a few seconds old; with `fresh=true` they are
    current, except the count of `low_float`. `alerts` are open alerts without a held payment, and
    `held_payments` those with one. `failing_webhooks` are endpoints that are disabled or whose
    last attempt failed. `low_float` are active agents whose float is below `TAPGATE_FLOAT_LOW`.
    Restricted subscribers are not counted in `kyc_reviews`.
    """
    services = request.services
    counts = await load_counts(
        services.database, services.settings, services.clock(), fresh=query.fresh
    )
    return WorkQueues(
        data=[
            build_record(WorkQueueRecord, count._asdict())
            for count in counts
            if _ACCESS[_LIST_ENDPOINTS[count.name]].get_rejection(request.principal) is None
        ]
    )
