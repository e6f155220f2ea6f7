"""Compliance alert queue, alert details and review actions."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.ledger.card_proofs.rejected_taps import CLONE_ALERT_TYPE
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.case import load_case
from tapgate.sites.console.components.queues import build_assign_actions, find_next
from tapgate.sites.console.components.related import gather_by_name, get_audit, get_rules
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.components.stories import tell_alert
from tapgate.sites.console.components.tap_chart import build_tap_marks
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest, Query
from tapgate.sites.console.pages.compliance_rules import RULES_PATH, describe_rule
from tapgate.sites.console.site import Pages
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

pages = Pages()

_ALERTS_PATH: Final = "/api/v1/compliance/alerts"
_ALERT_PATH: Final = f"{_ALERTS_PATH}/{{id}}"
_RULE_PATH: Final = f"{RULES_PATH}/{{id}}"
_SUBSCRIBER_PATH: Final = "/api/v1/subscribers/{id}"
_TRANSACTION_PATH: Final = "/api/v1/transactions/{id}"
_RECENT_LIMIT: Final = 8
_PAGE_SIZE: Final = 25

_QUEUE_PATH: Final = "/console/compliance"
_NEXT_PATH: Final = f"{_QUEUE_PATH}/next"
_NEXT_HELD_PATH: Final = f"{_NEXT_PATH}?status=held"

#: The held-payments tab is a separate filter.
_HELD: Final = "held"
TABS: Final = {
    "open": "Open",
    _HELD: "Held payments",
    "investigating": "Investigating",
    "resolved": "Resolved",
    "false_positive": "False positive",
    "all": "All",
}
_UNRESOLVED_STATUSES: Final = ("open", "investigating")

_OUTCOME: Final = Field(
    "status", "Outcome", "choice", (("resolved", "Confirmed"), ("false_positive", "False positive"))
)
_NOTES: Final = Field("resolution_notes", "Notes", "long", hint="Saved in the audit log")


def _build_decision_field(name: str) -> Field:
    return Field("transaction_decision", "Decision", "hidden", value=name)


ACTIONS = (
    *build_assign_actions("alert", _ALERT_PATH, "alert"),
    Action(
        name="alert.investigate",
        endpoint=f"POST {_ALERT_PATH}/investigate",
        title="Investigate this alert",
        description="Marks it as in progress for the team. Held funds stay on hold.",
        button="Investigate",
        fields=(Field("note", kind="long", hint="Visible on the alert", required=False),),
        success_message="Alert under investigation.",
    ),
    build_state_action(
        "alert",
        _ALERT_PATH,
        "alert",
        "resolve",
        "Removes it from the queue. No money moves. This can't be undone. If it "
        "happens again, a new alert is created.",
        _OUTCOME,
        _NOTES,
        redirect_path=_NEXT_PATH,
    ),
    Action(
        name="alert.release",
        endpoint=f"POST {_ALERT_PATH}/resolve",
        title="Release this payment?",
        description="Pays the recipient immediately and charges the fee. If the recipient can't be "
        "paid, the payment is declined and the payer gets the money back. This can't be undone.",
        fields=(_OUTCOME, _NOTES, _build_decision_field("release")),
        message_field="message",
        redirect_path=_NEXT_HELD_PATH,
    ),
    Action(
        name="alert.reject",
        endpoint=f"POST {_ALERT_PATH}/resolve",
        title="Reject this payment?",
        description="Declines the payment. The payer gets the money back immediately and pays no "
        "fee. This can't be undone.",
        fields=(_OUTCOME, _NOTES, _build_decision_field("reject")),
        message_field="message",
        is_dangerous=True,
        redirect_path=_NEXT_HELD_PATH,
    ),
)


@pages.get(_QUEUE_PATH)
async def list_alerts(request: PageRequest) -> Reply[bytes]:
    tab = request.query.get("status") or "open"
    page = await request.get(
        _ALERTS_PATH,
        {**get_filters(request), "limit": _PAGE_SIZE, **request.query.pick("cursor")},
    )
    alerts = page["data"]
    held_ids = [alert["transaction_id"] for alert in alerts if _needs_decision(alert)]
    rules, customers, held = await asyncio.gather(
        get_rules(request),
        _load_visible(request, _SUBSCRIBER_PATH, [alert["subscriber_id"] for alert in alerts]),
        _load_visible(request, _TRANSACTION_PATH, held_ids),
    )
    return request.render(
        "compliance/queue.html",
        page=page,
        tab=tab,
        tabs=TABS,
        rules=rules,
        customers=customers,
        held=held,
        now=request.context.services.clock(),
    )


@pages.get(_NEXT_PATH)
async def show_next(request: PageRequest) -> Reply[bytes]:
    """Redirect to the tab's next alert, oldest first, or to the queue if there is none."""
    filters = get_filters(request)
    is_held = "held" in filters
    if not is_held:
        filters["held"] = "false"
    next_id = await find_next(request, _ALERTS_PATH, {**filters, "order": "oldest"})
    queue_path = f"{_QUEUE_PATH}?status={_HELD}" if is_held else _QUEUE_PATH
    return request.redirect(queue_path if next_id is None else f"{_QUEUE_PATH}/alerts/{next_id}")


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query, whose tab is in `status`."""
    filters = {
        "status": "open",
        **request.query.pick("status", "severity", "subscriber_id", "assignee"),
    }
    if filters["status"] == _HELD:
        filters["held"] = "true"
    if filters["status"] in (_HELD, "all"):
        del filters["status"]
    return filters


@pages.get("/console/compliance/alerts/{id}")
async def show_alert(request: PageRequest, id: str) -> Reply[bytes]:
    alert = await request.get(_ALERT_PATH, id=id)
    subscriber_id = alert["subscriber_id"]
    parts = await gather_by_name(
        rule=_load_if_visible(request, _RULE_PATH, alert["rule_id"]),
        transaction=_load_if_visible(request, _TRANSACTION_PATH, alert["transaction_id"]),
        audit=get_audit(request, id, _RECENT_LIMIT),
        rules=get_rules(request),
        case=load_case(request, subscriber_id),
        limits=_load_if_visible(request, f"{_SUBSCRIBER_PATH}/limits", subscriber_id),
        merchant=_load_merchant(request, alert["details"].get("processor_id")),
        taps=_load_taps(request, alert),
        alerts=_load_if_visible(
            request,
            _ALERTS_PATH,
            subscriber_id,
            {"subscriber_id": subscriber_id, "limit": _RECENT_LIMIT},
        ),
    )
    rule, transaction = parts["rule"], parts["transaction"]
    is_unresolved = alert["status"] in _UNRESOLVED_STATUSES
    return request.render(
        "compliance/alert.html",
        alert=alert,
        marks=build_tap_marks(parts.pop("taps")),
        story=tell_alert(request.translator, alert, transaction, parts.pop("merchant")),
        rule_text=None if rule is None else describe_rule(rule, request.translator),
        is_unresolved=is_unresolved,
        # A transaction that is not under review anymore has already been decided.
        is_held=is_unresolved
        and _needs_decision(alert)
        and (transaction is None or transaction["status"] == "under_review"),
        now=request.context.services.clock(),
        **parts,
    )


def _needs_decision(alert: dict[str, Any]) -> bool:
    """Return whether the alert's transaction was held for review.

    Only rules with the action `review` hold transactions; manually raised alerts never do.
    """
    is_review = alert["details"].get("action") == "review"
    return is_review and alert["transaction_id"] is not None and alert["rule_id"] is not None


async def _load_if_visible(
    request: PageRequest, path: str, public_id: str | None, query: Query | None = None
) -> Any:
    """Load a record. Return None if there is no ID, it is hidden, or it is a deleted rule."""
    if public_id is None:
        return None
    try:
        return await request.get(path, query, id=public_id)
    except ApiError as error:
        # A rule may have been deleted since it raised the alert.
        if error.code not in (Code.OTP_REQUIRED, Code.RULE_NOT_FOUND):
            raise
        return None


async def _load_merchant(request: PageRequest, public_id: Any) -> Any:
    """Load a merchant that an alert's details name, which any service can write."""
    if not isinstance(public_id, str) or ids.decode(ids.PROCESSOR, public_id) is None:
        return None
    try:
        return await request.get("/api/v1/processors/{id}", id=public_id)
    except ApiError as error:
        if error.code is not Code.PROCESSOR_NOT_FOUND:
            raise
        return None


async def _load_taps(request: PageRequest, alert: dict[str, Any]) -> Any:
    """Load the taps of a card that may have been cloned; None for other alerts."""
    serial = alert["details"].get("card_serial")
    if alert["alert_type"] != CLONE_ALERT_TYPE or not isinstance(serial, str) or not serial:
        return None
    try:
        return await request.get_if_allowed("/api/v1/cards/{serial}/taps", serial=serial)
    except ApiError as error:
        if error.code not in (Code.OTP_REQUIRED, Code.CARD_NOT_FOUND, Code.NOT_FOUND):
            raise  # the serial is any text, which may not even be a path
        return None


async def _load_visible(
    request: PageRequest, path: str, public_ids: Iterable[str | None]
) -> dict[str, Any]:
    """Load the records that are visible to this admin, by ID."""
    records = await gather_by_name(
        **{
            public_id: _load_if_visible(request, path, public_id)
            for public_id in dict.fromkeys(public_ids)
            if public_id is not None
        }
    )
    return {public_id: record for public_id, record in records.items() if record is not None}
