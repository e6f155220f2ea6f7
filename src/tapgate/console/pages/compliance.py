"""Compliance: the queue of alerts, one alert with all that helps to decide, and deciding."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Final

from tapgate.console.acts import Act, Field
from tapgate.console.pages.compliance_rules import MOST_RULES, RULES, in_words
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_ALERTS: Final = "/api/v1/compliance/alerts"
_ALERT: Final = f"{_ALERTS}/{{id}}"
_RULE: Final = f"{RULES}/{{id}}"
_SUBSCRIBER: Final = "/api/v1/subscribers/{id}"
_TRANSACTION: Final = "/api/v1/transactions/{id}"
_AUDIT: Final = "/api/v1/audit/logs"
_PAGE: Final = 25
_FEW: Final = 8

TABS: Final = {
    "open": "Open",
    "investigating": "Investigating",
    "resolved": "Resolved",
    "false_positive": "False positive",
    "all": "All",
}
_WAITING: Final = ("open", "investigating")

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


def _decision(name: str) -> Field:
    return Field("transaction_decision", "Decision", "hidden", value=name)


ACTS = (
    Act(
        name="alert.investigate",
        endpoint=f"POST {_ALERT}/investigate",
        title="Look into this alert",
        explains="Others see that somebody looks into it. What is held stays held.",
        button="Investigate",
        fields=(Field("note", "Note", "long", hint="Kept in the audit trail", required=False),),
        done="The alert is under investigation.",
    ),
    Act(
        name="alert.resolve",
        endpoint=f"POST {_ALERT}/resolve",
        title="Resolve this alert?",
        explains="It leaves the queue. No money is moved. This cannot be undone; what happens "
        "again raises a new alert.",
        button="Resolve",
        fields=(_OUTCOME, _NOTES),
        done="The alert is resolved.",
    ),
    Act(
        name="alert.release",
        endpoint=f"POST {_ALERT}/resolve",
        title="Release the payment?",
        explains="The receiver has the money at once, and the fee is charged. If the receiver "
        "cannot take it, the payment fails and the payer has it back. This cannot be undone.",
        button="Release the payment",
        fields=(_OUTCOME, _NOTES, _decision("release")),
        says="message",
    ),
    Act(
        name="alert.reject",
        endpoint=f"POST {_ALERT}/resolve",
        title="Reject the payment?",
        explains="The payment fails. The payer can spend the money again at once, without a fee; "
        "the receiver gets nothing. This cannot be undone.",
        button="Reject the payment",
        fields=(_OUTCOME, _NOTES, _decision("reject")),
        says="message",
        dangerous=True,
    ),
)


@pages.get("/console/compliance")
async def queue(visit: Visit) -> Reply[bytes]:
    asked: dict[str, str | int] = {
        "status": "open",
        "limit": _PAGE,
        **visit.query.pick("status", "severity", "subscriber_id", "cursor"),
    }
    tab = asked["status"]
    if tab == "all":
        del asked["status"]
    found = await visit.get(_ALERTS, asked)
    rules, people, held = await asyncio.gather(
        visit.get(RULES, {"limit": MOST_RULES}),
        _each(visit, _SUBSCRIBER, (alert["subscriber_id"] for alert in found["data"])),
        _each(
            visit,
            _TRANSACTION,
            (alert["transaction_id"] for alert in found["data"] if _asks_for_decision(alert)),
        ),
    )
    return visit.page(
        "compliance/queue.html",
        found=found,
        tab=tab,
        tabs=TABS,
        rules={rule["id"]: rule for rule in rules["data"]},
        people=people,
        held=held,
        now=visit.call.services.clock(),
    )


@pages.get("/console/compliance/alerts/{id}")
async def one_alert(visit: Visit, id: str) -> Reply[bytes]:
    alert = await visit.get(at(_ALERT, {"id": id}))
    subject, few = alert["subscriber_id"], {"limit": _FEW}
    rule, transaction, audit, person, about = await asyncio.gather(
        _open_to_me(visit, _RULE, alert["rule_id"]),
        _open_to_me(visit, _TRANSACTION, alert["transaction_id"]),
        visit.get_if_allowed(f"GET {_AUDIT}", _AUDIT, {"resource_id": id, **few}),
        _open_to_me(visit, _SUBSCRIBER, subject),
        _about(visit, subject),
    )
    is_waiting = alert["status"] in _WAITING
    return visit.page(
        "compliance/alert.html",
        alert=alert,
        rule=rule,
        sentence=None if rule is None else in_words(rule),
        transaction=transaction,
        person=person,
        audit=audit,
        waiting=is_waiting,
        # A decision was made where the transaction is under review no more.
        holds=is_waiting
        and _asks_for_decision(alert)
        and (transaction is None or transaction["status"] == "under_review"),
        now=visit.call.services.clock(),
        **about,
    )


async def _about(visit: Visit, subscriber_id: str | None) -> dict[str, Any]:
    """What is known of whom an alert is about; of a restricted person only the other alerts."""
    names = ("balance", "limits", "history", "others")
    if subscriber_id is None:
        return dict.fromkeys(names)
    found = await asyncio.gather(
        _open_to_me(visit, "/api/v1/balance/{id}", subscriber_id),
        _open_to_me(visit, f"{_SUBSCRIBER}/limits", subscriber_id),
        _if_open(visit.get("/api/v1/transactions", {"user_id": subscriber_id, "limit": _FEW})),
        visit.get(_ALERTS, {"subscriber_id": subscriber_id, "limit": _FEW}),
    )
    return dict(zip(names, found, strict=True))


def _asks_for_decision(alert: dict[str, Any]) -> bool:
    """Whether a transaction was held for it: by a rule that says so, and never by hand."""
    is_review = alert["details"].get("action") == "review"
    return is_review and alert["transaction_id"] is not None and alert["rule_id"] is not None


async def _open_to_me(visit: Visit, path: str, public_id: str | None) -> Any:
    """None for what belongs to a restricted person who has not let this admin in."""
    return None if public_id is None else await _if_open(visit.get(at(path, {"id": public_id})))


async def _if_open(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except ApiError as error:
        # A rule may have been deleted since it raised the alert.
        if error.code not in (Code.OTP_REQUIRED, Code.RULE_NOT_FOUND):
            raise
        return None


async def _each(visit: Visit, path: str, public_ids: Iterable[str | None]) -> dict[str, Any]:
    """Those that are open to this admin, by identifier."""
    wanted = list(dict.fromkeys(one for one in public_ids if one is not None))
    found = await asyncio.gather(*(_open_to_me(visit, path, one) for one in wanted))
    return {one: record for one, record in zip(wanted, found, strict=True) if record is not None}
