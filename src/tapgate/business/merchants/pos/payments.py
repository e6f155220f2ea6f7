"""Commands for payments and refunds by terminals and apps."""

from typing import Any, Final

from tapgate.auth.actors import Actor
from tapgate.business.customers.cards.tap_history import COUNTER_FIELD
from tapgate.business.payments.transactions.money_requests import (
    decode_id,
    get_refund_limit,
    submit_request,
)
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.ledger.commands import (
    CASH_PARTY,
    PIN_POLICIES,
    AuditFacts,
    Command,
    Party,
    TransactionResult,
)
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.pos import (
    InAppPaymentRequest,
    PaymentRefund,
    PosPaymentRequest,
    RefundReceipt,
)
from tapgate_client.schemas.transactions import Channel, TransactionStatus

_trail = AuditTrail("transaction")

REFUND_ERRORS: Final = (
    Code.TRANSACTION_NOT_FOUND,
    Code.ALREADY_REFUNDED,
    Code.NOT_REFUNDABLE,
    Code.REFUND_EXCEEDS_REMAINING,
    Code.COMPLIANCE_REJECTED,
    Code.INSUFFICIENT_FUNDS,
)


# Module constants for the payment path, because enum attributes are slow.
_POS, _IN_APP = Channel.POS, Channel.IN_APP


async def build_payment(request: RequestContext, body: InAppPaymentRequest) -> Command:
    """Build the command for a payment at a terminal, or in an app, which has no PIN pad."""
    services, caller = request.services, request.principal
    assert caller.processor_id is not None
    idempotency_key = build_idempotency_key(request, body)
    proof, serial = None, body.card_serial
    if body.card_proof is not None:
        proof = await services.proof_verifier.verify(body.card_proof)
        if serial is None:
            serial = proof.card_serial
    transaction_type, channel, pin = chart.ONLINE_PAYMENT, _IN_APP, None
    # The terminal that the caller's key belongs to takes precedence over the terminal named in the
    # request.
    terminal_id, error_code = caller.terminal_id, None
    if isinstance(body, PosPaymentRequest):
        transaction_type, channel, pin = chart.POS_PAYMENT, _POS, body.pin
        terminals = services.authenticator.terminals
        if terminal_id is None and body.terminal_id is not None:
            terminal_id = decode_id(ids.TERMINAL, body.terminal_id)
            error_code = await terminals.rejection(terminal_id, processor_id=caller.processor_id)
        if terminal_id is not None and error_code is None:
            terminals.touch(terminal_id)
    context: dict[str, Any] = {}
    if proof is not None and proof.counter is not None:
        context[COUNTER_FIELD] = proof.counter
    if terminal_id:
        context["terminal_id"] = ids.encode(ids.TERMINAL, terminal_id)
    for name in ("merchant_id", "merchant_name", "transaction_ref", "metadata"):
        value = getattr(body, name)
        if value is not None:
            context[name] = value
    return Command(
        type=transaction_type,
        channel=channel,
        payer=Party("card", serial or ""),  # the ledger rejects an empty serial
        payee=Party("owner", caller.processor_id, chart.SETTLEMENT),
        amount=money.parse(body.amount, services.settings.currency),
        payer_pin=pin,
        card_proof=proof,
        pin_policy=PIN_POLICIES[transaction_type],
        idempotency_key=idempotency_key,
        context=context or None,
        caller_error=error_code,
    )


def build_refund(
    request: GuardedRequest,
    processor_id: int,
    payment_id: int,
    body: PaymentRefund,
    channel: Channel,
) -> Command:
    """Build a refund. The ledger rejects it if the processor did not take the payment."""
    currency = request.services.settings.currency
    return Command(
        type=chart.REFUND,
        channel=channel,
        payer=Party("owner", processor_id, chart.SETTLEMENT),
        payee=CASH_PARTY,  # ignored: the ledger credits the original payer
        amount=None if body.amount is None else money.parse(body.amount, currency),
        original_id=payment_id,
        refund_limit=get_refund_limit(request),
        idempotency_key=build_idempotency_key(request, body),
        context={"memo": body.reason},
        audit=request.actor.build_audit_facts(body.reason),
    )


async def submit_refund(
    request: GuardedRequest,
    processor_id: int,
    payment_id: int,
    body: PaymentRefund,
    channel: Channel,
) -> Reply[RefundReceipt]:
    command = build_refund(request, processor_id, payment_id, body, channel)
    result = await submit_request(request, command)
    return result.build_reply(
        RefundReceipt,
        "Refund completed",
        original_transaction_id=ids.encode(ids.TRANSACTION, payment_id),
        refundable_amount=result.refundable_amount,
        fee_refunded=result.fee_refunded,
    )


async def record_refund(
    tx: Transaction, audit: AuditFacts, result: TransactionResult, *, currency: str
) -> None:
    """Record the change to the refunded payment in the audit log."""
    assert result.original_id is not None
    assert result.refundable_amount is not None
    payment_amount = await tx.fetchval(
        "SELECT amount FROM transactions WHERE id = $1", result.original_id
    )
    before, after = result.refundable_amount + result.amount, result.refundable_amount
    await _trail.record(
        tx,
        Actor.from_audit_facts(audit),
        ids.encode(ids.TRANSACTION, result.original_id),
        "refunded",
        reason=audit.reason,
        changes={
            "status": (
                TransactionStatus.COMPLETED
                if before == payment_amount
                else TransactionStatus.PARTIALLY_REFUNDED,
                TransactionStatus.PARTIALLY_REFUNDED if after else TransactionStatus.REFUNDED,
            ),
            "refunded_amount": (
                money.format_decimal(payment_amount - before, currency),
                money.format_decimal(payment_amount - after, currency),
            ),
        },
    )
