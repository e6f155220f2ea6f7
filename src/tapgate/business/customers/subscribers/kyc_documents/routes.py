"""KYC document endpoints."""

from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.kyc_documents import decisions, operations, queries
from tapgate.business.customers.subscribers.kyc_documents.model import (
    Document,
    decode_document_id,
    encode_document_id,
    to_record,
)
from tapgate.business.customers.subscribers.model import to_record as to_subscriber_record
from tapgate.core.pagination import paginate
from tapgate.core.records import SubscriberId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import FILE_MEDIA_TYPE, MEBIBYTE, Endpoints, Reply
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.subscribers import (
    DocumentAdded,
    DocumentRecord,
    KycDecision,
    KycDecisionRequest,
    NewDocument,
    SubscriberResponse,
)

endpoints = Endpoints(
    "Subscribers", "/api/v1/subscribers/{id}", objects=ObjectAccess.UNRESTRICTED, owners=NEVER
)

_ACCESS = Access(scope="subscribers:write", roles="ASC", service=True)
_READ_ERRORS = (Code.OTP_REQUIRED,)
_DECISION_MESSAGES = {
    KycDecision.APPROVE: "KYC level approved",
    KycDecision.REJECT: "KYC documents rejected",
    KycDecision.MORE_NEEDED: "More KYC documents requested",
}


@endpoints.post(
    "/kyc-documents",
    access=_ACCESS,
    status=201,
    body_limit=8 * MEBIBYTE,
    errors=(*_READ_ERRORS, Code.NOT_CLOSABLE),
    report=True,
    unguarded=Unguarded.NO_MONEY,
    unnoticed=Unnoticed.NO_CHANGE,
)
async def add_kyc_document(
    request: RequestContext, id: SubscriberId, body: NewDocument
) -> DocumentAdded:
    """Add a KYC document.

    The image is decoded, rotated upright and encoded again without metadata. The subscriber's KYC
    status becomes `PENDING`. For each subscriber, at most 4 documents per type can await a KYC
    decision, and at most 20 documents are accepted in 24 hours. A request over a limit fails with
    429, and `details.limit` is `undecided_per_type` or `per_day`.
    """
    services = request.services
    document = Document(services.new_id(), body.document_type, services.clock())
    await operations.require_within_limits(
        services.database, request.caller, document.created_at, id, body.document_type
    )
    sealed = await operations.seal_image(body.image, document.id, vault=services.vault)
    async with services.transaction() as tx:
        subscriber = await operations.add(tx, request.actor, id, document, sealed)
    return DocumentAdded(
        document_id=encode_document_id(document.id),
        document_type=document.document_type,
        kyc_status=subscriber.kyc_status,
    )


@endpoints.get("/kyc-documents", access=_ACCESS, errors=_READ_ERRORS)
async def list_kyc_documents(
    request: RequestContext, id: SubscriberId, query: PageQuery
) -> Page[DocumentRecord]:
    """List a subscriber's KYC documents.

    Newest first, without the images. `status` is `pending` until a KYC decision covers the
    document, then `rejected` if the decision was a rejection, and `reviewed` otherwise.
    """
    database = request.services.database
    subscriber = await subscribers.get_accessible(
        database, request.caller, request.services.clock(), id
    )
    rows = await queries.list_page(database, subscriber.id, query)
    return paginate(rows, query, to_record)


@endpoints.get(
    "/kyc-documents/{document_id}",
    access=Access(roles="AC"),
    media=("image/jpeg", "image/png", FILE_MEDIA_TYPE),
    errors=(*_READ_ERRORS, Code.NOT_FOUND),
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PARENT_IN_PATH,
)
async def get_kyc_document_image(
    request: RequestContext, id: SubscriberId, document_id: str
) -> Reply[bytes]:
    """Get a KYC document's image.

    Each access is recorded in the audit log.
    """
    services = request.services
    internal_id = decode_document_id(document_id)
    async with services.transaction() as tx:
        sealed = await operations.view_sealed_image(tx, request.actor, id, internal_id)
    image = await operations.unseal_image(sealed, internal_id, vault=services.vault)
    filename = f"{encode_document_id(internal_id)}.{image.media_type.removeprefix('image/')}"
    return Reply(
        image.content,
        content_type=request.negotiate_file_type(image.media_type),
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


async def _describe_decision(
    request: GuardedRequest, id: int, body: KycDecisionRequest
) -> Proposal | None:
    services = request.services
    subscriber = await subscribers.get_accessible(
        services.database, request.caller, services.clock(), id
    )
    level = decisions.get_level(subscriber, body)
    if level <= subscriber.kyc_level:
        return None  # also a rejection, which never waits
    return Proposal(
        operations=(Operation.KYC_LEVEL,),
        summary=f"Raise the KYC level of customer {subscriber.public_id} to {level}",
        resource_id=subscriber.public_id,
        before={"kyc_level": subscriber.kyc_level},
        implied={"kyc_level": level},
    )


@endpoints.post(
    "/kyc-decision",
    access=Access(roles="AC"),
    guard=Guard(_describe_decision, Operation.KYC_LEVEL),
    step_up=("kyc_level",),
    errors=(
        *_READ_ERRORS,
        Code.NOT_CLOSABLE,
        Code.ALREADY_RESOLVED,
        Code.KYC_REQUIREMENTS_NOT_MET,
    ),
    unnoticed=Unnoticed.OUTCOME,
)
async def decide_kyc(
    request: GuardedRequest, tx: Transaction, id: SubscriberId, body: KycDecisionRequest
) -> SubscriberResponse:
    """Decide on a subscriber's KYC documents.

    The decision covers all documents uploaded so far. `approve` sets the KYC level to `kyc_level`,
    by default the next level, and the status to `VERIFIED`. The new level's limits apply
    immediately. `reject` requires a `reason`, keeps the level and sets the status to `REJECTED`.
    `more_needed` keeps the level, and the status is `PENDING` until a later decision.

    The subscriber gets a message with the outcome and the reason, in the subscriber's language.

    `approve` fails with `KYC_REQUIREMENTS_NOT_MET` if a document type that the `requirements` of
    the level name is missing. Rejected documents do not count. `details.missing` lists the missing
    types. If another decision already covers all documents, the request fails with
    `ALREADY_RESOLVED`.
    """
    services = request.services
    subscriber = await decisions.decide(tx, request.actor, id, body, vault=services.vault)
    return SubscriberResponse(
        message=_DECISION_MESSAGES[KycDecision(body.decision)],
        subscriber=to_subscriber_record(subscriber, services.clock()),
    )
