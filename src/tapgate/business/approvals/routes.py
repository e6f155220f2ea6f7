"""Endpoints for approval rules and approvals."""

import msgspec

from tapgate.auth.owners import APPROVALS
from tapgate.business.approval_rules.check import load_approver_counts, require_enough_approvers
from tapgate.business.approval_rules.model import build_rule_change_requirement
from tapgate.business.approval_rules.people import RolesByOperation
from tapgate.business.approval_rules.queries import get_suspension, list_rules, list_rules_in_force
from tapgate.business.approvals import model, operations, queries, records
from tapgate.business.approvals.execution import execute
from tapgate.business.approvals.model import Approval
from tapgate.core.pagination import paginate
from tapgate.core.records import ApprovalId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import (
    GUARDABLE_OPERATIONS,
    ApprovalFilters,
    ApprovalRecord,
    ApprovalRule,
    ApprovalRules,
    ApprovalRulesRecord,
    Operation,
    RuleApprovers,
)
from tapgate_client.schemas.common import Reason
from tapgate_client.schemas.pagination import Page

rule_endpoints = Endpoints(
    "Approvals", "/api/v1/admin/approval-rules", objects=ObjectAccess.ANY, owners=NEVER
)
endpoints = Endpoints(
    "Approvals",
    "/api/v1/approvals",
    access=Access(roles="ACSF"),
    objects=ObjectAccess.APPROVABLE,
    owners=NEVER,
)

#: An owner's user reads the requests that the user made.
_OWN_LIST = OwnerAccess(binding=Binding.LIST, roles="MKP", rows=APPROVALS, key_roles="")
_OWN_REQUEST = OwnerAccess(binding=Binding.ROW, roles="MKP", rows=APPROVALS, key_roles="")
_DECISION_ERRORS = (Code.APPROVAL_NOT_PENDING,)


@rule_endpoints.get("", access=Access(roles="ACSF"))
async def get_approval_rules(request: RequestContext) -> ApprovalRulesRecord:
    """Get the approval rules.

    `operations` lists the operations that rules can guard. While `suspended` is present, the rules
    do not apply.
    """
    services = request.services
    rules = await list_rules(services.database)
    currency = services.settings.currency
    return await _build_rules_record(
        services.database,
        services.guarded_roles,
        [model.to_rule_record(rule, currency) for rule in rules],
        currency,
    )


async def _describe_rule_change(request: GuardedRequest, body: ApprovalRules) -> Proposal | None:
    services, currency = request.services, request.services.settings.currency
    model.require_valid_rules(body, currency)
    await require_enough_approvers(
        services.database, services.guarded_roles, model.parse_rules(body.data, currency)
    )
    rules = await list_rules_in_force(services.database)
    if not rules:
        return None
    return Proposal(
        operations=(Operation.APPROVAL_RULES,),
        summary="Change the approval rules",
        before={
            "data": msgspec.to_builtins([model.to_rule_record(rule, currency) for rule in rules])
        },
        requirement=build_rule_change_requirement(rules),
    )


@rule_endpoints.put(
    "",
    access=Access(roles="A"),
    guard=Guard(_describe_rule_change, Operation.APPROVAL_RULES),
    step_up=True,
)
async def replace_approval_rules(
    request: GuardedRequest, tx: Transaction, body: ApprovalRules
) -> ApprovalRulesRecord:
    """Replace the approval rules.

    With a rule, an admin's operation waits until `approvers` other admins, whose role is one of
    `roles`, have approved it. `above` limits the rule to requests of more than this amount. The
    maker's executed and pending requests for the operation in the last 24 hours are added to the
    amount. Only operations with an amount can have `above`.

    Rules for `agent_fund` and `partner_fund` also apply to transfers into agent and partner
    accounts.

    Once rules exist, changing them requires approval too. It needs as many approvals as the
    strictest rule, from a `system_admin` or an admin with a role that may approve anything.

    For every active admin who may request an operation, enough other people must be able to approve
    it. Otherwise the rules are rejected with 422, and `details.missing` lists the operations.
    """
    services, currency = request.services, request.services.settings.currency
    model.require_valid_rules(body, currency)
    rules = await operations.replace_rules(
        tx,
        request.actor,
        model.parse_rules(body.data, currency),
        makers=services.guarded_roles,
        currency=currency,
        is_approved=request.approval is not None,
    )
    return await _build_rules_record(tx, services.guarded_roles, rules, currency)


async def _build_rules_record(
    reader: Database | Transaction,
    makers: RolesByOperation,
    rules: list[ApprovalRule],
    currency: str,
) -> ApprovalRulesRecord:
    counts = await load_approver_counts(reader, makers, model.parse_rules(rules, currency))
    return ApprovalRulesRecord(
        data=rules,
        operations=list(GUARDABLE_OPERATIONS),
        people=[
            RuleApprovers(
                operation=count.rule.operation,
                names=[admin.name for admin in count.approvers],
                approvers=count.rule.approvers,
                available=count.available,
                maker=None if count.maker is None else count.maker.name,
            )
            for count in counts
        ],
        suspended=await get_suspension(reader),
    )


@endpoints.get("", owners=_OWN_LIST)
async def list_approvals(request: RequestContext, query: ApprovalFilters) -> Page[ApprovalRecord]:
    """List approvals, newest first.

    A `system_admin` sees all approvals. Other admins see their own requests and those that their
    role may approve. Users of a merchant or partner see their own requests, without the people who
    decided.
    """
    services = request.services
    rows = await queries.list_page(
        services.database, query, request.principal, services.clock(), request.owner_view
    )
    built = await records.build_all(request, services.database, rows)
    by_id = {row.id: record for row, record in zip(rows, built, strict=True)}
    return paginate(rows, query, lambda row: by_id[row.id])


@endpoints.get("/{id}", owners=_OWN_REQUEST, compresses=False)  # the result may contain a secret
async def get_approval(request: RequestContext, id: ApprovalId) -> ApprovalRecord:
    """Get an approval.

    Secrets in `result`, such as a new API key, are returned only once and only to the maker. An
    invitation or password reset link is never returned to the maker. It is returned to the approver
    who executed the request, in the `approve` response if the request was executed by then.
    `disclosed` is true if `result` has such values.
    """
    approval = await queries.get(request.services.database, id)
    queries.require_visible(request.principal, approval)
    return await _build_record(request, approval, discloses=request.method == "GET")


@endpoints.post(
    "/{id}/approve",
    errors=(*_DECISION_ERRORS, Code.OTP_REQUIRED),
    step_up=True,
    unguarded=Unguarded.DECISION,
)
async def approve_request(request: RequestContext, id: ApprovalId) -> ApprovalRecord:
    """Approve a request.

    With the last approval that it needs, the request is executed as its maker, with the approval's
    ID as idempotency key and all checks repeated. If a check fails, the approval is `failed` with
    the error code. Admins cannot approve their own requests, and two accounts with the same email
    address, ignoring case and the part after a plus sign, are the same person.

    If one of two admins has seen the other's invitation or reset link, they cannot approve each
    other's requests (403) and count once among several approvers, until a third admin has confirmed
    the account with `POST /api/v1/admin/users/{id}/confirm`.

    If the values are masked, because the request concerns a restricted subscriber, the approval
    fails with `OTP_REQUIRED` until you have verified a code with
    `POST /api/v1/subscribers/{id}/restricted-access`.
    """
    async with request.services.transaction() as tx:
        is_complete = await operations.approve(tx, request.actor, id)
    if is_complete:
        await execute(request.services, id)
    return await _build_record(request, await queries.get(request.services.database, id))


@endpoints.post("/{id}/reject", errors=_DECISION_ERRORS, unguarded=Unguarded.DECISION)
async def reject_request(
    request: RequestContext, tx: Transaction, id: ApprovalId, body: Reason
) -> ApprovalRecord:
    """Reject a request."""
    currency = request.services.settings.currency
    await operations.reject(tx, request.actor, id, body.reason, currency=currency)
    return await records.build(request, tx, await queries.get(tx, id))


@endpoints.post("/{id}/cancel", errors=_DECISION_ERRORS, unguarded=Unguarded.DECISION)
async def cancel_request(
    request: RequestContext, tx: Transaction, id: ApprovalId
) -> ApprovalRecord:
    """Cancel your own request."""
    await operations.cancel(tx, request.actor, id)
    return await records.build(request, tx, await queries.get(tx, id))


async def _build_record(
    request: RequestContext, approval: Approval, *, discloses: bool = True
) -> ApprovalRecord:
    """Return the record, with the secrets in the result if the admin has not received them yet."""
    services = request.services
    record = await records.build(request, services.database, approval)
    is_recipient = approval.has_secrets and request.principal.admin_id == approval.result_for
    if not discloses or not is_recipient:
        return record
    async with services.transaction() as tx:
        sealed = await queries.take_sealed_result(tx, approval.id)
        if sealed is None:
            return record
        await operations.record_disclosure(tx, request.actor, approval.id)
    plain = services.vault.open(sealed, model.get_seal_context(approval.id, "result"))
    return msgspec.structs.replace(record, result=msgspec.json.decode(plain), disclosed=True)
