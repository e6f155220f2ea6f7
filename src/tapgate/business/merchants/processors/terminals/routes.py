"""Terminal endpoints."""

from tapgate.business.merchants.processors import queries as processors
from tapgate.business.merchants.processors.terminals import operations, queries
from tapgate.business.merchants.processors.terminals.model import BLOCK, UNBLOCK, to_record
from tapgate.business.owners.status_transitions import Transition, describe_activation
from tapgate.business.payments.transactions.money_requests import decode_id
from tapgate.core.pagination import paginate
from tapgate.core.records import ProcessorId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import OptionalReason
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.processors import (
    NewTerminal,
    TerminalAdded,
    TerminalRecord,
    TerminalResponse,
    TerminalStatus,
)

endpoints = Endpoints(
    "Processors",
    "/api/v1/processors/{id}/terminals",
    access=Access(roles="A"),
    owners=OwnerAccess(binding=Binding.PATH, roles="M", key_roles=""),
)


async def _describe_terminal(request: GuardedRequest, id: int, body: NewTerminal) -> Proposal:
    processor = await processors.get(request.services.database, id)
    return Proposal(
        operations=(Operation.MERCHANT_KEYS,),
        summary=f"Add a terminal with its key to merchant {processor.name}",
        resource_id=ids.encode(ids.PROCESSOR, id),
    )


@endpoints.post(
    "",
    status=201,
    step_up=True,
    guard=Guard(_describe_terminal, Operation.MERCHANT_KEYS),
    objects=ObjectAccess.ANY,
)
async def add_terminal(
    request: GuardedRequest, tx: Transaction, id: ProcessorId, body: NewTerminal
) -> TerminalAdded:
    """Add a terminal with its own signing key.

    The secret is returned only in this response.
    """
    hmac_keys = request.services.authenticator.hmac_keys
    terminal, key = await operations.add(tx, request.actor, id, body, hmac_keys=hmac_keys)
    return TerminalAdded(
        terminal=to_record(terminal), api_key_id=ids.encode(ids.KEY, key.id), hmac_secret=key.secret
    )


@endpoints.get(
    "",
    objects=ObjectAccess.ANY,
    owners=OwnerAccess(binding=Binding.PATH, roles="MK", scopes=(Scope.PAYMENTS_READ,)),
)
async def list_terminals(
    request: RequestContext, id: ProcessorId, query: PageQuery
) -> Page[TerminalRecord]:
    """List a processor's terminals, newest first.

    `api_key_id` is the terminal's newest key that is not deleted, or null.
    """
    await processors.require_exists(request.services.database, id)
    rows = await queries.list_page(request.services.database, id, query)
    return paginate(rows, query, to_record)


@endpoints.post(
    "/{terminal_id}/block",
    errors=(Code.TERMINAL_NOT_FOUND, Code.ALREADY_BLOCKED),
    unguarded=Unguarded.TAKES_RIGHTS,
    objects=ObjectAccess.PARENT_IN_PATH,
)
async def block_terminal(
    request: RequestContext,
    tx: Transaction,
    id: ProcessorId,
    terminal_id: str,
    body: OptionalReason,
) -> TerminalResponse:
    """Block a terminal.

    Every process rejects the terminal's keys, and payments in which the processor names the
    terminal, normally before the response is sent.
    """
    return await _change_status(request, tx, id, terminal_id, BLOCK, body.reason)


async def _describe_unblocking(
    request: GuardedRequest, id: int, terminal_id: str, body: OptionalReason
) -> Proposal | None:
    await processors.require_exists(request.services.database, id)
    terminal = await queries.get(
        request.services.database, decode_id(ids.TERMINAL, terminal_id), processor_id=id
    )
    is_allowed = terminal.status in UNBLOCK.allowed
    summary = f"Reactivate terminal {terminal.name}"
    return describe_activation(
        Operation.MERCHANT_KEYS, summary, to_record(terminal), is_allowed=is_allowed
    )


@endpoints.post(
    "/{terminal_id}/unblock",
    errors=(Code.TERMINAL_NOT_FOUND, Code.NOT_BLOCKED),
    guard=Guard(_describe_unblocking, Operation.MERCHANT_KEYS),
    step_up=True,
    objects=ObjectAccess.PARENT_IN_PATH,
)
async def unblock_terminal(
    request: GuardedRequest,
    tx: Transaction,
    id: ProcessorId,
    terminal_id: str,
    body: OptionalReason,
) -> TerminalResponse:
    """Unblock a terminal."""
    return await _change_status(request, tx, id, terminal_id, UNBLOCK, body.reason)


async def _change_status(
    request: GuardedRequest,
    tx: Transaction,
    processor_id: int,
    terminal_id: str,
    transition: Transition[TerminalStatus],
    reason: str | None,
) -> TerminalResponse:
    terminal = await operations.change_status(
        tx,
        request.actor,
        processor_id,
        decode_id(ids.TERMINAL, terminal_id),
        transition,
        reason,
        hmac_keys=request.services.authenticator.hmac_keys,
    )
    return TerminalResponse(message=f"Terminal {transition.event}", terminal=to_record(terminal))
