"""Subscriber list, subscriber details and actions."""

import asyncio
from typing import Any

from tapgate.console.actions import Action, Field
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_ITEM_PATH = "/api/v1/subscribers/{id}"
_RECENT_LIMIT = 10

_PROFILE = (
    Field("first_name", "First name"),
    Field("last_name", "Last name"),
    Field("phone_number", "Phone", "tel", hint="With its country: +23276123456"),
    Field("email", "E-mail", "email", required=False),
    Field("date_of_birth", "Born", "date", required=False),
    Field("address", "Address", required=False),
    Field(
        "id_type",
        "Identity document",
        "choice",
        ("NATIONAL_ID", "PASSPORT", "DRIVERS_LICENSE"),
        required=False,
    ),
    Field("id_number", "Its number", required=False),
    Field("category", "Category", "choice", ("standard", "vip", "corporate")),
)
_REASON = Field("reason", "Reason", "long", hint="Kept in the audit trail")

ACTIONS = (
    Action(
        name="subscriber.register",
        endpoint="POST /api/v1/subscribers",
        title="Register a subscriber",
        description="They get an empty wallet on KYC level 1. They choose the PIN themselves.",
        button="Register",
        fields=(*_PROFILE, Field("pin", "PIN", "pin", hint="Four digits")),
        success_message="The subscriber is registered.",
        redirect_path="/console/subscribers/{subscriber_id}",
    ),
    Action(
        name="subscriber.update",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Change the profile",
        description="What you leave empty stays as it is.",
        button="Change profile",
        fields=_PROFILE,
        prefill_path=_ITEM_PATH,
        success_message="The profile is changed.",
    ),
    Action(
        name="subscriber.level",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Change the KYC level",
        description="A higher level has higher limits. Look at the documents first.",
        button="Change level",
        fields=(
            Field("kyc_level", "Level", "whole_choice", ("1", "2", "3")),
            Field("kyc_status", "KYC", "choice", ("NONE", "PENDING", "VERIFIED", "REJECTED")),
            Field(
                "restricted",
                "Restricted: only with a code from their phone",
                "check",
                required=False,
            ),
        ),
        required_field="kyc_level",
        prefill_path=_ITEM_PATH,
        success_message="The level is changed.",
    ),
    Action(
        name="subscriber.block",
        endpoint=f"POST {_ITEM_PATH}/block",
        title="Block this subscriber?",
        description="Every payment from and to the wallet is refused at once, with every card. "
        "It can be undone.",
        button="Block",
        fields=(_REASON,),
        success_message="The subscriber is blocked.",
        is_dangerous=True,
    ),
    Action(
        name="subscriber.unblock",
        endpoint=f"POST {_ITEM_PATH}/unblock",
        title="Unblock this subscriber?",
        description="Cards that were active before work again.",
        button="Unblock",
        fields=(_REASON._replace(required=False),),
        success_message="The subscriber is unblocked.",
    ),
    Action(
        name="subscriber.close",
        endpoint=f"POST {_ITEM_PATH}/close",
        title="Close this subscriber for good?",
        description="The wallet must be empty. This cannot be undone, and the phone number stays "
        "taken.",
        button="Close for good",
        fields=(_REASON,),
        success_message="The subscriber is closed.",
        is_dangerous=True,
    ),
    Action(
        name="subscriber.reset_pin",
        endpoint=f"POST {_ITEM_PATH}/reset-pin",
        title="Send a code for a new PIN?",
        description="A one-time code goes to the subscriber's phone. With it they choose a new PIN "
        "in the chat or here.",
        button="Reset PIN",
        success_message="A code is on its way to the subscriber's phone.",
    ),
    Action(
        name="subscriber.set_pin",
        endpoint=f"POST {_ITEM_PATH}/reset-pin/confirm",
        title="Set a new PIN with the code",
        description="The subscriber reads the code to you and types the new PIN.",
        button="Set PIN",
        fields=(
            Field("otp", "Code", hint="Six digits, from the subscriber's phone"),
            Field("new_pin", "New PIN", "pin", hint="Four digits"),
        ),
        success_message="The PIN is set.",
    ),
    Action(
        name="subscriber.verify_pin",
        endpoint=f"POST {_ITEM_PATH}/verify-pin",
        title="Is this the PIN?",
        description="To know whom you talk to. A wrong one counts as at a terminal: the third in a "
        "row locks it for half an hour.",
        button="Check PIN",
        fields=(Field("pin", "PIN", "pin"),),
        success_message="The PIN is right.",
    ),
    Action(
        name="subscriber.change_pin",
        endpoint=f"POST {_ITEM_PATH}/change-pin",
        title="Change the PIN",
        description="The subscriber types both.",
        button="Change PIN",
        fields=(Field("old_pin", "PIN of now", "pin"), Field("new_pin", "New PIN", "pin")),
        success_message="The PIN is changed.",
    ),
    Action(
        name="subscriber.document",
        endpoint=f"POST {_ITEM_PATH}/kyc-documents",
        title="Add a document",
        description=(
            "A photo of it. What was written into the file, such as the place, is not kept."
        ),
        button="Add a document",
        fields=(
            Field(
                "document_type",
                "What it is",
                "choice",
                ("id_front", "id_back", "selfie", "proof_of_address"),
            ),
            Field("image", "Photo", "picture", hint="JPEG or PNG, at most 5 MB"),
        ),
        success_message="The document is kept. It waits to be looked at.",
    ),
    Action(
        name="subscriber.alert",
        endpoint="POST /api/v1/compliance/alerts",
        title="Raise an alert",
        description="For what the rules do not notice. It comes into the queue of compliance.",
        button="Raise an alert",
        fields=(
            Field("subscriber_id", "Subscriber", "hidden"),
            Field("alert_type", "What it is about", hint="In a few words: stolen phone"),
            Field("severity", "Severity", "choice", ("LOW", "MEDIUM", "HIGH", "CRITICAL")),
            Field("details.note", "What you know", "long"),
        ),
        success_message="The alert is in the queue.",
    ),
    Action(
        name="subscriber.ask_code",
        endpoint=f"POST {_ITEM_PATH}/restricted-access",
        title="Ask for a code?",
        description="It is sent to the subscriber's phone and is good for 5 minutes and 3 tries.",
        button="Ask for a code",
        success_message="A code is on its way to the subscriber's phone.",
    ),
    Action(
        name="subscriber.enter_code",
        endpoint=f"POST {_ITEM_PATH}/restricted-access/verify",
        title="Enter the code",
        button="Open the record",
        fields=(Field("otp", "Code", hint="Six digits, as the subscriber reads them to you"),),
        success_message="The record is open to you for 15 minutes.",
    ),
)


@pages.get("/console/subscribers")
async def list_subscribers(visit: PageRequest) -> Reply[bytes]:
    asked = visit.query.pick("search", "status", "kyc_level", "cursor")
    return visit.render(
        "subscribers/list.html", found=await visit.get("/api/v1/subscribers", asked)
    )


@pages.get("/console/subscribers/{id}")
async def show_subscriber(visit: PageRequest, id: str) -> Reply[bytes]:
    one = build_path(_ITEM_PATH, {"id": id})
    try:
        record = await visit.get(one)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return visit.render(
            "subscribers/restricted.html", id=id, code=await _load_last_code(visit, id)
        )
    about: dict[str, str | int] = {"subscriber_id": id, "limit": _RECENT_LIMIT}
    balance, cards, history, limits, documents, alerts, audit, code = await asyncio.gather(
        visit.get(build_path("/api/v1/balance/{id}", {"id": id})),
        visit.get("/api/v1/cards", {"subscriber_id": id}),
        visit.get("/api/v1/transactions", {"user_id": id, "limit": _RECENT_LIMIT}),
        visit.get(f"{one}/limits"),
        visit.get_if_allowed(f"GET {_ITEM_PATH}/kyc-documents", f"{one}/kyc-documents"),
        visit.get_if_allowed("GET /api/v1/compliance/alerts", "/api/v1/compliance/alerts", about),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs",
            "/api/v1/audit/logs",
            {"resource_id": id, "limit": _RECENT_LIMIT},
        ),
        _load_last_code(visit, id),
    )
    return visit.render(
        "subscribers/person.html",
        person=record,
        balance=balance,
        limits=limits,
        cards=cards,
        history=history,
        documents=documents,
        alerts=alerts,
        audit=audit,
        code=code,
    )


async def _load_last_code(visit: PageRequest, id: str) -> Any:
    """Return the message with the newest one-time code, or None."""
    found = await visit.get(
        build_path(f"{_ITEM_PATH}/messages", {"id": id}), {"template": "one_time_code", "limit": 1}
    )
    return next(iter(found["data"]), None)


@pages.get("/console/subscribers/{id}/documents/{document_id}")
async def get_document(visit: PageRequest, id: str, document_id: str) -> Reply[bytes]:
    """Return the image of a KYC document, for display on the page."""
    path = build_path(
        "/api/v1/subscribers/{id}/kyc-documents/{document_id}",
        {"id": id, "document_id": document_id},
    )
    return await visit.get_file(path)
