"""Subscribers: the list, one person with everything about them, and what can be done."""

import asyncio
from typing import Any

from tapgate.console.acts import Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_ONE = "/api/v1/subscribers/{id}"
_FEW = 10

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

ACTS = (
    Act(
        name="subscriber.register",
        endpoint="POST /api/v1/subscribers",
        title="Register a subscriber",
        explains="They get an empty wallet on KYC level 1. They choose the PIN themselves.",
        button="Register",
        fields=(*_PROFILE, Field("pin", "PIN", "pin", hint="Four digits")),
        done="The subscriber is registered.",
        then="/console/subscribers/{subscriber_id}",
    ),
    Act(
        name="subscriber.update",
        endpoint=f"PUT {_ONE}",
        title="Change the profile",
        explains="What you leave empty stays as it is.",
        button="Change profile",
        fields=_PROFILE,
        reads=_ONE,
        done="The profile is changed.",
    ),
    Act(
        name="subscriber.level",
        endpoint=f"PUT {_ONE}",
        title="Change the KYC level",
        explains="A higher level has higher limits. Look at the documents first.",
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
        needs_field="kyc_level",
        reads=_ONE,
        done="The level is changed.",
    ),
    Act(
        name="subscriber.block",
        endpoint=f"POST {_ONE}/block",
        title="Block this subscriber?",
        explains="Every payment from and to the wallet is refused at once, with every card. "
        "It can be undone.",
        button="Block",
        fields=(_REASON,),
        done="The subscriber is blocked.",
        dangerous=True,
    ),
    Act(
        name="subscriber.unblock",
        endpoint=f"POST {_ONE}/unblock",
        title="Unblock this subscriber?",
        explains="Cards that were active before work again.",
        button="Unblock",
        fields=(_REASON._replace(required=False),),
        done="The subscriber is unblocked.",
    ),
    Act(
        name="subscriber.close",
        endpoint=f"POST {_ONE}/close",
        title="Close this subscriber for good?",
        explains="The wallet must be empty. This cannot be undone, and the phone number stays "
        "taken.",
        button="Close for good",
        fields=(_REASON,),
        done="The subscriber is closed.",
        dangerous=True,
    ),
    Act(
        name="subscriber.reset_pin",
        endpoint=f"POST {_ONE}/reset-pin",
        title="Send a code for a new PIN?",
        explains="A one-time code goes to the subscriber's phone. With it they choose a new PIN "
        "in the chat or here.",
        button="Reset PIN",
        done="A code is on its way to the subscriber's phone.",
    ),
    Act(
        name="subscriber.set_pin",
        endpoint=f"POST {_ONE}/reset-pin/confirm",
        title="Set a new PIN with the code",
        explains="The subscriber reads the code to you and types the new PIN.",
        button="Set PIN",
        fields=(
            Field("otp", "Code", hint="Six digits, from the subscriber's phone"),
            Field("new_pin", "New PIN", "pin", hint="Four digits"),
        ),
        done="The PIN is set.",
    ),
    Act(
        name="subscriber.verify_pin",
        endpoint=f"POST {_ONE}/verify-pin",
        title="Is this the PIN?",
        explains="To know whom you talk to. A wrong one counts as at a terminal: the third in a "
        "row locks it for half an hour.",
        button="Check PIN",
        fields=(Field("pin", "PIN", "pin"),),
        done="The PIN is right.",
    ),
    Act(
        name="subscriber.change_pin",
        endpoint=f"POST {_ONE}/change-pin",
        title="Change the PIN",
        explains="The subscriber types both.",
        button="Change PIN",
        fields=(Field("old_pin", "PIN of now", "pin"), Field("new_pin", "New PIN", "pin")),
        done="The PIN is changed.",
    ),
    Act(
        name="subscriber.document",
        endpoint=f"POST {_ONE}/kyc-documents",
        title="Add a document",
        explains="A photo of it. What was written into the file, such as the place, is not kept.",
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
        done="The document is kept. It waits to be looked at.",
    ),
    Act(
        name="subscriber.alert",
        endpoint="POST /api/v1/compliance/alerts",
        title="Raise an alert",
        explains="For what the rules do not notice. It comes into the queue of compliance.",
        button="Raise an alert",
        fields=(
            Field("subscriber_id", "Subscriber", "hidden"),
            Field("alert_type", "What it is about", hint="In a few words: stolen phone"),
            Field("severity", "Severity", "choice", ("LOW", "MEDIUM", "HIGH", "CRITICAL")),
            Field("details.note", "What you know", "long"),
        ),
        done="The alert is in the queue.",
    ),
    Act(
        name="subscriber.ask_code",
        endpoint=f"POST {_ONE}/restricted-access",
        title="Ask for a code?",
        explains="It is sent to the subscriber's phone and is good for 5 minutes and 3 tries.",
        button="Ask for a code",
        done="A code is on its way to the subscriber's phone.",
    ),
    Act(
        name="subscriber.enter_code",
        endpoint=f"POST {_ONE}/restricted-access/verify",
        title="Enter the code",
        button="Open the record",
        fields=(Field("otp", "Code", hint="Six digits, as the subscriber reads them to you"),),
        done="The record is open to you for 15 minutes.",
    ),
)


@pages.get("/console/subscribers")
async def subscribers(visit: Visit) -> Reply[bytes]:
    asked = visit.query.pick("search", "status", "kyc_level", "cursor")
    return visit.page("subscribers/list.html", found=await visit.get("/api/v1/subscribers", asked))


@pages.get("/console/subscribers/{id}")
async def person(visit: Visit, id: str) -> Reply[bytes]:
    one = at(_ONE, {"id": id})
    try:
        record = await visit.get(one)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return visit.page("subscribers/restricted.html", id=id, code=await _last_code(visit, id))
    about: dict[str, str | int] = {"subscriber_id": id, "limit": _FEW}
    balance, cards, history, limits, documents, alerts, audit, code = await asyncio.gather(
        visit.get(at("/api/v1/balance/{id}", {"id": id})),
        visit.get("/api/v1/cards", {"subscriber_id": id}),
        visit.get("/api/v1/transactions", {"user_id": id, "limit": _FEW}),
        visit.get(f"{one}/limits"),
        visit.get_if_allowed(f"GET {_ONE}/kyc-documents", f"{one}/kyc-documents"),
        visit.get_if_allowed("GET /api/v1/compliance/alerts", "/api/v1/compliance/alerts", about),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs", "/api/v1/audit/logs", {"resource_id": id, "limit": _FEW}
        ),
        _last_code(visit, id),
    )
    return visit.page(
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


async def _last_code(visit: Visit, id: str) -> Any:
    """The message with the newest one-time code, None if there is none."""
    found = await visit.get(
        at(f"{_ONE}/messages", {"id": id}), {"template": "one_time_code", "limit": 1}
    )
    return next(iter(found["data"]), None)


@pages.get("/console/subscribers/{id}/documents/{document_id}")
async def document(visit: Visit, id: str, document_id: str) -> Reply[bytes]:
    """A picture for the page; it is never opened as anything else."""
    path = at(
        "/api/v1/subscribers/{id}/kyc-documents/{document_id}",
        {"id": id, "document_id": document_id},
    )
    return await visit.get_file(path)
