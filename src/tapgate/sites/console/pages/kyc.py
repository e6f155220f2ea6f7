"""KYC review: the queue of customers who wait for a decision, and one customer's review."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.case import load_case
from tapgate.sites.console.components.next_steps import tell_kyc_review
from tapgate.sites.console.components.queues import build_assign_actions, find_next
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.subscribers import (
    MAX_KYC_LEVEL,
    KycDecision,
    KycDocumentStatus,
    KycDocumentType,
)

pages = Pages()

_REVIEWS_PATH: Final = "/api/v1/kyc-reviews"
_ITEM_PATH: Final = "/api/v1/subscribers/{id}"
_DECISION_ENDPOINT: Final = f"POST {_ITEM_PATH}/kyc-decision"
_RULE_PATH: Final = "/api/v1/account-rules/{kyc_level}"
_QUEUE_PATH: Final = "/console/kyc"
_NEXT_PATH: Final = f"{_QUEUE_PATH}/next"
_PAGE_SIZE: Final = 25
_MAX_DOCUMENTS: Final = 100

_REASON_HINT: Final = "Sent to the customer as written, so use the customer's language"


def _build_decision_field(decision: KycDecision) -> Field:
    return Field("decision", kind="hidden", value=decision)


ACTIONS = (
    *build_assign_actions("kyc", f"{_ITEM_PATH}/kyc-review", "review"),
    Action(
        name="kyc.approve",
        endpoint=_DECISION_ENDPOINT,
        title="Approve KYC level",
        description="The limits of the level apply immediately, and the customer is notified.",
        button="Approve",
        fields=(
            _build_decision_field(KycDecision.APPROVE),
            Field("kyc_level", kind="whole_choice", choices=("1", "2", "3")),
            Field("reason", "Message", "long", hint=_REASON_HINT, required=False),
        ),
        success_message="KYC level approved. The customer was notified.",
        redirect_path=_NEXT_PATH,
    ),
    Action(
        name="kyc.more_needed",
        endpoint=_DECISION_ENDPOINT,
        title="Ask for more documents",
        description="The level stays the same. The customer is notified, and returns to the queue "
        "after sending another document.",
        fields=(
            _build_decision_field(KycDecision.MORE_NEEDED),
            Field("reason", "What is needed", "long", hint=_REASON_HINT),
        ),
        success_message="More documents requested. The customer was notified.",
        redirect_path=_NEXT_PATH,
    ),
    Action(
        name="kyc.reject",
        endpoint=_DECISION_ENDPOINT,
        title="Reject these documents?",
        description="The level stays the same. The rejected documents no longer count toward a "
        "level. The customer is notified and can send new documents.",
        button="Reject",
        fields=(
            _build_decision_field(KycDecision.REJECT),
            Field("reason", kind="long", hint=_REASON_HINT),
        ),
        success_message="Documents rejected. The customer was notified.",
        is_dangerous=True,
        redirect_path=_NEXT_PATH,
    ),
)


@pages.get(_QUEUE_PATH)
async def list_queue(request: PageRequest) -> Reply[bytes]:
    filters: dict[str, str | int] = {
        "limit": _PAGE_SIZE,
        **request.query.pick("assignee", "cursor"),
    }
    page = await request.get(_REVIEWS_PATH, filters)
    return request.render("kyc/queue.html", page=page, now=request.context.services.clock())


@pages.get(_NEXT_PATH)
async def show_next(request: PageRequest) -> Reply[bytes]:
    """Redirect to the customer who has waited longest, or to the queue if it is empty."""
    next_id = await find_next(request, _REVIEWS_PATH, {}, "subscriber_id")
    return request.redirect(_QUEUE_PATH if next_id is None else f"{_QUEUE_PATH}/{next_id}")


@pages.get(f"{_QUEUE_PATH}/{{id}}")
async def review_customer(request: PageRequest, id: str) -> Reply[bytes]:
    await request.require_access(_DECISION_ENDPOINT)
    try:
        customer = await request.get(_ITEM_PATH, id=id)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return request.redirect(f"/console/subscribers/{id}")
    level = customer["kyc_level"]
    next_level = min(level + 1, MAX_KYC_LEVEL)
    parts = await gather_by_name(
        reviews=request.get(_REVIEWS_PATH, {"subscriber_id": id}),
        documents=request.get(f"{_ITEM_PATH}/kyc-documents", {"limit": _MAX_DOCUMENTS}, id=id),
        rule=request.get(_RULE_PATH, kyc_level=str(level)),
        next_rule=request.get(_RULE_PATH, kyc_level=str(next_level)),
        case=load_case(request, id),
    )
    documents = parts.pop("documents")["data"][::-1]  # in the order of their upload
    pending = [item for item in documents if item["status"] == KycDocumentStatus.PENDING]
    requirements = _check_requirements(parts["next_rule"]["requirements"], documents)
    missing = [name for name, is_met in requirements if is_met is False]
    return request.render(
        "kyc/review.html",
        customer=customer,
        review=next(iter(parts.pop("reviews")["data"]), None),
        pending=pending,
        earlier=[item for item in documents if item not in pending],
        requirements=requirements,
        missing=missing,
        next_step=tell_kyc_review(request, customer, next_level, missing),
        **parts,
    )


def _check_requirements(
    requirements: list[str], documents: list[dict[str, Any]]
) -> list[tuple[str, bool | None]]:
    """Return each requirement and whether it is met; None if only the reviewer can tell.

    The API checks only documents. The phone number is known since the registration.
    """
    sent = {
        item["document_type"] for item in documents if item["status"] != KycDocumentStatus.REJECTED
    }
    checked = {str(name): name in sent for name in KycDocumentType} | {"phone_number": True}
    return [(requirement, checked.get(requirement)) for requirement in requirements]
