"""Cards: the list, one card, and what can be done with them."""

import asyncio
from typing import Any

from tapgate.console.acts import Act, Field
from tapgate.console.filtering import listed
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_ONE = "/api/v1/cards/{serial}"
_FILTERS = {"search": "Search", "status": "Status", "type": "Kind", "subscriber_id": "Subscriber"}
_FEW = 10

_SERIAL = Field("card_serial", "Serial number", hint="As it is printed on the card")
_FOR_GOOD = (
    ("lost", "Lost: for good"),
    ("stolen", "Stolen: for good"),
    ("damaged", "Damaged: for good"),
)
_FOR_NOW = (
    ("customer_request", "The holder asks for it"),
    ("fraud", "Possible fraud"),
    ("compliance", "A compliance check"),
)
_REASON = Field("reason", "Reason", "choice", hint="The holder is told; kept in the audit trail")

ACTS = (
    Act(
        name="card.link",
        endpoint="POST /api/v1/cards/link",
        title="Link a card",
        explains="The subscriber types the PIN, which is the card's from then on.",
        button="Link a card",
        fields=(
            Field("subscriber_id", "Subscriber", hint="Its identifier: sub_…"),
            _SERIAL,
            Field("pin", "The subscriber's PIN", "pin"),
        ),
        done="The card is linked.",
    ),
    Act(
        name="card.child",
        endpoint="POST /api/v1/cards/child",
        title="Give a child a card",
        explains="It spends from the parent's wallet, up to a daily limit and with its own PIN.",
        button="Add a child's card",
        fields=(
            Field("parent_subscriber_id", "Parent", hint="Its identifier: sub_…"),
            _SERIAL,
            Field("child_name", "The child's name"),
            Field("child_relationship", "Relationship", required=False),
            Field("daily_limit", "Daily limit", "money"),
            Field("parent_pin", "The parent's PIN", "pin"),
            Field("child_pin", "The child's PIN", "pin"),
        ),
        done="The child's card works.",
    ),
    Act(
        name="card.block",
        endpoint=f"POST {_ONE}/block",
        title="Block this card?",
        explains="Every payment with it is refused at once. A card that is lost, stolen or damaged "
        "is blocked for good: it never works again, and its holder needs a new one. The other "
        "reasons can be undone.",
        button="Block",
        fields=(_REASON._replace(choices=_FOR_NOW + _FOR_GOOD),),
        done="The card is blocked.",
        dangerous=True,
    ),
    Act(
        name="card.lose",
        endpoint=f"POST {_ONE}/block",
        title="Block this card for good?",
        explains="It is blocked already and could still be unblocked. Reported lost, stolen or "
        "damaged it never works again. This cannot be undone.",
        button="Report as lost",
        fields=(_REASON._replace(choices=_FOR_GOOD),),
        done="The card is blocked for good.",
        dangerous=True,
    ),
    Act(
        name="card.unblock",
        endpoint=f"POST {_ONE}/unblock",
        title="Unblock this card?",
        explains="It works again at once, with the PIN it had.",
        button="Unblock",
        fields=(Field("reason", "Reason", "long", hint="Kept in the audit trail", required=False),),
        done="The card is unblocked.",
    ),
)


@pages.get("/console/cards")
async def cards(visit: Visit) -> Reply[bytes]:
    found, wrong = await listed(visit, "/api/v1/cards", _FILTERS)
    return visit.page("cards/list.html", found=found, wrong=wrong)


@pages.get("/console/cards/{serial}")
async def card(visit: Visit, serial: str) -> Reply[bytes]:
    try:
        record = await visit.get(at(_ONE, {"serial": serial}))
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        holder = (error.details or {})["subscriber_id"]
        return visit.page("cards/restricted.html", serial=serial, holder=holder)
    history, audit = await asyncio.gather(_history(visit, record), _audit(visit, record))
    return visit.page("cards/card.html", card=record, history=history, audit=audit)


async def _history(visit: Visit, card: dict[str, Any]) -> Any:
    return await visit.get_if_allowed(
        "GET /api/v1/transactions",
        "/api/v1/transactions",
        {"card_serial": card["serial"], "limit": _FEW},
    )


async def _audit(visit: Visit, card: dict[str, Any]) -> Any:
    return await visit.get_if_allowed(
        "GET /api/v1/audit/logs",
        "/api/v1/audit/logs",
        {"resource_type": "card", "resource_id": card["serial"], "limit": _FEW},
    )
