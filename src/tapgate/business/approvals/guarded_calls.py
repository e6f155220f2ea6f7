"""The check of guarded requests: execute, or hold until other admins approve.

It runs after access checks, decoding and validation, and before the operation.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from tapgate.auth import owner_limits
from tapgate.business.approval_rules.queries import list_rules_in_force
from tapgate.business.approvals import model, operations, queries, records, stored_calls
from tapgate.business.approvals.model import Approval
from tapgate.business.approvals.queries import CountedCall, Maker
from tapgate.business.approvals.stored_calls import StoredCall
from tapgate.http.api import approval_reason
from tapgate.http.api.guards import Proposal, Requirement, describe
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoint, Reply
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.ledger.idempotency.idempotency_keys import find_by_idempotency_keys
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.approvals import ApprovalResponse, Operation

#: Operations that approval rules also hold for an owner's users: money leaves the platform or goes
#: back to a customer, and keys with which a terminal refunds. Others affect only the owner.
_OWNER_OPERATIONS: Final = frozenset(
    {Operation.PAYOUTS, Operation.REFUNDS, Operation.MERCHANT_KEYS}
)
#: Principals whose requests can be held. An API key acts for the admin who created it.
_GUARDED_KINDS: Final = ("admin", "api_key")


class _Held(msgspec.Struct, frozen=True):
    approval: Approval


class _Allowed(msgspec.Struct, frozen=True):
    call_id: int | None  # of the row that counts the amount


async def run_guarded(
    endpoint: Endpoint,
    request: RequestContext,
    arguments: Mapping[str, Any],
    handle: Callable[[], Awaitable[Any]],
) -> Any:
    """Run the handler, or hold the request and return its approval with 202."""
    caller, guard = request.caller, endpoint.guard
    if caller is None or caller.kind not in _GUARDED_KINDS:
        return await handle()
    if caller.owner is not None and _OWNER_OPERATIONS.isdisjoint(guard.operations):
        return await handle()
    proposal = await describe(endpoint, request, arguments)
    if proposal is None:
        return await handle()
    if not {*proposal.operations} <= {*guard.operations}:
        raise ValueError(f"{endpoint.name} proposes an undeclared operation")
    request.proposed_amount = proposal.amount
    services = request.services
    async with services.transaction() as tx:
        decision = await _decide(tx, endpoint, request, arguments, proposal)
    if isinstance(decision, _Held):
        record = await records.build(request, services.database, decision.approval)
        return Reply(ApprovalResponse(approval=record), status=202)
    try:
        return await handle()
    except ApiError as error:
        # After a 5xx error, the outcome may be unknown, so the amount stays counted.
        if decision.call_id is not None and error.status < 500:
            await queries.leave_call(services.database, decision.call_id)
        raise


async def _decide(
    tx: Transaction,
    endpoint: Endpoint,
    request: RequestContext,
    arguments: Mapping[str, Any],
    proposal: Proposal,
) -> _Held | _Allowed:
    """Count the request or require approval, with the maker's sums locked."""
    maker = await queries.lock_maker(tx, request.principal)
    key = build_idempotency_key(request, arguments["body"]) if endpoint.moves_money else None
    counted = None
    if key is not None:
        earlier = await queries.find_by_key(tx, maker.admin.admin_id, _get_stored_key(request, key))
        if earlier is not None:
            if earlier.fingerprint != key.fingerprint:
                raise ApiError(Code.DUPLICATE_REQUEST)
            return _Held(earlier)
        if await find_by_idempotency_keys(tx, [(key.scope, key.request_id)]):
            # The ledger replays the response, or rejects another request with the same key.
            return _Allowed(None)
        counted = await queries.renew_call(tx, maker.counted_for, _scope_key(key), key.fingerprint)
    requirement = await _find_requirement(tx, maker, proposal, counted)
    if requirement is not None:
        if proposal.rejection is not None:
            raise proposal.rejection
        if maker.has_unknown_holder:
            raise ApiError(
                Code.FORBIDDEN,
                "The request needs an approval, and an API key of the command line belongs to no "
                "admin who could make it. Rotate the key in the console.",
                details={"required": ["approval"]},
            )
        call = stored_calls.build(endpoint, request, arguments)
        body = arguments.get("body")
        return _Held(await _hold(tx, request, call, body, proposal, maker, requirement, key))
    return _Allowed(await _count(tx, maker, proposal, key, counted))


async def _find_requirement(
    tx: Transaction, maker: Maker, proposal: Proposal, counted: CountedCall | None
) -> Requirement | None:
    """Return the approvals that a request needs, or None.

    A request that is counted already may move more now, such as everything available: then the rest
    is checked like a new request.
    """
    new_amount = proposal.amount
    if counted is not None and new_amount is not None:
        if new_amount <= counted.amount:
            return None
        new_amount -= counted.amount
    found = await operations.find_requirement(
        tx,
        await list_rules_in_force(tx),
        maker.counted_for,
        proposal.operations,
        new_amount=new_amount,
    )
    return found or proposal.requirement


async def _count(
    tx: Transaction,
    maker: Maker,
    proposal: Proposal,
    key: ScopedIdempotencyKey | None,
    counted: CountedCall | None,
) -> int | None:
    """Count an amount in the maker's sums; return the row, or None without an amount."""
    if proposal.amount is None:
        return None
    if counted is not None:
        await queries.join_call(tx, counted.id, proposal.amount)
        return counted.id
    call_id = tx.new_id()
    await insert_values(
        tx,
        "guarded_calls",
        id=call_id,
        person=maker.counted_for,
        operations=list(proposal.operations),
        amount=proposal.amount,
        request_key=key and _scope_key(key),
        fingerprint=key and key.fingerprint,
        created_at=tx.now(),
    )
    return call_id


def _scope_key(key: ScopedIdempotencyKey) -> str:
    """Return the key with its scope: a person's account and each API key have separate keys."""
    return f"{key.scope}/{key.request_id}"


def _get_stored_key(request: RequestContext, key: ScopedIdempotencyKey) -> str:
    """Return an approval's key. It is unique per maker, whose API keys have their own keys."""
    is_admin = request.principal.kind == "admin"
    return key.request_id if is_admin else _scope_key(key)


async def _hold(
    tx: Transaction,
    request: RequestContext,
    call: StoredCall,
    body: Any,
    proposal: Proposal,
    maker: Maker,
    requirement: Requirement,
    key: ScopedIdempotencyKey | None,
) -> Approval:
    reason = approval_reason.read(request, body)
    if request.principal.owner is not None:
        limit = owner_limits.PENDING_APPROVALS
        await owner_limits.require_room(tx, limit, request.principal.owner)
    is_api_key = request.principal.kind == "api_key"
    suffix = f", by API key {request.principal.name}" if is_api_key else ""
    approval_id, now = tx.new_id(), tx.now()
    fields = {**call.arguments.get("body", {}), **proposal.implied}
    await insert_values(
        tx,
        "approvals",
        id=approval_id,
        operation=requirement.operation or proposal.operations[0],
        operations=list(proposal.operations),
        summary=proposal.summary + suffix,
        reason=reason,
        changes=model.build_changes(fields, proposal.before),
        amount=proposal.amount,
        resource_id=proposal.resource_id,
        sealed_request=stored_calls.seal(request.services, approval_id, call),
        maker_id=maker.admin.admin_id,
        maker_person=maker.admin.person,
        other_makers=[*maker.others, *proposal.other_makers],
        counted_for=maker.counted_for,
        request_key=key and _get_stored_key(request, key),
        fingerprint=key and key.fingerprint,
        roles=requirement.roles,
        required_approvers=requirement.approvers,
        created_at=now,
        expires_at=now + timedelta(seconds=requirement.expires_in),
        updated_at=now,
    )
    approval = await queries.get(tx, approval_id)
    currency = request.services.settings.currency
    await operations.record_creation(tx, request.actor, approval, currency=currency)
    return approval
