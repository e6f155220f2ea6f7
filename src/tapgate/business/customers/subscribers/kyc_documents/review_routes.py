"""KYC review queue endpoints."""

from operator import attrgetter

from tapgate.business.customers.subscribers.kyc_documents import reviews
from tapgate.core.pagination import paginate
from tapgate.core.records import SubscriberId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.kyc_reviews import KycReviewFilters, KycReviewRecord
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Subscribers",
    "/api/v1",
    access=Access(roles="AC"),
    objects=ObjectAccess.UNRESTRICTED,
    owners=NEVER,
)

_ERRORS = (Code.OTP_REQUIRED, Code.ALREADY_RESOLVED)


@endpoints.get("/kyc-reviews")
async def list_kyc_reviews(
    request: RequestContext, query: KycReviewFilters
) -> Page[KycReviewRecord]:
    """List the subscribers who wait for a KYC decision, longest wait first.

    Subscribers who must send more documents are listed again after they have sent one. Restricted
    subscribers are omitted until the admin verifies a one-time code.
    """
    services = request.services
    rows = await reviews.list_page(services.database, query, request.principal, services.clock())
    return paginate(rows, query, reviews.to_record, attrgetter("position"))


@endpoints.post(
    "/subscribers/{id}/kyc-review/assign",
    errors=_ERRORS,
    unguarded=Unguarded.NO_EFFECT,
    effect="sets",
    unnoticed=Unnoticed.NO_CHANGE,
)
async def assign_kyc_review(
    request: RequestContext, tx: Transaction, id: SubscriberId
) -> KycReviewRecord:
    """Assign a KYC review to the calling admin. A KYC decision ends the assignment."""
    return reviews.to_record(await reviews.assign(tx, request.actor, id))


@endpoints.post(
    "/subscribers/{id}/kyc-review/unassign",
    errors=_ERRORS,
    unguarded=Unguarded.NO_EFFECT,
    effect="sets",
    unnoticed=Unnoticed.NO_CHANGE,
)
async def unassign_kyc_review(
    request: RequestContext, tx: Transaction, id: SubscriberId
) -> KycReviewRecord:
    """Unassign a KYC review."""
    return reviews.to_record(await reviews.unassign(tx, request.actor, id))
