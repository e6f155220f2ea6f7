"""Cash-out request endpoints, for the chats of agents and customers."""

from typing import Final

from tapgate.business.agents.cash_out_requests import operations, queries
from tapgate.business.agents.cash_out_requests.model import to_record
from tapgate.business.payments.transactions.money_requests import (
    decode_id,
    submit_request,
    to_minor_units,
)
from tapgate.core.records import CashOutRequestId, SubscriberId
from tapgate.http.api.access import Access
from tapgate.http.api.idempotency import (
    build_idempotency_key,
    require_consistent_idempotency_key,
    require_idempotency_key,
)
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.agents import CashReceipt
from tapgate_client.schemas.cash_out_requests import (
    CashOutConfirmation,
    CashOutRequestRecord,
    NewCashOutRequest,
    OpenCashOutRequests,
)
from tapgate_client.schemas.transactions import Channel

_PREFIX: Final = "/api/v1/cash-out-requests"

endpoints = Endpoints(
    "Cash-out requests",
    access=Access(service=True),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.post(
    _PREFIX,
    status=201,
    other_statuses=(200,),
    requires=(require_consistent_idempotency_key, require_idempotency_key),
    errors=(
        Code.AGENT_NOT_FOUND,
        Code.SUBSCRIBER_NOT_FOUND,
        Code.CARD_NOT_FOUND,
        Code.INVALID_PIN,
        Code.ACCOUNT_LOCKED,
        Code.NOT_CLOSABLE,
        Code.AGENT_NOT_ACTIVE,
        Code.CASH_OUT_REQUEST_OPEN,
        Code.DUPLICATE_REQUEST,
    ),
    objects=ObjectAccess.PIN,
)
async def request_cash_out(
    request: RequestContext, tx: Transaction, body: NewCashOutRequest
) -> Reply[CashOutRequestRecord]:
    """Ask a customer to confirm a cash-out.

    Requires an idempotency key; a repeated request gets the first cash-out request with status 200.
    Verifies the agent's PIN and sends the customer a message. No money moves until the customer
    confirms within 5 minutes. A customer has at most one open request.
    """
    key = build_idempotency_key(request, body)
    assert key is not None
    item, is_new = await operations.ask(
        tx,
        request.actor,
        decode_id(ids.AGENT, body.agent_id),
        None if body.subscriber_id is None else decode_id(ids.SUBSCRIBER, body.subscriber_id),
        body.card_serial,
        to_minor_units(request, body.amount),
        body.agent_pin,
        key,
        currency=request.services.settings.currency,
        pin_verifier=request.services.pin_verifier,
    )
    headers = {} if is_new else {"Idempotent-Replayed": "true"}
    return Reply(to_record(item, tx.now()), status=201 if is_new else 200, headers=headers)


@endpoints.get(f"{_PREFIX}/{{id}}")
async def get_cash_out_request(
    request: RequestContext, id: CashOutRequestId
) -> CashOutRequestRecord:
    """Get a cash-out request."""
    services = request.services
    return to_record(await queries.get(services.database, id), services.clock())


@endpoints.get("/api/v1/subscribers/{id}/cash-out-requests")
async def list_open_cash_out_requests(
    request: RequestContext, id: SubscriberId
) -> OpenCashOutRequests:
    """List the cash-out requests that wait for a subscriber: at most one."""
    services, now = request.services, request.services.clock()
    items = await queries.list_open(services.database, id, now)
    return OpenCashOutRequests(data=[to_record(item, now) for item in items])


@endpoints.post(
    f"{_PREFIX}/{{id}}/confirm",
    moves_money=True,
    errors=(
        Code.CASH_OUT_REQUEST_NOT_OPEN,
        Code.INVALID_PIN,
        Code.ACCOUNT_LOCKED,
        Code.SUBSCRIBER_BLOCKED,
        Code.CARD_NOT_ACTIVE,
        Code.AGENT_NOT_ACTIVE,
        Code.TRANSACTION_LIMIT_EXCEEDED,
        Code.CARD_LIMIT_EXCEEDED,
        Code.DAILY_LIMIT_EXCEEDED,
        Code.MONTHLY_LIMIT_EXCEEDED,
        Code.COMPLIANCE_REJECTED,
        Code.INSUFFICIENT_FUNDS,
    ),
    objects=ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def confirm_cash_out(
    request: RequestContext, id: CashOutRequestId, body: CashOutConfirmation
) -> Reply[CashReceipt]:
    """Confirm a cash-out with the customer's PIN.

    The cash-out is made as by `POST /agents/cashout`. The agent's PIN was verified when the agent
    asked. The request stays open after a decline, so the customer can try again until it expires.
    """
    item = await queries.get(request.services.database, id)
    is_by_card = item.card_serial is not None
    command = Command(
        type=chart.AGENT_CASHOUT,
        channel=Channel.AGENT,
        payer=commands.card_party(str(item.card_serial))
        if is_by_card
        else commands.subscriber_party(item.subscriber_id),
        payee=commands.agent_party(item.agent_id),
        amount=item.amount,
        payer_pin=body.pin,
        pin_policy=commands.PIN_POLICIES[chart.AGENT_CASHOUT],
        idempotency_key=build_idempotency_key(request, body),
        audit=request.actor.build_audit_facts(None),
        cash_out_request_id=item.id,
    )
    result = await submit_request(request, command)
    return result.build_reply(
        CashReceipt,
        "Cash-out completed",
        agent_balance=result.payee_balance,
        subscriber_balance=result.payer_balance,
        commission_earned=result.commission,
    )


@endpoints.post(
    f"{_PREFIX}/{{id}}/decline",
    errors=(Code.CASH_OUT_REQUEST_NOT_OPEN,),
)
async def decline_cash_out(
    request: RequestContext, tx: Transaction, id: CashOutRequestId
) -> CashOutRequestRecord:
    """Decline a cash-out for its customer. The agent gets a message."""
    return to_record(await operations.decline(tx, request.actor, id), tx.now())
