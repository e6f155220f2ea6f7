"""Payments and refunds by terminals and apps, submitted as ledger commands."""

from typing import Any

from tapgate import ids, money
from tapgate.api.endpoint import Reply
from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import AuditTrail
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, TransactionResult
from tapgate.schemas.pos import (
    InAppPaymentRequest,
    PaymentReceipt,
    PosPaymentRequest,
    RefundReceipt,
    RefundRequest,
)
from tapgate.transactions.model import calculate_approval_code
from tapgate.transactions.submit import (
    ReceiptFields,
    build_idempotency_key,
    decode_id,
    submit,
    to_minor_units,
)

_trail = AuditTrail("transaction")


async def pay_at_terminal(
    request: RequestContext, body: PosPaymentRequest
) -> Reply[PaymentReceipt]:
    terminal_id, error_code = await _resolve_terminal(request, body.terminal_id)
    return await _submit_payment(
        request,
        body,
        type=chart.POS_PAYMENT,
        channel="pos",
        pin=body.pin,
        terminal_id=terminal_id,
        error_code=error_code,
    )


async def pay_in_app(request: RequestContext, body: InAppPaymentRequest) -> Reply[PaymentReceipt]:
    return await _submit_payment(request, body, type=chart.ONLINE_PAYMENT, channel="in_app")


async def _resolve_terminal(
    request: RequestContext, requested_id: str | None
) -> tuple[int | None, Code | None]:
    """Return the terminal id of a payment, if any, and an error code if the terminal is unusable.

    The terminal of the caller's key takes precedence over the terminal named in the request.
    """
    caller, terminals = request.principal, request.services.authenticator.terminals
    if caller.terminal_id is not None:
        terminals.touch(caller.terminal_id)
        return caller.terminal_id, None
    if requested_id is None:
        return None, None
    assert caller.processor_id is not None
    terminal_id = decode_id(ids.TERMINAL, requested_id)
    error_code = await terminals.rejection(terminal_id, processor_id=caller.processor_id)
    if error_code is None:
        terminals.touch(terminal_id)
    return terminal_id, error_code


async def _submit_payment(
    request: RequestContext,
    body: InAppPaymentRequest,
    *,
    type: str,
    channel: str,
    pin: str | None = None,
    terminal_id: int | None = None,
    error_code: Code | None = None,
) -> Reply[PaymentReceipt]:
    def build_receipt(receipt_fields: ReceiptFields) -> PaymentReceipt:
        return PaymentReceipt(
            message=receipt_fields.build_message("Payment approved"),
            transaction_id=receipt_fields.transaction_id,
            status=receipt_fields.status,
            approval_code=calculate_approval_code(receipt_fields.internal_id)
            if receipt_fields.status == "completed"
            else None,
            amount=receipt_fields.amount,
            remaining_balance=receipt_fields.payer_balance,
            fee_amount=receipt_fields.fee,
            metadata=body.metadata,
        )

    processor_id = request.principal.processor_id
    assert processor_id is not None
    command = Command(
        type=type,
        channel=channel,
        payer=commands.card_party(body.card_serial),
        payee=commands.processor_party(processor_id),
        amount=to_minor_units(request, body.amount),
        payer_pin=pin,
        pin_policy="above_no_pin_limit",
        idempotency_key=build_idempotency_key(request, body),
        context=_build_context(body, terminal_id),
        caller_error=error_code,
    )
    return await submit(request, command, build_receipt)


def _build_context(body: InAppPaymentRequest, terminal_id: int | None) -> dict[str, Any] | None:
    context: dict[str, Any] = {}
    if terminal_id:
        context["terminal_id"] = ids.encode(ids.TERMINAL, terminal_id)
    for name in ("merchant_id", "merchant_name", "transaction_ref", "metadata"):
        value = getattr(body, name)
        if value is not None:
            context[name] = value
    return context or None


async def refund(
    request: RequestContext, body: RefundRequest, *, channel: str
) -> Reply[RefundReceipt]:
    """Refund a payment. The processor may use any of its keys, whichever key took the payment."""

    def build_receipt(receipt_fields: ReceiptFields) -> RefundReceipt:
        return RefundReceipt(
            message=receipt_fields.build_message("Refund completed"),
            transaction_id=receipt_fields.transaction_id,
            status=receipt_fields.status,
            original_transaction_id=body.original_transaction_id,
            amount=receipt_fields.amount,
            refundable_amount=receipt_fields.refundable_amount,
        )

    processor_id = request.principal.processor_id
    assert processor_id is not None
    command = Command(
        type=chart.REFUND,
        channel=channel,
        payer=commands.processor_party(processor_id),
        payee=commands.CASH_PARTY,  # ignored: the ledger credits the original payer
        amount=None if body.amount is None else to_minor_units(request, body.amount),
        original_id=decode_id(ids.TRANSACTION, body.original_transaction_id),
        idempotency_key=build_idempotency_key(request, body),
        context={"memo": body.reason},
        before_commit=lambda tx, result: _record_refund(tx, request, result, body.reason),
    )
    return await submit(request, command, build_receipt)


async def _record_refund(
    tx: Any, request: RequestContext, result: TransactionResult, reason: str
) -> None:
    """Record the change to the refunded payment in the audit log."""
    assert result.original_id is not None
    assert result.refundable_amount is not None
    payment_amount = await tx.fetchval(
        "SELECT amount FROM transactions WHERE id = $1", result.original_id
    )
    before, after = result.refundable_amount + result.amount, result.refundable_amount
    currency = request.services.settings.currency
    await _trail.record(
        tx,
        request.actor,
        ids.encode(ids.TRANSACTION, result.original_id),
        "refunded",
        reason=reason,
        changes={
            "status": (
                "completed" if before == payment_amount else "partially_refunded",
                "partially_refunded" if after else "refunded",
            ),
            "refunded_amount": (
                money.format_decimal(payment_amount - before, currency),
                money.format_decimal(payment_amount - after, currency),
            ),
        },
    )
