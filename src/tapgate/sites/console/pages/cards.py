"""Card list, card details and actions."""

from functools import partial
from typing import Any

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.pin_actions import (
    build_pin_change_action,
    build_pin_reset_action,
)
from tapgate.sites.console.components.related import (
    RECENT_LIMIT,
    gather_by_name,
    get_alerts,
    get_audit,
    get_last_code,
)
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.components.tap_chart import build_tap_marks
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.card_proofs import CardAuthenticity
from tapgate_client.schemas.cards import CardBlockReason, CardStatus, CardType

pages = Pages()

_ITEM_PATH = "/api/v1/cards/{serial}"
_TAPS_PATH = f"{_ITEM_PATH}/taps"
_FILTERS = {"search": "Search", "status": "Status", "type": "Type", "subscriber_id": "Customer"}
#: Tabs of the list: cards in use first.
_STATUSES = (
    CardStatus.ACTIVE,
    CardStatus.UNASSIGNED,
    CardStatus.BLOCKED,
    CardStatus.LOST,
    CardStatus.EXPIRED,
)

_CHILD_NAME = Field("child_name", "Child's name")
_RELATIONSHIP = Field("child_relationship", "Relationship", required=False)
_DAILY_LIMIT = Field("daily_limit", kind="money")
_SERIAL = Field("card_serial", "Serial number", hint="Printed on the card")
_PERMANENT_REASONS = (
    (CardBlockReason.LOST, "Lost (permanent)"),
    (CardBlockReason.STOLEN, "Stolen (permanent)"),
    (CardBlockReason.DAMAGED, "Damaged (permanent)"),
)
_TEMPORARY_REASONS = (
    (CardBlockReason.CUSTOMER_REQUEST, "Customer request"),
    (CardBlockReason.FRAUD, "Suspected fraud"),
    (CardBlockReason.COMPLIANCE, "Compliance check"),
)
_REASON = Field("reason", kind="choice", hint="Sent to the customer and saved in the audit log")

_build_state_action = partial(build_state_action, "card", _ITEM_PATH, "card")

ACTIONS = (
    Action(
        name="card.link",
        endpoint="POST /api/v1/cards/link",
        title="Link card",
        description="Ask the customer to enter their PIN. It becomes the PIN of the card.",
        fields=(
            Field("subscriber_id", kind="picker", picks="subscriber"),
            _SERIAL,
            Field("pin", "Customer's PIN", "pin"),
        ),
        success_message="Card linked.",
    ),
    Action(
        name="card.child",
        endpoint="POST /api/v1/cards/child",
        title="Issue a child card",
        description="Spends from the parent's wallet, up to a daily limit and with its own PIN.",
        fields=(
            Field("parent_subscriber_id", kind="picker", picks="subscriber"),
            _SERIAL,
            _CHILD_NAME,
            _RELATIONSHIP,
            _DAILY_LIMIT,
            Field("parent_pin", "Parent's PIN", "pin"),
            Field("child_pin", "Child's PIN", "pin"),
        ),
        success_message="Child card activated.",
    ),
    Action(
        name="card.update",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit child card",
        description="A new daily limit applies to the next payment. What the card has spent today "
        "counts toward it.",
        button="Save",
        fields=(_CHILD_NAME._replace(record_field="holder_name"), _RELATIONSHIP, _DAILY_LIMIT),
        prefill_path=_ITEM_PATH,
        success_message="Child card updated.",
    ),
    build_pin_change_action(
        "card", _ITEM_PATH, "Ask the child to enter both PINs. Only this card's PIN changes."
    ),
    build_pin_reset_action("card", _ITEM_PATH, "parent", title="Reset this card's PIN?"),
    _build_state_action(
        "block",
        "Declines all payments with this card. Lost, stolen and damaged cards are "
        "blocked permanently, and the customer needs a new card. Other blocks can be undone.",
        _REASON._replace(choices=_TEMPORARY_REASONS + _PERMANENT_REASONS),
    ),
    Action(
        name="card.lose",
        endpoint=f"POST {_ITEM_PATH}/block",
        title="Block this card permanently?",
        description="At the moment, the card is blocked temporarily. Once reported as lost, "
        "stolen or damaged, it never works again. This can't be undone.",
        button="Report as lost",
        fields=(_REASON._replace(choices=_PERMANENT_REASONS),),
        success_message="Card permanently blocked.",
        is_dangerous=True,
    ),
    Action(
        name="card.replace",
        endpoint=f"POST {_ITEM_PATH}/replace",
        title="Replace this card?",
        description="Blocks the card permanently and sends a code to the customer's phone. With "
        "the code, you link a new card. The customer keeps the PIN and doesn't enter it here.",
        button="Replace",
        fields=(_REASON._replace(choices=_PERMANENT_REASONS),),
        success_message="Card blocked. Code sent.",
        redirect_path="/console/cards/{serial}/replace",
    ),
    Action(
        name="card.replace_confirm",
        endpoint=f"POST {_ITEM_PATH}/replace/confirm",
        title="Link the new card",
        description="Choose a card that isn't linked yet, by serial, or hold it to a reader that "
        "types its UID. Then ask the customer for the code on their phone.",
        button="Link new card",
        fields=(
            Field("card_serial", "New card", "picker", picks="card"),
            Field("otp", "Code from the customer's phone", hint="6 digits, valid for 5 minutes"),
        ),
        success_message="Card replaced.",
        redirect_path="/console/cards/{serial}",
    ),
    _build_state_action(
        "unblock", "The card works again immediately, with the same PIN.", fields.OPTIONAL_REASON
    ),
)


@pages.get("/console/cards")
async def list_cards(request: PageRequest) -> Reply[bytes]:
    page, filter_errors = await get_filtered_list(
        request, "/api/v1/cards", _FILTERS, {"subscriber_id": "subscriber"}
    )
    return request.render(
        "cards/list.html", page=page, filter_errors=filter_errors, statuses=_STATUSES
    )


@pages.get("/console/cards/{serial}")
async def show_card(request: PageRequest, serial: str) -> Reply[bytes]:
    try:
        record = await request.get(_ITEM_PATH, serial=serial)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return request.render("cards/restricted.html", serial=serial)
    parts = await gather_by_name(
        history=request.get_if_allowed(
            "/api/v1/transactions", {"card_serial": record["serial"], "limit": RECENT_LIMIT}
        ),
        audit=get_audit(request, record["serial"], resource_type="card"),
        code=_load_parents_code(request, record),
        taps=_load_taps(request, record),
        clone_alert=_load_clone_alert(request, record),
    )
    return request.render(
        "cards/card.html",
        card=record,
        tap_limit=RECENT_LIMIT,
        marks=build_tap_marks(parts["taps"]),
        **parts,
    )


@pages.get("/console/cards/{serial}/replace")
async def show_replacement(request: PageRequest, serial: str) -> Reply[bytes]:
    """Render the second step of a replacement: the new card and the customer's code."""
    record = await request.get(_ITEM_PATH, serial=serial)
    if record["status"] in (CardStatus.UNASSIGNED, CardStatus.ACTIVE):
        return request.redirect(f"/console/cards/{serial}")  # replacing begins with blocking it
    code = None
    if record["subscriber_id"] is not None:
        code = await get_last_code(
            request, "/api/v1/subscribers/{id}", record["subscriber_id"], template="one_time_code"
        )
    return request.render("cards/replace.html", card=record, code=code)


@pages.get("/console/cards/{serial}/taps")
async def show_taps(request: PageRequest, serial: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, serial=serial)
    parts = await gather_by_name(
        taps=request.get(_TAPS_PATH, serial=serial),
        clone_alert=_load_clone_alert(request, record),
    )
    marks = build_tap_marks(parts["taps"])
    return request.render("cards/taps.html", card=record, marks=marks, **parts)


async def _load_taps(request: PageRequest, card: dict[str, Any]) -> Any:
    """Return a signing card's taps; None if the card does not sign, or without access."""
    if card["authenticity"] != CardAuthenticity.SUN:
        return None
    return await request.get_if_allowed(_TAPS_PATH, serial=card["serial"])


async def _load_clone_alert(request: PageRequest, card: dict[str, Any]) -> Any:
    """Return a card's unresolved clone alert, or None."""
    if card["authenticity"] != CardAuthenticity.SUN:
        return None
    alerts = await get_alerts(request, card_serial=card["serial"], limit=1)
    return None if alerts is None else next(iter(alerts["data"]), None)


async def _load_parents_code(request: PageRequest, card: dict[str, Any]) -> Any:
    """Return the message with the parent's newest one-time code; None for other cards."""
    if card["type"] != CardType.CHILD or card["subscriber_id"] is None:
        return None
    return await get_last_code(
        request, "/api/v1/subscribers/{id}", card["subscriber_id"], template="one_time_code"
    )
