"""Alert endpoints.

Admins can also list and resolve alerts about restricted subscribers, in masked form. No one-time
code is required, because it would be sent to the person under investigation.
"""

from collections.abc import Sequence

from tapgate.auth.disclosure import Subject, find_hidden_subjects
from tapgate.business.compliance.alerts import operations, queries
from tapgate.business.compliance.alerts.model import (
    Alert,
    require_transaction_decision,
    require_unresolved,
    to_record,
)
from tapgate.business.compliance.alerts.requesters import list_requesters, require_other_person
from tapgate.core.pagination import paginate
from tapgate.core.records import AlertId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.compliance import (
    AlertCreated,
    AlertFilters,
    AlertRecord,
    AlertResponse,
    Investigation,
    NewAlert,
    Resolution,
    TransactionDecision,
)
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Compliance",
    "/api/v1/compliance/alerts",
    access=Access(roles="AC"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


async def _to_record(
    request: GuardedRequest, reader: Database | Transaction, alert: Alert
) -> AlertRecord:
    return to_record(alert, masked=alert.id in await _find_masked(request, reader, [alert]))


async def _find_masked(
    request: GuardedRequest, reader: Database | Transaction, alerts: Sequence[Alert]
) -> set[int]:
    """Return the IDs of alerts that concern a subscriber hidden from the caller."""
    subjects = {Subject("alert", alert.public_id): alert.id for alert in alerts}
    hidden = await find_hidden_subjects(reader, request.caller, request.services.clock(), subjects)
    return {subjects[subject] for subject in hidden}


@endpoints.post(
    "",
    access=Access(roles="AC", service=True),
    status=201,
    other_statuses=(200,),
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.TRANSACTION_NOT_FOUND, Code.RULE_NOT_FOUND),
    unguarded=Unguarded.NO_EFFECT,
)
async def create_alert(
    request: RequestContext, tx: Transaction, body: NewAlert
) -> Reply[AlertCreated]:
    """Create an alert.

    If the subscriber already has an unresolved alert for the same rule that holds no transaction,
    no new alert is created. Instead, the existing alert's `occurrences` increases and the response
    status is 200. The same applies to an unresolved `SUPPORT_REQUEST` with the same
    `details.asked_by`.
    """
    alert, new = await operations.create(tx, request.actor, body)
    record = await _to_record(request, tx, alert)
    message = "Alert created" if new else "Alert is already open. Its occurrence count increased."
    response = AlertCreated(message=message, alert_id=record.id, alert=record)
    return Reply(response, status=201 if new else 200)


@endpoints.get("")
async def list_alerts(request: RequestContext, query: AlertFilters) -> Page[AlertRecord]:
    """List alerts, newest first, or oldest first with `order=oldest`.

    With `held=true`, only unresolved alerts that hold a transaction are listed.

    An alert that concerns a restricted subscriber has `masked: true` until the admin verifies a
    one-time code. The `details` of a masked alert contain only the fields written by a compliance
    rule, and its `investigation_notes` and `resolution_notes` are null.

    `card_serial` selects the unresolved clone alert for this card. A masked alert is not found by
    it, because it would reveal whose card it is.
    """
    rows = await queries.list_page(request.services.database, query)
    masked = await _find_masked(request, request.services.database, rows)
    if query.card_serial is not None:
        rows = [alert for alert in rows if alert.id not in masked]
    return paginate(rows, query, lambda alert: to_record(alert, masked=alert.id in masked))


@endpoints.get("/{id}")
async def get_alert(request: RequestContext, id: AlertId) -> AlertRecord:
    """Get an alert."""
    database = request.services.database
    return await _to_record(request, database, await queries.get(database, id))


@endpoints.post(
    "/{id}/assign", errors=(Code.ALREADY_RESOLVED,), unguarded=Unguarded.NO_EFFECT, effect="sets"
)
async def assign_alert(request: RequestContext, tx: Transaction, id: AlertId) -> AlertResponse:
    """Assign an alert to the calling admin."""
    admin_id = ids.decode(ids.ADMIN, request.actor.id)
    alert = await operations.assign(tx, request.actor, id, admin_id, "assigned")
    return AlertResponse(message="Alert assigned", alert=await _to_record(request, tx, alert))


@endpoints.post(
    "/{id}/unassign", errors=(Code.ALREADY_RESOLVED,), unguarded=Unguarded.NO_EFFECT, effect="sets"
)
async def unassign_alert(request: RequestContext, tx: Transaction, id: AlertId) -> AlertResponse:
    """Unassign an alert."""
    alert = await operations.assign(tx, request.actor, id, None, "unassigned")
    return AlertResponse(message="Alert unassigned", alert=await _to_record(request, tx, alert))


@endpoints.post("/{id}/investigate", errors=(Code.ALREADY_RESOLVED,), unguarded=Unguarded.NO_EFFECT)
async def investigate_alert(
    request: RequestContext, tx: Transaction, id: AlertId, body: Investigation
) -> AlertResponse:
    """Investigate an alert.

    Starts the investigation, or adds a note to an ongoing one. The note is stored in the audit log.
    """
    alert = await operations.investigate(tx, request.actor, id, body.note)
    return AlertResponse(
        message="Alert under investigation", alert=await _to_record(request, tx, alert)
    )


async def _describe_resolution(
    request: GuardedRequest, id: int, body: Resolution
) -> Proposal | None:
    database = request.services.database
    alert = await queries.get(database, id)
    require_unresolved(alert)
    require_transaction_decision(alert, body)
    if body.transaction_decision != TransactionDecision.RELEASE or alert.transaction_id is None:
        return None
    requesters = await list_requesters(database, alert.transaction_id)
    await require_other_person(database, request.principal, requesters)
    return Proposal(
        operations=(Operation.REVIEW_RELEASE,),
        summary=f"Release transaction {ids.encode(ids.TRANSACTION, alert.transaction_id)}",
        resource_id=ids.encode(ids.ALERT, id),
        other_makers=tuple(requesters),
    )


@endpoints.post(
    "/{id}/resolve",
    errors=(Code.ALREADY_RESOLVED,),
    guard=Guard(_describe_resolution, Operation.REVIEW_RELEASE, ends_in_ledger=True),
    step_up=("transaction_decision",),
)
async def resolve_alert(request: GuardedRequest, id: AlertId, body: Resolution) -> AlertResponse:
    """Resolve an alert.

    An alert that holds a transaction for review requires `transaction_decision`. Other alerts do
    not accept it. If a released transaction cannot be credited to the receiver, it fails and its
    funds are returned to the sender. `message` describes the outcome.

    Who asked for the transaction, directly or with an API key they created or rotated, cannot
    release it (403), with or without an approval rule. The same applies to everyone who created a
    signing key of the processor, terminal or partner that signed the request.
    """
    services, message = request.services, "Alert resolved"
    alert = await queries.get(services.database, id)
    require_unresolved(alert)
    require_transaction_decision(alert, body)
    if alert.review:
        approval = request.approval
        if body.transaction_decision == TransactionDecision.RELEASE:
            assert alert.transaction_id is not None
            requesters = await list_requesters(services.database, alert.transaction_id)
            await require_other_person(services.database, request.principal, requesters)
        alert, message = await operations.resolve_review(
            services.transaction,
            services.ledger,
            request.actor,
            alert,
            body,
            approval_id=None if approval is None else ids.decode(ids.APPROVAL, approval.id),
        )
    else:
        async with services.transaction() as tx:
            alert = await operations.resolve(tx, request.actor, alert.id, body)
    record = await _to_record(request, services.database, alert)
    return AlertResponse(message=message, alert=record)
