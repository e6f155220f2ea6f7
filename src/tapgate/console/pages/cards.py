"""Card list, card details and actions."""

import asyncio
from typing import Any

from tapgate.console.actions import Action, Field
from tapgate.console.filtering import get_filtered_list
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_ITEM_PATH = "/api/v1/cards/{serial}"
_FILTERS = {"search": "Search", "status": "Status", "type": "Kind", "subscriber_id": "Subscriber"}
_RECENT_LIMIT = 10

_SERIAL = Field("card_serial", "Serial number", hint="As it is printed on the card")
_PERMANENT_REASONS = (
    ("lost", "Lost: for good"),
    ("stolen", "Stolen: for good"),
    ("damaged", "Damaged: for good"),
)
_TEMPORARY_REASONS = (
    ("customer_request", "The holder asks for it"),
    ("fraud", "Possible fraud"),
    ("compliance", "A compliance check"),
)
_REASON = Field("reason", "Reason", "choice", hint="The holder is told; kept in the audit trail")

ACTIONS = (
    Action(
        name="card.link",
        endpoint="POST /api/v1/cards/link",
        title="Link a card",
        description="The subscriber types the PIN, which is the card's from then on.",
        button="Link a card",
        fields=(
            Field("subscriber_id", "Subscriber", hint="Its identifier: sub_…"),
            _SERIAL,
            Field("pin", "The subscriber's PIN", "pin"),
        ),
        success_message="The card is linked.",
    ),
    Action(
        name="card.child",
        endpoint="POST /api/v1/cards/child",
        title="Give a child a card",
        description="It spends from the parent's wallet, up to a daily limit and with its own PIN.",
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
        success_message="The child's card works.",
    ),
    Action(
        name="card.block",
        endpoint=f"POST {_ITEM_PATH}/block",
        title="Block this card?",
        description=(
            "Every payment with it is refused at once. A card that is lost, stolen or"
            " damaged "
            "is blocked for good: it never works again, and its holder needs a new one. The other "
            "reasons can be undone."
        ),
        button="Block",
        fields=(_REASON._replace(choices=_TEMPORARY_REASONS + _PERMANENT_REASONS),),
        success_message="The card is blocked.",
        is_dangerous=True,
    ),
    Action(
        name="card.lose",
        endpoint=f"POST {_ITEM_PATH}/block",
        title="Block this card for good?",
        description="It is blocked already and could still be unblocked. Reported lost, stolen or "
        "damaged it never works again. This cannot be undone.",
        button="Report as lost",
        fields=(_REASON._replace(choices=_PERMANENT_REASONS),),
        success_message="The card is blocked for good.",
        is_dangerous=True,
    ),
    Action(
        name="card.unblock",
        endpoint=f"POST {_ITEM_PATH}/unblock",
        title="Unblock this card?",
        description="It works again at once, with the PIN it had.",
        button="Unblock",
        fields=(Field("reason", "Reason", "long", hint="Kept in the audit trail", required=False),),
        success_message="The card is unblocked.",
    ),
)


@pages.get("/console/cards")
async def list_cards(visit: PageRequest) -> Reply[bytes]:
    found, filter_errors = await get_filtered_list(visit, "/api/v1/cards", _FILTERS)
    return visit.render("cards/list.html", found=found, filter_errors=filter_errors)


@pages.get("/console/cards/{serial}")
async def show_card(visit: PageRequest, serial: str) -> Reply[bytes]:
    try:
        record = await visit.get(build_path(_ITEM_PATH, {"serial": serial}))
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return visit.render("cards/restricted.html", serial=serial)
    history, audit = await asyncio.gather(_load_history(visit, record), _load_audit(visit, record))
    return visit.render("cards/card.html", card=record, history=history, audit=audit)


async def _load_history(visit: PageRequest, card: dict[str, Any]) -> Any:
    return await visit.get_if_allowed(
        "GET /api/v1/transactions",
        "/api/v1/transactions",
        {"card_serial": card["serial"], "limit": _RECENT_LIMIT},
    )


async def _load_audit(visit: PageRequest, card: dict[str, Any]) -> Any:
    return await visit.get_if_allowed(
        "GET /api/v1/audit/logs",
        "/api/v1/audit/logs",
        {"resource_type": "card", "resource_id": card["serial"], "limit": _RECENT_LIMIT},
    )
