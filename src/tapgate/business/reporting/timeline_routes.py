"""Subscriber timeline endpoint."""

from operator import attrgetter

from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.reporting.timeline import load_timeline
from tapgate.core.pagination import paginate
from tapgate.core.records import SubscriberId
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client.errors import Code
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.timeline import TimelineFilters, TimelineItem

endpoints = Endpoints(
    "Subscribers",
    "/api/v1/subscribers/{id}",
    access=Access(roles="ACSF"),
    objects=ObjectAccess.UNRESTRICTED,
    owners=NEVER,
)


@endpoints.get("/timeline", errors=(Code.OTP_REQUIRED,), heavy=True)
async def get_subscriber_timeline(
    request: RequestContext, id: SubscriberId, query: TimelineFilters
) -> Page[TimelineItem]:
    """List what happened to a subscriber, newest first.

    Transactions and declines, wrong PINs, messages with their delivery status, chat turns with
    their command and outcome, messages to and from support, KYC documents and decisions, alerts,
    and other changes to the subscriber and the newest 10 cards. Message texts and changed values
    are not included. Alerts require access to the alert list, support messages access to the
    support request list, and change reasons access to the audit log. Finance users do not see chat
    turns. Messages and chat turns are kept for 30 days, wrong PINs for 366 days.
    """
    services = request.services
    subscriber = await subscribers.get_accessible(
        services.database, request.caller, services.clock(), id
    )
    rows = await load_timeline(services, request.principal, subscriber, query)
    return paginate(rows, query, attrgetter("item"), attrgetter("position"))
