"""Processor endpoints."""

from tapgate.business.merchants.processors import operations, queries
from tapgate.business.merchants.processors.model import ACTIVATE, SUSPEND, to_record
from tapgate.business.owners.status_transitions import Transition, describe_activation
from tapgate.business.payments.transactions.customers import require_customer_access
from tapgate.business.payments.transactions.money_requests import (
    build_memo,
    decode_id,
    format_amount,
    get_channel,
    submit_request,
    to_minor_units,
)
from tapgate.core.message_templates import Notice
from tapgate.core.pagination import paginate
from tapgate.core.records import ProcessorId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import OptionalReason, Reason
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.processors import (
    NewProcessor,
    ProcessorCreated,
    ProcessorFilters,
    ProcessorRecord,
    ProcessorResponse,
    ProcessorStatus,
    ProcessorTransfer,
    ProcessorTransferReceipt,
)

endpoints = Endpoints("Processors", "/api/v1/processors", objects=ObjectAccess.ANY, owners=NEVER)

_READ_ACCESS = Access(scope="payments:read", roles="ACSF")
_STATUS_ACCESS = Access(roles="AC")


async def _describe_creation(request: GuardedRequest, body: NewProcessor) -> Proposal:
    return Proposal(
        operations=(Operation.MERCHANT_KEYS,), summary=f"Create merchant {body.name} with its key"
    )


@endpoints.post(
    "",
    access=Access(roles="A"),
    status=201,
    step_up=True,
    guard=Guard(_describe_creation, Operation.MERCHANT_KEYS),
    objects=ObjectAccess.NO_OBJECT,
)
async def create_processor(
    request: GuardedRequest, tx: Transaction, body: NewProcessor
) -> ProcessorCreated:
    """Create a processor with its first signing key.

    The secret is returned only in this response.
    """
    services = request.services
    processor, key = await operations.create(
        tx,
        request.actor,
        body,
        currency=services.settings.currency,
        hmac_keys=services.authenticator.hmac_keys,
    )
    record = to_record(processor)
    return ProcessorCreated(
        processor_id=record.id,
        processor=record,
        api_key_id=ids.encode(ids.KEY, key.id),
        hmac_secret=key.secret,
    )


@endpoints.get("", access=_READ_ACCESS, heavy="search")
async def list_processors(
    request: RequestContext, query: ProcessorFilters
) -> Page[ProcessorRecord]:
    """List processors, newest first, or by name with `order=name`.

    `search` is either a complete processor ID or a list of words. Each word must occur, ignoring
    case, in the name, phone number or email address, and at least one word must have 3 or more
    characters.
    """
    rows = await queries.list_page(request.services.database, query)
    return paginate(rows, query, to_record)


@endpoints.get("/{id}", access=_READ_ACCESS)
async def get_processor(request: RequestContext, id: ProcessorId) -> ProcessorRecord:
    """Get a processor."""
    return to_record(await queries.get(request.services.database, id))


@endpoints.post(
    "/{id}/suspend",
    access=_STATUS_ACCESS,
    errors=(Code.ALREADY_SUSPENDED,),
    unguarded=Unguarded.TAKES_RIGHTS,
)
async def suspend_processor(
    request: RequestContext, tx: Transaction, id: ProcessorId, body: Reason
) -> ProcessorResponse:
    """Suspend a processor.

    Every process rejects all keys that belong to the processor and its terminals, normally before
    the response is sent.
    """
    return await _change_status(request, tx, id, SUSPEND, body.reason)


async def _describe_activation(
    request: GuardedRequest, id: int, body: OptionalReason
) -> Proposal | None:
    processor = to_record(await queries.get(request.services.database, id))
    is_allowed = processor.status in ACTIVATE.allowed
    summary = f"Reactivate merchant {processor.name}"
    return describe_activation(Operation.MERCHANT_KEYS, summary, processor, is_allowed=is_allowed)


@endpoints.post(
    "/{id}/activate",
    access=_STATUS_ACCESS,
    errors=(Code.NOT_SUSPENDED,),
    guard=Guard(_describe_activation, Operation.MERCHANT_KEYS),
    step_up=True,
)
async def activate_processor(
    request: GuardedRequest, tx: Transaction, id: ProcessorId, body: OptionalReason
) -> ProcessorResponse:
    """Reactivate a suspended processor."""
    return await _change_status(request, tx, id, ACTIVATE, body.reason)


async def _change_status(
    request: GuardedRequest,
    tx: Transaction,
    id: int,
    transition: Transition[ProcessorStatus],
    reason: str | None,
) -> ProcessorResponse:
    hmac_keys = request.services.authenticator.hmac_keys
    processor = await operations.change_status(
        tx, request.actor, id, transition, reason, hmac_keys=hmac_keys
    )
    return ProcessorResponse(
        message=f"Processor {transition.event}", processor=to_record(processor)
    )


async def _describe_transfer(request: GuardedRequest, id: str, body: ProcessorTransfer) -> Proposal:
    processor = await queries.get(request.services.database, decode_id(ids.PROCESSOR, id))
    amount = to_minor_units(request, body.amount)
    formatted = format_amount(request, amount)
    return Proposal(
        operations=(Operation.PROCESSOR_TRANSFER,),
        summary=f"Transfer {formatted} from merchant {processor.name} to a customer",
        resource_id=id,
        amount=amount,
    )


@endpoints.post(
    "/{id}/transfer",
    access=Access(roles="AF"),
    moves_money=True,
    guard=Guard(_describe_transfer, Operation.PROCESSOR_TRANSFER),
    errors=(
        Code.PROCESSOR_NOT_FOUND,
        Code.SUBSCRIBER_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.PROCESSOR_SUSPENDED,
        Code.COMPLIANCE_REJECTED,
        Code.INSUFFICIENT_FUNDS,
        Code.SUBSCRIBER_BLOCKED,
        Code.MAX_BALANCE_EXCEEDED,
    ),
    step_up=True,
    objects=ObjectAccess.UNRESTRICTED,
    notices=(Notice.MONEY_CORRECTED,),
)
async def transfer_from_processor(
    request: GuardedRequest, id: str, body: ProcessorTransfer
) -> Reply[ProcessorTransferReceipt]:
    """Transfer money from a processor's settlement account to a subscriber."""
    await require_customer_access(request, body.subscriber_id)
    command = Command(
        type=chart.PROCESSOR_TRANSFER,
        channel=get_channel(request.principal),
        payer=commands.processor_party(decode_id(ids.PROCESSOR, id)),
        payee=commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.subscriber_id)),
        amount=to_minor_units(request, body.amount),
        idempotency_key=build_idempotency_key(request, body),
        context=build_memo(body.description),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        ProcessorTransferReceipt, "Transfer completed", processor_balance=result.payer_balance
    )
