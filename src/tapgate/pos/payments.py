"""Commands for payments and refunds by terminals and apps."""

from typing import Any

from tapgate.audit.trail import AuditTrail
from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.auth.terminals import Terminals
from tapgate.card_proofs.verifier import ProofResult
from tapgate.cards.tap_history import COUNTER_FIELD
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import (
    AuditFacts,
    Command,
    Party,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.store.transaction import Transaction
from tapgate.transactions.submit import decode_id
from tapgate_client import ids, money
from tapgate_client.schemas.pos import InAppPaymentRequest, PosPaymentRequest, RefundRequest
from tapgate_client.schemas.transactions import Channel, TransactionStatus

_trail = AuditTrail("transaction")

# Module constants for the payment path, because enum attributes are slow.
_POS, _IN_APP = Channel.POS, Channel.IN_APP
_POS_PIN_POLICY = commands.PIN_POLICIES[chart.POS_PAYMENT]
_IN_APP_PIN_POLICY = commands.PIN_POLICIES[chart.ONLINE_PAYMENT]


async def build_terminal_payment(
    body: PosPaymentRequest,
    caller: Principal,
    idempotency_key: ScopedIdempotencyKey | None,
    *,
    currency: str,
    terminals: Terminals,
    proof: ProofResult | None = None,
) -> Command:
    # The terminal of the caller's key takes precedence over the terminal named in the request.
    terminal_id, error_code = caller.terminal_id, None
    if terminal_id is None and body.terminal_id is not None:
        assert caller.processor_id is not None
        terminal_id = decode_id(ids.TERMINAL, body.terminal_id)
        error_code = await terminals.rejection(terminal_id, processor_id=caller.processor_id)
    if terminal_id is not None and error_code is None:
        terminals.touch(terminal_id)
    return Command(
        type=chart.POS_PAYMENT,
        channel=_POS,
        payer=_get_card(body, proof),
        payee=_get_processor(caller),
        amount=money.parse(body.amount, currency),
        payer_pin=body.pin,
        card_proof=proof,
        pin_policy=_POS_PIN_POLICY,
        idempotency_key=idempotency_key,
        context=_build_context(body, terminal_id, proof),
        caller_error=error_code,
    )


def build_in_app_payment(
    body: InAppPaymentRequest,
    caller: Principal,
    idempotency_key: ScopedIdempotencyKey | None,
    *,
    currency: str,
    proof: ProofResult | None = None,
) -> Command:
    return Command(
        type=chart.ONLINE_PAYMENT,
        channel=_IN_APP,
        payer=_get_card(body, proof),
        card_proof=proof,
        payee=_get_processor(caller),
        amount=money.parse(body.amount, currency),
        pin_policy=_IN_APP_PIN_POLICY,
        idempotency_key=idempotency_key,
        context=_build_context(body, caller.terminal_id, proof),
    )


def build_refund(
    body: RefundRequest,
    caller: Principal,
    idempotency_key: ScopedIdempotencyKey | None,
    *,
    actor: Actor,
    channel: Channel,
    currency: str,
) -> Command:
    """Build a refund. The processor may use any of its keys, whichever key took the payment."""
    return Command(
        type=chart.REFUND,
        channel=channel,
        payer=_get_processor(caller),
        payee=commands.CASH_PARTY,  # ignored: the ledger credits the original payer
        amount=None if body.amount is None else money.parse(body.amount, currency),
        original_id=decode_id(ids.TRANSACTION, body.original_transaction_id),
        idempotency_key=idempotency_key,
        context={"memo": body.reason},
        audit=actor.build_audit_facts(body.reason),
    )


def _get_processor(caller: Principal) -> Party:
    assert caller.processor_id is not None
    return commands.processor_party(caller.processor_id)


def _get_card(body: InAppPaymentRequest, proof: ProofResult | None) -> Party:
    """Return the named card, or the card of the proof. The serial is empty if there is none."""
    serial = body.card_serial
    if serial is None and proof is not None:
        serial = proof.card_serial
    return commands.card_party(serial or "")


def _build_context(
    body: InAppPaymentRequest, terminal_id: int | None, proof: ProofResult | None
) -> dict[str, Any] | None:
    context: dict[str, Any] = {}
    if proof is not None and proof.counter is not None:
        context[COUNTER_FIELD] = proof.counter
    if terminal_id:
        context["terminal_id"] = ids.encode(ids.TERMINAL, terminal_id)
    for name in ("merchant_id", "merchant_name", "transaction_ref", "metadata"):
        value = getattr(body, name)
        if value is not None:
            context[name] = value
    return context or None


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
