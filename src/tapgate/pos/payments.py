"""Payments and refunds: what a terminal or an app asks for, as an order for the ledger."""

from typing import Any

from tapgate import ids, money
from tapgate.audit.trail import Trail
from tapgate.edge.call import Call
from tapgate.edge.endpoint import Reply
from tapgate.edge.fields import Amount, CardSerial, FreeText, Metadata, Pin, Text
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Answer, Command
from tapgate.transactions.model import approval_code
from tapgate.transactions.orders import (
    Order,
    Receipt,
    Shown,
    carry_out,
    minor,
    numbered,
    request_of,
)

_trail = Trail("transaction")


class InAppPayment(Order, kw_only=True):
    card_serial: CardSerial
    amount: Amount
    merchant_id: Text | None = None
    merchant_name: Text | None = None
    transaction_ref: Text | None = None
    metadata: Metadata | None = None


class PosPayment(InAppPayment, kw_only=True):
    pin: Pin | None = None
    terminal_id: Text | None = None


class PaymentReceipt(Receipt, kw_only=True):
    approval_code: str | None
    amount: str
    remaining_balance: str
    fee_amount: str
    metadata: dict[str, Any] | None


class Refund(Order, kw_only=True):
    original_transaction_id: Text
    amount: Amount | None = None
    reason: FreeText


class RefundReceipt(Receipt, kw_only=True):
    original_transaction_id: str
    amount: str
    refundable_amount: str


async def pay_at_terminal(call: Call, body: PosPayment) -> Reply[PaymentReceipt]:
    terminal_id, objection = await _terminal(call, body.terminal_id)
    return await _pay(
        call,
        body,
        type=chart.POS_PAYMENT,
        channel="pos",
        pin=body.pin,
        terminal_id=terminal_id,
        objection=objection,
    )


async def pay_in_app(call: Call, body: InAppPayment) -> Reply[PaymentReceipt]:
    return await _pay(call, body, type=chart.ONLINE_PAYMENT, channel="in_app")


async def _terminal(call: Call, named: str | None) -> tuple[int | None, Code | None]:
    """A terminal's key fixes the terminal; otherwise the one that is named must be the caller's."""
    caller, terminals = call.principal, call.services.authenticator.terminals
    if caller.terminal_id is not None:
        terminals.saw(caller.terminal_id)
        return caller.terminal_id, None
    if named is None:
        return None, None
    assert caller.processor_id is not None
    terminal_id = numbered(ids.TERMINAL, named)
    objection = await terminals.objection(terminal_id, processor_id=caller.processor_id)
    if objection is None:
        terminals.saw(terminal_id)
    return terminal_id, objection


async def _pay(
    call: Call,
    body: InAppPayment,
    *,
    type: str,
    channel: str,
    pin: str | None = None,
    terminal_id: int | None = None,
    objection: Code | None = None,
) -> Reply[PaymentReceipt]:
    def receipt(shown: Shown) -> PaymentReceipt:
        return PaymentReceipt(
            message=shown.message("Payment approved"),
            transaction_id=shown.transaction_id,
            status=shown.status,
            approval_code=approval_code(shown.number) if shown.status == "completed" else None,
            amount=shown.amount,
            remaining_balance=shown.payer_balance,
            fee_amount=shown.fee,
            metadata=body.metadata,
        )

    processor_id = call.principal.processor_id
    assert processor_id is not None
    command = Command(
        type=type,
        channel=channel,
        payer=commands.card(body.card_serial),
        payee=commands.processor(processor_id),
        amount=minor(call, body.amount),
        payer_pin=pin,
        pin_policy="above_no_pin_limit",
        request=request_of(call, body),
        context=_context(body, terminal_id),
        objection=objection,
    )
    return await carry_out(call, command, receipt)


def _context(body: InAppPayment, terminal_id: int | None) -> dict[str, Any] | None:
    context: dict[str, Any] = {}
    if terminal_id:
        context["terminal_id"] = ids.show(ids.TERMINAL, terminal_id)
    for name in ("merchant_id", "merchant_name", "transaction_ref", "metadata"):
        value = getattr(body, name)
        if value is not None:
            context[name] = value
    return context or None


async def refund(call: Call, body: Refund, *, channel: str) -> Reply[RefundReceipt]:
    """Any key of the processor that was paid may give back, also what another key took."""

    def receipt(shown: Shown) -> RefundReceipt:
        return RefundReceipt(
            message=shown.message("Refund completed"),
            transaction_id=shown.transaction_id,
            status=shown.status,
            original_transaction_id=body.original_transaction_id,
            amount=shown.amount,
            refundable_amount=shown.refundable,
        )

    processor_id = call.principal.processor_id
    assert processor_id is not None
    command = Command(
        type=chart.REFUND,
        channel=channel,
        payer=commands.processor(processor_id),
        payee=commands.CASH,  # the ledger gives it back to whoever paid
        amount=None if body.amount is None else minor(call, body.amount),
        original_id=numbered(ids.TRANSACTION, body.original_transaction_id),
        request=request_of(call, body),
        context={"memo": body.reason},
        witness=lambda tx, answer: _record_refund(tx, call, answer, body.reason),
    )
    return await carry_out(call, command, receipt)


async def _record_refund(tx: Any, call: Call, answer: Answer, reason: str) -> None:
    """What became of the payment, in the audit log."""
    assert answer.original_id is not None
    assert answer.refundable is not None
    paid = await tx.fetchval("SELECT amount FROM transactions WHERE id = $1", answer.original_id)
    before, after = answer.refundable + answer.amount, answer.refundable
    currency = call.services.settings.currency
    await _trail.record(
        tx,
        call,
        ids.show(ids.TRANSACTION, answer.original_id),
        "refunded",
        reason=reason,
        changes={
            "status": (
                "completed" if before == paid else "partially_refunded",
                "partially_refunded" if after else "refunded",
            ),
            "refunded_amount": (
                money.plain(paid - before, currency),
                money.plain(paid - after, currency),
            ),
        },
    )
