"""Compliance rule endpoints."""

import msgspec

from tapgate.business.compliance.rules import operations, queries
from tapgate.business.compliance.rules.model import to_record
from tapgate.core.pagination import paginate
from tapgate.core.records import RuleId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.compliance import NewRule, RuleRecord, RuleUpdate
from tapgate_client.schemas.pagination import Page, PageQuery

endpoints = Endpoints(
    "Compliance",
    "/api/v1/compliance/rules",
    access=Access(roles="AC"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


async def _describe_creation(request: GuardedRequest, body: NewRule) -> Proposal:
    return Proposal(
        operations=(Operation.COMPLIANCE_RULES,), summary=f"Create compliance rule {body.name}"
    )


async def _describe_change(
    request: GuardedRequest, id: int, body: RuleUpdate | None = None
) -> Proposal:
    rule = to_record(
        await queries.get(request.services.database, id), request.services.settings.currency
    )
    verb = "Delete" if body is None else "Change"
    return Proposal(
        operations=(Operation.COMPLIANCE_RULES,),
        summary=f"{verb} compliance rule {rule.name}",
        resource_id=rule.id,
        before=msgspec.to_builtins(rule),
    )


@endpoints.post(
    "",
    status=201,
    step_up=True,
    guard=Guard(_describe_creation, Operation.COMPLIANCE_RULES),
    errors=(Code.CURRENCY_NOT_SUPPORTED,),
)
async def create_rule(request: GuardedRequest, tx: Transaction, body: NewRule) -> RuleRecord:
    """Create a rule.

    `subject` selects whose transactions the rule screens: the paying subscriber (`payer`), the
    receiving subscriber (`payee`) or the participating agent (`agent`). Each of the
    `transaction_types` must involve that subject. At most 100 rules can exist.
    """
    services, currency = request.services, request.services.settings.currency
    rule = await operations.create(
        tx, request.actor, body, currency=currency, signals=services.signals
    )
    return to_record(rule, currency)


@endpoints.get("")
async def list_rules(request: RequestContext, query: PageQuery) -> Page[RuleRecord]:
    """List the compliance rules, newest first."""
    currency = request.services.settings.currency
    rows = await queries.list_page(request.services.database, query)
    return paginate(rows, query, lambda rule: to_record(rule, currency))


@endpoints.get("/{id}")
async def get_rule(request: RequestContext, id: RuleId) -> RuleRecord:
    """Get a rule."""
    rule = await queries.get(request.services.database, id)
    return to_record(rule, request.services.settings.currency)


@endpoints.put(
    "/{id}",
    step_up=True,
    guard=Guard(_describe_change, Operation.COMPLIANCE_RULES),
    errors=(Code.CURRENCY_NOT_SUPPORTED,),
)
async def update_rule(
    request: GuardedRequest, tx: Transaction, id: RuleId, body: RuleUpdate
) -> RuleRecord:
    """Update a rule.

    Omitted fields keep their value. The threshold is a count for `TRANSACTION_COUNT` and
    `PIN_FAILURES`, and an amount for all other types. The rule matches values above the threshold.
    """
    services, currency = request.services, request.services.settings.currency
    rule = await operations.update(
        tx, request.actor, id, body, currency=currency, signals=services.signals
    )
    return to_record(rule, currency)


@endpoints.delete("/{id}", step_up=True, guard=Guard(_describe_change, Operation.COMPLIANCE_RULES))
async def delete_rule(request: GuardedRequest, tx: Transaction, id: RuleId) -> None:
    """Delete a rule.

    The rule's alerts are kept and retain its ID. Transactions that the rule holds remain under
    review.
    """
    services, currency = request.services, request.services.settings.currency
    await operations.delete(tx, request.actor, id, currency=currency, signals=services.signals)
