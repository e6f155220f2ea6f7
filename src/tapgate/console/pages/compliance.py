"""Compliance alert queue, alert details and review actions."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Final

from tapgate.console.actions import Action, Field
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.pages.compliance_rules import MAX_RULES, RULES_PATH, describe_rule
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_ALERTS_PATH: Final = "/api/v1/compliance/alerts"
_ALERT_PATH: Final = f"{_ALERTS_PATH}/{{id}}"
_RULE_PATH: Final = f"{RULES_PATH}/{{id}}"
_SUBSCRIBER_PATH: Final = "/api/v1/subscribers/{id}"
_TRANSACTION_PATH: Final = "/api/v1/transactions/{id}"
_AUDIT_PATH: Final = "/api/v1/audit/logs"
_PAGE_SIZE: Final = 25
_RECENT_LIMIT: Final = 8

TABS: Final = {
    "open": "Open",
    "investigating": "Investigating",
    "resolved": "Resolved",
    "false_positive": "False positive",
    "all": "All",
}
_UNRESOLVED_STATUSES: Final = ("open", "investigating")

_OUTCOME: Final = Field(
    "status",
    "How it turned out",
    "choice",
    (
        ("resolved", "It was right to look"),
        ("false_positive", "A false positive: nothing was wrong"),
    ),
)
_NOTES: Final = Field("resolution_notes", "Notes", "long", hint="Why; kept in the audit trail")


def _build_decision_field(name: str) -> Field:
    return Field("transaction_decision", "Decision", "hidden", value=name)


ACTIONS = (
    Action(
        name="alert.investigate",
        endpoint=f"POST {_ALERT_PATH}/investigate",
        title="Look into this alert",
        description="Others see that somebody looks into it. What is held stays held.",
        button="Investigate",
        fields=(Field("note", "Note", "long", hint="Kept in the audit trail", required=False),),
        success_message="The alert is under investigation.",
    ),
    Action(
        name="alert.resolve",
        endpoint=f"POST {_ALERT_PATH}/resolve",
        title="Resolve this alert?",
        description="It leaves the queue. No money is moved. This cannot be undone; what happens "
        "again raises a new alert.",
        button="Resolve",
        fields=(_OUTCOME, _NOTES),
        success_message="The alert is resolved.",
    ),
    Action(
        name="alert.release",
        endpoint=f"POST {_ALERT_PATH}/resolve",
        title="Release the payment?",
        description="The receiver has the money at once, and the fee is charged. If the receiver "
        "cannot take it, the payment fails and the payer has it back. This cannot be undone.",
        button="Release the payment",
        fields=(_OUTCOME, _NOTES, _build_decision_field("release")),
        message_field="message",
    ),
    Action(
        name="alert.reject",
        endpoint=f"POST {_ALERT_PATH}/resolve",
        title="Reject the payment?",
        description=(
            "The payment fails. The payer can spend the money again at once, without a fee;"
            " the receiver gets nothing. This cannot be undone."
        ),
        button="Reject the payment",
        fields=(_OUTCOME, _NOTES, _build_decision_field("reject")),
        message_field="message",
        is_dangerous=True,
    ),
)


@pages.get("/console/compliance")
async def list_alerts(visit: PageRequest) -> Reply[bytes]:
    asked: dict[str, str | int] = {
        "status": "open",
        "limit": _PAGE_SIZE,
        **visit.query.pick("status", "severity", "subscriber_id", "cursor"),
    }
    tab = asked["status"]
    if tab == "all":
        del asked["status"]
    found = await visit.get(_ALERTS_PATH, asked)
    rules, people, held = await asyncio.gather(
        visit.get(RULES_PATH, {"limit": MAX_RULES}),
        _load_visible(visit, _SUBSCRIBER_PATH, (alert["subscriber_id"] for alert in found["data"])),
        _load_visible(
            visit,
            _TRANSACTION_PATH,
            (alert["transaction_id"] for alert in found["data"] if _needs_decision(alert)),
        ),
    )
    return visit.render(
        "compliance/queue.html",
        found=found,
        tab=tab,
        tabs=TABS,
        rules={rule["id"]: rule for rule in rules["data"]},
        people=people,
        held=held,
        now=visit.context.services.clock(),
    )


@pages.get("/console/compliance/alerts/{id}")
async def show_alert(visit: PageRequest, id: str) -> Reply[bytes]:
    alert = await visit.get(build_path(_ALERT_PATH, {"id": id}))
    subject, few = alert["subscriber_id"], {"limit": _RECENT_LIMIT}
    rule, transaction, audit, person, about = await asyncio.gather(
        _load_if_visible(visit, _RULE_PATH, alert["rule_id"]),
        _load_if_visible(visit, _TRANSACTION_PATH, alert["transaction_id"]),
        visit.get_if_allowed(f"GET {_AUDIT_PATH}", _AUDIT_PATH, {"resource_id": id, **few}),
        _load_if_visible(visit, _SUBSCRIBER_PATH, subject),
        _load_subscriber_details(visit, subject),
    )
    is_waiting = alert["status"] in _UNRESOLVED_STATUSES
    return visit.render(
        "compliance/alert.html",
        alert=alert,
        rule=rule,
        sentence=None if rule is None else describe_rule(rule),
        transaction=transaction,
        person=person,
        audit=audit,
        waiting=is_waiting,
        # A transaction that is not under review anymore has already been decided.
        holds=is_waiting
        and _needs_decision(alert)
        and (transaction is None or transaction["status"] == "under_review"),
        now=visit.context.services.clock(),
        **about,
    )


async def _load_subscriber_details(visit: PageRequest, subscriber_id: str | None) -> dict[str, Any]:
    """Load details about the subscriber of an alert; if restricted, only their other alerts."""
    names = ("balance", "limits", "history", "others")
    if subscriber_id is None:
        return dict.fromkeys(names)
    found = await asyncio.gather(
        _load_if_visible(visit, "/api/v1/balance/{id}", subscriber_id),
        _load_if_visible(visit, f"{_SUBSCRIBER_PATH}/limits", subscriber_id),
        _none_if_hidden(
            visit.get("/api/v1/transactions", {"user_id": subscriber_id, "limit": _RECENT_LIMIT})
        ),
        visit.get(_ALERTS_PATH, {"subscriber_id": subscriber_id, "limit": _RECENT_LIMIT}),
    )
    return dict(zip(names, found, strict=True))


def _needs_decision(alert: dict[str, Any]) -> bool:
    """Return whether the alert's transaction was held for review.

    Only rules with the action `review` hold transactions; manually raised alerts never do.
    """
    is_review = alert["details"].get("action") == "review"
    return is_review and alert["transaction_id"] is not None and alert["rule_id"] is not None


async def _load_if_visible(visit: PageRequest, path: str, public_id: str | None) -> Any:
    """Load a record; return None without an id, if it is hidden, or if it is a deleted rule."""
    return (
        None
        if public_id is None
        else await _none_if_hidden(visit.get(build_path(path, {"id": public_id})))
    )


async def _none_if_hidden(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except ApiError as error:
        # A rule may have been deleted since it raised the alert.
        if error.code not in (Code.OTP_REQUIRED, Code.RULE_NOT_FOUND):
            raise
        return None


async def _load_visible(
    visit: PageRequest, path: str, public_ids: Iterable[str | None]
) -> dict[str, Any]:
    """Load the records that are visible to this admin, by id."""
    wanted = list(dict.fromkeys(one for one in public_ids if one is not None))
    found = await asyncio.gather(*(_load_if_visible(visit, path, one) for one in wanted))
    return {one: record for one, record in zip(wanted, found, strict=True) if record is not None}
