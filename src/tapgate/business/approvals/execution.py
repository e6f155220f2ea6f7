"""Execution of approved requests, exactly once.

The endpoint's handler is called with the stored arguments, as the maker. Access, validation and the
operation's own checks are repeated. The approval becomes `executed` in the same database
transaction as the effect: the handler's `tx`, or the ledger's for a money request. If the process
is killed before, a worker executes the request later.
"""

from functools import partial
from typing import Any, Final, NoReturn

import msgspec
import structlog

from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.auth.principals import Principal
from tapgate.business.approval_rules.queries import find_admin, load_linked_people
from tapgate.business.approvals import model, operations, queries, stored_calls
from tapgate.business.approvals.model import Approval
from tapgate.business.approvals.stored_calls import StoredCall
from tapgate.http.api.access import require_field_access
from tapgate.http.api.guards import ApprovedCall, Proposal, describe, run_in_transaction
from tapgate.http.api.owner_access import bind, get_rejection
from tapgate.http.api.request_context import ApprovedRequest
from tapgate.http.api.services import Services
from tapgate.http.endpoint import Endpoint, Reply
from tapgate.runtime import logs
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.approvals import ApprovalStatus

_log = structlog.get_logger()
_POLL_SECONDS: Final = 5.0


async def execute(services: Services, approval_id: int) -> None:
    """Execute an approved request, or store the error code if a check fails.

    After an unexpected error, or while a dependency is unavailable, the request stays approved and
    a worker retries it.
    """
    approval = await queries.get(services.database, approval_id)
    if approval.status != ApprovalStatus.APPROVED:
        return
    try:
        await _run(services, approval)
    except ApiError as error:
        if error.status < 500 and error.code is not Code.RATE_LIMITED:
            async with services.transaction() as tx:
                await operations.fail_execution(tx, SYSTEM_ACTOR, approval_id, error)
        else:
            _log.warning(
                "approval.execution_delayed", approval_id=approval.public_id, code=error.code
            )
    except Exception as error:
        _log.error(
            "approval.execution_failed",
            approval_id=approval.public_id,
            failure=logs.describe_exception(error),
        )


class ApprovalWorker:
    """Executes approved requests that were interrupted, and ends approvals that have expired."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self) -> NoReturn:
        await run_periodically(self.work, every=_POLL_SECONDS, name="approvals")

    async def work(self) -> None:
        services = self._services
        for approval_id in await queries.lease_approved(services.database, services.clock()):
            await execute(services, approval_id)
        async with services.transaction() as tx:
            await operations.expire(tx)


async def _run(services: Services, approval: Approval) -> None:
    """Repeat all checks, then call the handler with the stored arguments."""
    executor = await _require_valid_approvals(services, approval)
    call, endpoint = await stored_calls.load(services, approval.id)
    callers = [await _load_maker(services, approval), *await _load_key(services, call)]
    maker = callers[0]
    for caller in callers:
        if rejection := get_rejection(endpoint, caller):
            raise rejection
    path = call.render_path(endpoint)
    request = _build_request(services, approval, maker, executor, path=path, ip=call.ip)
    arguments = stored_calls.decode_arguments(request, endpoint, call.arguments)
    if request.owner_view is not None:
        await bind(endpoint, services.database, request.owner_view, arguments)
    if endpoint.field_access:
        fields = msgspec.structs.asdict(arguments["body"])
        for caller in callers:
            require_field_access(endpoint.field_access, caller, fields)
    proposal = await describe(endpoint, request, arguments)
    _require_unchanged(approval, proposal, arguments.get("body"))
    if endpoint.takes_tx:
        await _call_in_transaction(request, approval, endpoint, arguments)
    else:
        response = await endpoint.handler(request, **arguments)
        await _complete(request, approval, _to_result(response))


async def _require_valid_approvals(services: Services, approval: Approval) -> int:
    """Return the admin with whose approval the request is executed."""
    decisions = (await queries.load_decisions(services.database, [approval.id]))[approval.id]
    linked = await load_linked_people(services.database)
    if not approval.has_enough_approvals(decisions, linked):
        raise ApiError(
            Code.FORBIDDEN,
            "An admin who approved the request may no longer approve it.",
            details={"required": approval.roles},
        )
    assert approval.executed_by is not None
    return approval.executed_by


async def _load_key(services: Services, call: StoredCall) -> list[Principal]:
    """Return the API key that made the request, if one did, with its current scopes.

    Raise 403 if it was deleted or has expired.
    """
    if call.api_key_id is None:
        return []
    key = await services.authenticator.api_keys.find(services.database, call.api_key_id)
    if key is None or (key.expires_at is not None and key.expires_at <= services.clock()):
        raise ApiError(
            Code.FORBIDDEN,
            "The API key that made the request was deleted or has expired.",
            details={"required": ["a valid API key"]},
        )
    return [
        Principal(
            kind="api_key",
            id=ids.encode(ids.KEY, key.id),
            name=key.name,
            scopes=frozenset(key.scopes),
            key_id=key.id,
            owner=key.owner,
        )
    ]


async def _load_maker(services: Services, approval: Approval) -> Principal:
    """Return the maker with the current role, or raise 403 if the maker is disabled."""
    maker = await find_admin(services.database, approval.maker_id)
    if not maker.is_active:
        raise ApiError(
            Code.FORBIDDEN,
            "The admin who made the request is disabled.",
            details={"required": ["an active admin"]},
        )
    return Principal(
        kind="admin",
        id=ids.encode(ids.ADMIN, maker.admin_id),
        name=maker.name,
        role=maker.role,
        admin_id=maker.admin_id,
        owner=maker.owner,
    )


def _build_request(
    services: Services, approval: Approval, maker: Principal, executor: int, *, path: str, ip: str
) -> ApprovedRequest:
    return ApprovedRequest(
        services=services,
        path=path,
        ip=ip,
        request_id=approval.public_id,
        caller=maker,
        approval=ApprovedCall(id=approval.public_id, executed_by=executor),
        proposed_amount=approval.amount,
    )


def _require_unchanged(approval: Approval, proposal: Proposal | None, body: Any) -> None:
    """Require that the request would change the same values as when it was made.

    The approvers have seen the values of that time. A request that replaces a list of rules would
    otherwise revert later changes.
    """
    if proposal is None:
        return  # it no longer changes anything
    fields = {**model.get_stored_fields(body), **proposal.implied}
    changes = model.build_changes(fields, proposal.before)
    if msgspec.json.decode(msgspec.json.encode(changes)) != approval.changes:
        raise ApiError(
            Code.VALIDATION_FAILED,
            "The current values have changed since the request was made. Make it again.",
        )


async def _call_in_transaction(
    request: ApprovedRequest, approval: Approval, endpoint: Endpoint, arguments: dict[str, Any]
) -> None:
    """Call the handler and end the approval in one database transaction.

    The maker receives secrets in the result, but never a link with which an admin sets a password.
    The approver who executed the request receives the link.
    """
    services = request.services
    prepared = await endpoint.run_preparation(request, arguments)
    async with services.transaction() as tx:
        current = await queries.get(tx, approval.id, lock=True)
        if current.status != ApprovalStatus.APPROVED:
            return
        try:
            response = await run_in_transaction(endpoint, request, tx, {**arguments, **prepared})
        except RaiseAfterCommit as rejection:
            raise rejection.error from None
        result, has_link = _to_result(response), model.has_link(_get_body(response))
        end = partial(
            operations.end_execution,
            tx,
            request.actor,
            approval.id,
            currency=services.settings.currency,
        )
        hidden = model.hide_secrets(result, has_link=has_link)
        if hidden == result:
            await end(result)
            return
        context = model.get_seal_context(approval.id, "result")
        sealed = services.vault.seal(msgspec.json.encode(result), context)
        result_for = request.approval.executed_by if has_link else approval.maker_id
        await end(hidden, sealed_result=sealed, result_for=result_for)


async def _complete(request: ApprovedRequest, approval: Approval, result: dict[str, Any]) -> None:
    """Store the result of a request whose approval the ledger has ended in its own transaction.

    A review of a transaction that was decided without its alert only resolves the alert, which the
    ledger does not do, so its approval ends here.
    """
    services = request.services
    async with services.transaction() as tx:
        current = await queries.get(tx, approval.id, lock=True)
        if current.status != ApprovalStatus.APPROVED:
            await queries.save_receipt(tx, approval.id, result)
            return
        await operations.end_execution(
            tx, request.actor, approval.id, result, currency=services.settings.currency
        )


def _to_result(response: Any) -> dict[str, Any]:
    body = _get_body(response)
    return {} if body is None else msgspec.to_builtins(body)


def _get_body(response: Any) -> Any:
    return response.body if isinstance(response, Reply) else response
