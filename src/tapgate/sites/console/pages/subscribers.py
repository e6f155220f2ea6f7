"""Customer list, customer details and actions. The API's term for a customer is subscriber."""

from collections.abc import Awaitable
from functools import partial
from typing import Any

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import add_list_page
from tapgate.sites.console.components.pin_actions import (
    build_pin_change_action,
    build_pin_reset_action,
)
from tapgate.sites.console.components.related import (
    RECENT_LIMIT,
    gather_by_name,
    get_alerts,
    get_audit,
    get_history,
    get_last_code,
    get_rules,
)
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest, build_path
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.subscribers import (
    IdType,
    KycDocumentType,
    KycStatus,
    SubscriberCategory,
)
from tapgate_client.schemas.timeline import TimelineKind

pages = Pages()

_ITEM_PATH = "/api/v1/subscribers/{id}"

TIMELINE_LABELS = {
    TimelineKind.TRANSACTION: "Transactions",
    TimelineKind.PIN: "PIN",
    TimelineKind.MESSAGE: "Messages to the phone",
    TimelineKind.CHAT: "Chat",
    TimelineKind.SUPPORT: "Support chat",
    TimelineKind.KYC: "KYC",
    TimelineKind.ALERT: "Alerts",
    TimelineKind.ACTION: "Other changes",
}

_PROFILE = (
    Field("first_name"),
    Field("last_name"),
    fields.PHONE,
    Field("email", kind="email", required=False),
    Field("date_of_birth", kind="date", required=False),
    Field("address", required=False),
    Field("id_type", "ID document", "choice", tuple(IdType), required=False),
    Field("id_number", required=False),
    Field("category", kind="choice", choices=tuple(SubscriberCategory)),
    Field("language", kind="choice", choices=(("en", "English"), ("fr", "French"))),
)

_build_state_action = partial(build_state_action, "subscriber", _ITEM_PATH, "customer")

ACTIONS = (
    Action(
        name="subscriber.register",
        endpoint="POST /api/v1/subscribers",
        title="Add customer",
        description="Creates an empty wallet at KYC level 1. Ask the customer to choose and "
        "enter a PIN.",
        fields=(*_PROFILE, Field("pin", kind="pin", hint="4 digits")),
        success_message="Customer added.",
        redirect_path="/console/subscribers/{subscriber_id}",
    ),
    Action(
        name="subscriber.update",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit profile",
        description="Fields you leave blank keep their current value.",
        button="Save",
        fields=_PROFILE,
        prefill_path=_ITEM_PATH,
        success_message="Profile updated.",
    ),
    Action(
        name="subscriber.level",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Override KYC level",
        description="Sets the level without checking its requirements or notifying the customer. "
        "The audit log records it as an override. To decide on documents, use KYC review.",
        button="Override level",
        fields=(
            Field("kyc_level", kind="whole_choice", choices=("1", "2", "3")),
            Field("kyc_status", kind="choice", choices=tuple(KycStatus)),
            Field(
                "restricted",
                "Restrict access: require a code from the customer's phone",
                "check",
                required=False,
            ),
        ),
        required_field="kyc_level",
        prefill_path=_ITEM_PATH,
        success_message="KYC level updated.",
    ),
    _build_state_action(
        "block",
        "Declines all payments to and from the wallet, including card payments. "
        "You can unblock the customer later.",
        fields.REASON,
    ),
    _build_state_action(
        "unblock", "Cards that were active before will work again.", fields.OPTIONAL_REASON
    ),
    Action(
        name="subscriber.close",
        endpoint=f"POST {_ITEM_PATH}/close",
        title="Close this account?",
        description="The wallet must be empty. This can't be undone, and the phone number can't be "
        "used again.",
        fields=(fields.REASON,),
        success_message="Account closed.",
        is_dangerous=True,
    ),
    build_pin_reset_action("subscriber", _ITEM_PATH, "customer"),
    Action(
        name="subscriber.verify_pin",
        endpoint=f"POST {_ITEM_PATH}/verify-pin",
        title="Verify PIN",
        description="Confirms you're talking to the account holder. Three wrong attempts in a row "
        "lock the PIN for 30 minutes.",
        fields=(Field("pin", kind="pin"),),
        success_message="The PIN is correct.",
    ),
    build_pin_change_action("subscriber", _ITEM_PATH, "Ask the customer to enter both PINs."),
    Action(
        name="subscriber.document",
        endpoint=f"POST {_ITEM_PATH}/kyc-documents",
        title="Add document",
        description="Upload a photo. Location and other metadata are removed.",
        fields=(
            Field("document_type", kind="choice", choices=tuple(KycDocumentType)),
            Field("image", "Photo", "picture", hint="JPEG or PNG, up to 5 MB"),
        ),
        success_message="Document uploaded. Waiting for review.",
    ),
    Action(
        name="subscriber.alert",
        endpoint="POST /api/v1/compliance/alerts",
        title="Create alert",
        description="Flag something the rules missed. It goes to the compliance queue.",
        fields=(
            Field("subscriber_id", kind="hidden"),
            Field("alert_type", hint="For example, stolen phone"),
            Field("severity", kind="choice", choices=("LOW", "MEDIUM", "HIGH", "CRITICAL")),
            Field("details.note", "Details", "long"),
        ),
        success_message="Alert created.",
    ),
    Action(
        name="subscriber.ask_code",
        endpoint=f"POST {_ITEM_PATH}/restricted-access",
        title="Request an access code?",
        description="Sends a code to the customer's phone. Valid for 5 minutes, 3 attempts.",
        success_message="Access code sent to the customer's phone.",
    ),
    Action(
        name="subscriber.enter_code",
        endpoint=f"POST {_ITEM_PATH}/restricted-access/verify",
        title="Enter access code",
        button="Unlock record",
        fields=(Field("otp", "Code", hint="6 digits. Ask the customer to read them to you."),),
        success_message="Record unlocked for 15 minutes.",
    ),
)


add_list_page(
    pages,
    "/console/subscribers",
    "/api/v1/subscribers",
    "subscribers/list.html",
    ("search", "status", "kyc_level", "kyc_status", "order"),
)


@pages.get("/console/subscribers/{id}")
async def show_subscriber(request: PageRequest, id: str) -> Reply[bytes]:
    try:
        record = await request.get(_ITEM_PATH, id=id)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return request.render(
            "subscribers/restricted.html", id=id, code=await _load_last_code(request, id)
        )
    parts = await gather_by_name(
        balance=request.get("/api/v1/balance/{id}", id=id),
        cards=request.get("/api/v1/cards", {"subscriber_id": id}),
        history=get_history(request, id),
        limits=request.get(f"{_ITEM_PATH}/limits", id=id),
        documents=request.get_if_allowed(f"{_ITEM_PATH}/kyc-documents", id=id),
        alerts=get_alerts(request, subscriber_id=id, limit=RECENT_LIMIT),
        rules=get_rules(request),
        audit=get_audit(request, id),
        code=_load_last_code(request, id),
    )
    return request.render("subscribers/customer.html", customer=record, **parts)


@pages.get("/console/subscribers/{id}/timeline")
async def show_timeline(request: PageRequest, id: str) -> Reply[bytes]:
    try:
        record = await request.get(_ITEM_PATH, id=id)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return request.redirect(build_path("/console/subscribers/{id}", {"id": id}))
    page = await request.get(f"{_ITEM_PATH}/timeline", request.query.pick("kind", "cursor"), id=id)
    alert_ids = [row["resource_id"] for row in page["data"] if row["kind"] == TimelineKind.ALERT]
    alerts = {id: request.get("/api/v1/compliance/alerts/{id}", id=id) for id in alert_ids}
    return request.render(
        "subscribers/timeline.html",
        customer=record,
        page=page,
        kinds=[(kind, TIMELINE_LABELS[kind]) for kind in TimelineKind],
        alerts=await gather_by_name(**alerts),
        rules=await get_rules(request) if alerts else {},
    )


def _load_last_code(request: PageRequest, id: str) -> Awaitable[Any]:
    return get_last_code(request, _ITEM_PATH, id, template="one_time_code")


@pages.get("/console/subscribers/{id}/documents/{document_id}")
async def get_document(request: PageRequest, id: str, document_id: str) -> Reply[bytes]:
    """Return a KYC document's image, for display on the page."""
    path = f"{_ITEM_PATH}/kyc-documents/{{document_id}}"
    return await request.get_file(path, id=id, document_id=document_id)
