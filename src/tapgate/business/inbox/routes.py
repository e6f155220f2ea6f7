"""Work queue endpoints: the counts, and the list of all work that the caller could do."""

from collections.abc import Sequence
from typing import Final

from tapgate.business.agents import routes as agents
from tapgate.business.agents.float_requests import routes as float_requests
from tapgate.business.approvals import routes as approvals
from tapgate.business.compliance.alerts import routes as alerts
from tapgate.business.customers.subscribers.kyc_documents import review_routes as kyc_reviews
from tapgate.business.disputes import routes as disputes
from tapgate.business.finance.payouts import routes as payouts
from tapgate.business.inbox.queries import Caller, Item
from tapgate.business.inbox.queues import QUEUES, WorkQueue
from tapgate.business.inbox.waiting import load_items
from tapgate.business.payments.recalls import routes as recalls
from tapgate.business.support import routes as support
from tapgate.core.records import build_record
from tapgate.events.webhooks import routes as webhooks
from tapgate.http.api.access import Access, map_access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client import clock, ids, money
from tapgate_client.schemas.work_queues import (
    Urgency,
    WorkItem,
    WorkItems,
    WorkItemsQuery,
    WorkQueueName,
    WorkQueueRecord,
    WorkQueues,
    WorkQueuesQuery,
)

endpoints = Endpoints(
    "Work queues", objects=ObjectAccess.NO_OBJECT, access=Access(roles="ACSF"), owners=NEVER
)

_ACCESS: Final = map_access(
    kyc_reviews.endpoints,
    support.endpoints,
    alerts.endpoints,
    approvals.endpoints,
    webhooks.endpoints,
    disputes.endpoints,
    agents.endpoints,
    float_requests.endpoints,
    recalls.endpoints,
    payouts.endpoints,
)
_PREFIXES: Final = {queue.name: queue.id_prefix for queue in QUEUES}
_URGENCIES: Final = tuple(Urgency)


@endpoints.get("/api/v1/work-queues")
async def get_work_queues(request: RequestContext, query: WorkQueuesQuery) -> WorkQueues:
    """Get the number of items in each work queue that the caller's role may read.

    Each queue is counted up to 100. The counts may be a few seconds old; with `fresh=true` they are
    current, except the count of `low_float`. `approvals` are requests that the caller may approve.
    `alerts` are open alerts without a held payment, and `held_payments` those with one.
    `failing_webhooks` are endpoints that are disabled or whose last attempt failed. `disputes` are
    undecided. `low_float` are active agents whose float is below `TAPGATE_FLOAT_LOW`. `payouts`
    wait for a run, and `float_requests` for finance. Restricted subscribers are not counted in
    `kyc_reviews`.
    """
    visible = _list_visible_queues(request)
    items = await _load_items(request, visible, fresh=query.fresh)
    return WorkQueues(data=[_count(queue.name, items) for queue in visible])


def _count(name: WorkQueueName, items: Sequence[Item]) -> WorkQueueRecord:
    waiting = [item for item in items if item.queue == name]
    times = [item.since for item in waiting if item.since is not None]
    oldest = min(times, default=None)
    return WorkQueueRecord(
        name=name,
        waiting=len(waiting),
        oldest_at=None if oldest is None else clock.format_rfc3339(oldest),
    )


@endpoints.get("/api/v1/work-items")
async def list_work_items(request: RequestContext, query: WorkItemsQuery) -> WorkItems:
    """List what waits in all work queues, the most urgent first and then the oldest.

    Contains the queues of `GET /api/v1/work-queues`, without items that are assigned to another
    admin. `subject` is the person or thing that an item is about, null for a restricted subscriber;
    `detail` is an alert's type, an approval's summary, a dispute's reason or a float request's
    note. A dispute that the merchant, its `subject`, has not answered in time is `high`. `id` is
    the ID of the approval, alert, support request, dispute, float request, subscriber, agent or
    webhook endpoint. `low_float` has no `since`. `has_more` says that more than `limit` items wait;
    each queue counts up to 100.
    """
    items = await _load_items(request, _list_visible_queues(request), fresh=query.fresh)
    own = [item for item in items if item.assignee in (None, request.principal.admin_id)]
    own.sort(key=_get_rank)
    currency = request.services.settings.currency
    return WorkItems(
        data=[_build_item(request, item, currency) for item in own[: query.limit]],
        has_more=len(own) > query.limit,
    )


def _get_rank(item: Item) -> tuple[int, bool, float]:
    since = item.since
    return -item.urgency, since is None, 0.0 if since is None else since.timestamp()


def _build_item(request: RequestContext, item: Item, currency: str) -> WorkItem:
    return build_record(
        WorkItem,
        item,
        id=ids.encode(_PREFIXES[item.queue], item.id),
        urgency=_URGENCIES[item.urgency],
        amount=None if item.amount is None else money.format_decimal(item.amount, currency),
        is_mine=item.assignee is not None and item.assignee == request.principal.admin_id,
    )


def _list_visible_queues(request: RequestContext) -> list[WorkQueue]:
    return [
        queue
        for queue in QUEUES
        if _ACCESS[queue.endpoint].get_rejection(request.principal) is None
    ]


async def _load_items(
    request: RequestContext, visible: Sequence[WorkQueue], *, fresh: bool
) -> list[Item]:
    services, principal = request.services, request.principal
    settings = services.settings
    caller = Caller(
        admin_id=principal.admin_id,
        role=principal.role,
        low_float=money.from_whole_units(settings.float_low, settings.currency),
        now=services.clock(),
    )
    return await load_items(services.database, caller, visible, fresh=fresh)
