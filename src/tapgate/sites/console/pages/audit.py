"""Audit log and hash chain verification."""

import asyncio
from operator import itemgetter

from tapgate.http.endpoint import Reply
from tapgate.sites.console.audit_events import AUDIT_EVENTS
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages

pages = Pages()

_LOGS_PATH = "/api/v1/audit/logs"
_FILTERS = {
    "event": "Event",
    "actor_id": "Actor",
    "resource_type": "Resource type",
    "resource_id": "Resource",
    "result": "Result",
    "from": "From",
    "to": "To",
}
#: Records that the pickers find. Other actors and resources, such as services and cards, are
#: entered by their IDs.
PICKED_TYPES = {"actor_id": "admin,key", "resource_id": "subscriber,agent,processor,partner,admin"}
RESOURCE_TYPES = (
    "account_rule", "admin", "agent", "alert", "api_key", "approval", "approval_rules",
    "bank_account", "bank_statement", "bank_statement_line", "batch", "branding", "card",
    "cash_out_request", "commission_rules", "compliance_rule", "dispute", "endpoint", "fee_rules",
    "float_request", "gl_codes", "installation", "keyset", "ledger", "ledger_day", "ledger_key",
    "partner", "payout", "payout_run", "payout_schedule", "processor", "recall", "saved_reply",
    "signing_key", "subscriber", "support", "terminal", "transaction", "webhook_delivery",
    "webhook_endpoint",
)  # fmt: skip
_NEWEST_LIMIT = 100  # sealing takes seconds, so the newest entries usually include a sealed one


@pages.get("/console/audit")
async def list_entries(request: PageRequest) -> Reply[bytes]:
    page, filter_errors = await get_filtered_list(
        request, _LOGS_PATH, _FILTERS, PICKED_TYPES, allows_text=True
    )
    event = request.query.get("event")
    unlisted = set() if event is None else {event} - set(AUDIT_EVENTS)
    return request.render(
        "audit/list.html",
        page=page,
        names={record["id"]: record["name"] for record in page["names"]},
        filter_errors=filter_errors,
        filters=tuple(_FILTERS),
        picked_types=PICKED_TYPES,
        events=sorted(
            (
                (event, request.translator.translate_event(event))
                for event in (*AUDIT_EVENTS, *unlisted)
            ),
            key=itemgetter(1),
        ),
        resource_types=sorted(
            ((name, request.translator.translate_resource_type(name)) for name in RESOURCE_TYPES),
            key=itemgetter(1),
        ),
    )


@pages.get("/console/audit/verify")
async def verify_chain(request: PageRequest) -> Reply[bytes]:
    verification, newest = await asyncio.gather(
        request.get("/api/v1/audit/verify", request.query.pick("full")),
        request.get(_LOGS_PATH, {"limit": _NEWEST_LIMIT}),
    )
    last_sealed = next((entry for entry in newest["data"] if entry["hash"] is not None), None)
    return request.render("audit/verified.html", verification=verification, last_sealed=last_sealed)
