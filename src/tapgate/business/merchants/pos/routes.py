"""Endpoints for terminals, and their counterparts for apps, which have no PIN pad."""

from typing import Any

import msgspec

from tapgate.business.merchants.pos import cards, foreign_cards, outcomes, payments
from tapgate.business.merchants.pos.cards import PresentedCard
from tapgate.business.payments.transactions.model import calculate_approval_code
from tapgate.business.payments.transactions.money_requests import (
    MoneyResult,
    decode_id,
    submit_request,
)
from tapgate.http.api.access import Access
from tapgate.http.api.idempotency import require_idempotency_key
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger.card_proofs.proof_verifier import ProofResult
from tapgate.ledger.chart import COMPLETED, FAILED
from tapgate.ledger.commands import Outcome
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.card_proofs import CardProof
from tapgate_client.schemas.pos import (
    InAppPaymentRequest,
    LookupCardRequest,
    LookupCardResponse,
    PaymentLookup,
    PaymentOutcomeRecord,
    PaymentReceipt,
    PosPaymentRequest,
    RefundReceipt,
    RefundRequest,
    VerifyCardRequest,
    VerifyCardResponse,
    VerifyInAppCardRequest,
)
from tapgate_client.schemas.transactions import Channel

_SIGNED = Access(hmac="pos")

pos_endpoints = Endpoints("POS", "/api/v1/pos", access=_SIGNED, compresses=False, owners=NEVER)
#: Any card can pay, within the limits for payments without a PIN.
in_app_endpoints = Endpoints(
    "In-app payments", access=_SIGNED, objects=ObjectAccess.ANY, owners=NEVER
)

_PROOF_ERRORS = (Code.CARD_NOT_GENUINE, Code.CARD_PROOF_USED)
_VERIFY_ERRORS = (Code.CARD_NOT_FOUND, Code.CARD_PROOF_REQUIRED, *_PROOF_ERRORS)
_PAYMENT_ERRORS = (
    *_VERIFY_ERRORS,
    Code.CARD_IN_OTHER_BOOK,
    Code.PIN_REQUIRED,
    Code.CARD_NOT_ACTIVE,
    Code.SUBSCRIBER_BLOCKED,
    Code.TRANSACTION_LIMIT_EXCEEDED,
    Code.CARD_LIMIT_EXCEEDED,
    Code.DAILY_LIMIT_EXCEEDED,
    Code.MONTHLY_LIMIT_EXCEEDED,
    Code.COMPLIANCE_REJECTED,
    Code.INSUFFICIENT_FUNDS,
)
_PIN_ERRORS = (Code.INVALID_PIN, Code.ACCOUNT_LOCKED)


@pos_endpoints.post(
    "/payment",
    moves_money=True,
    requires=(require_idempotency_key,),
    errors=(Code.TERMINAL_NOT_FOUND, *_PIN_ERRORS, *_PAYMENT_ERRORS),
    objects=ObjectAccess.PROCESSOR | ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def pay_at_terminal(
    request: RequestContext, body: PosPaymentRequest
) -> Reply[PaymentReceipt]:
    """Take a payment by card.

    Requires an idempotency key. The PIN is required above the no-PIN limit for the cardholder's KYC
    level, and when the card's payments without a PIN would exceed five times this limit in a day.
    If the signing key belongs to a terminal, the payment is made at this terminal, otherwise at
    `terminal_id`, if given.

    A card that signs its taps pays only with `card_proof`: `picc_data` and `cmac`, or the `url` of
    the tap. The proof also names the card, so `card_serial` may be absent. A payment or a recorded
    decline consumes the tap.

    A replay does not look at the proof: if only the proof names the card, the same `request_id`
    with the tap of another card returns the original response. Use a new `request_id` for every
    payment.
    """
    return await _pay(request, body)


@pos_endpoints.post(
    "/verify-card", errors=(*_VERIFY_ERRORS, *_PIN_ERRORS), objects=ObjectAccess.PIN
)
async def verify_terminal_card(
    request: RequestContext, body: VerifyCardRequest
) -> VerifyCardResponse:
    """Verify a card and its PIN before a payment.

    If the card or its wallet is not active, the response has `is_active: false` and no balance. A
    card that signs its taps requires `card_proof`. The tap is not consumed, so that a payment can
    use it too.
    """
    services = request.services
    _touch_terminal(request)
    proof = await _verify_proof(request, body.card_proof)
    async with services.transaction() as tx:
        return await cards.verify_with_pin(
            tx,
            _build_presented_card(request, body.card_serial, proof),
            body.pin,
            currency=services.settings.currency,
            pin_verifier=services.pin_verifier,
        )


@pos_endpoints.post(
    "/lookup-card",
    errors=(Code.CARD_NOT_FOUND, Code.CARD_IN_OTHER_BOOK, *_PROOF_ERRORS),
    objects=ObjectAccess.ANY,
    effect="reads",
)
async def look_up_terminal_card(
    request: RequestContext, body: LookupCardRequest
) -> LookupCardResponse:
    """Look up a card by its serial, its NFC UID or a tap's proof, which is not consumed."""
    return await _look_up_card(request, body)


@pos_endpoints.post(
    "/refund",
    moves_money=True,
    requires=(require_idempotency_key,),
    errors=payments.REFUND_ERRORS,
    objects=ObjectAccess.PROCESSOR,
    unnoticed=Unnoticed.RECEIPT,
)
async def refund_terminal_payment(
    request: RequestContext, body: RefundRequest
) -> Reply[RefundReceipt]:
    """Refund a payment in full or in part.

    Requires an idempotency key. Without `amount`, the entire refundable amount is refunded.
    """
    return await _submit_refund(request, body, Channel.POS)


@pos_endpoints.get(
    "/payments/{request_id}",
    errors=(Code.TRANSACTION_NOT_FOUND, Code.DUPLICATE_REQUEST),
    objects=ObjectAccess.PROCESSOR,
)
async def get_payment_outcome(
    request: RequestContext, request_id: str, query: PaymentLookup
) -> PaymentOutcomeRecord:
    """Get a payment's outcome by its idempotency key.

    A terminal's key finds the terminal's own payments. A processor's key finds the processor's
    payments, at a terminal or in an app, and its terminals' payments. If several terminals used the
    same idempotency key, `terminal_id` selects one of them; without it, the response is 409.

    The response has the receipt's fields, or `status: failed` and the decline's error code. A
    payment under review has the review's outcome once it is decided. 404 means that no payment is
    recorded: it was rejected, for example for a wrong PIN, or it has not arrived (yet). In both
    cases, the same request can be sent again.
    """
    _touch_terminal(request)
    terminal_id = None
    if query.terminal_id is not None:
        terminal_id = decode_id(ids.TERMINAL, query.terminal_id)
    outcome = await outcomes.get_outcome(
        request.services.database, request.principal, request_id, terminal_id
    )
    if outcome.failure_code is not None:
        return PaymentOutcomeRecord(status=FAILED, code=outcome.failure_code)
    result = MoneyResult(Outcome(outcome.result), request.services.settings.currency)
    receipt = _build_receipt(result, outcome.metadata).body
    assert isinstance(receipt, PaymentReceipt)
    return PaymentOutcomeRecord(**msgspec.structs.asdict(receipt))


async def _pay(request: RequestContext, body: InAppPaymentRequest) -> Reply[PaymentReceipt]:
    command = await payments.build_payment(request, body)
    try:
        result = await submit_request(request, command)
    except ApiError as error:
        raise await foreign_cards.explain(request, body.card_serial, error) from None
    return _build_receipt(result, body.metadata)


def _build_receipt(result: MoneyResult, metadata: dict[str, Any] | None) -> Reply[PaymentReceipt]:
    is_completed = result.status == COMPLETED
    return result.build_reply(
        PaymentReceipt,
        "Payment approved",
        approval_code=calculate_approval_code(result.id) if is_completed else None,
        remaining_balance=result.payer_balance,
        fee_amount=result.fee,
        metadata=metadata,
    )


async def _submit_refund(
    request: RequestContext, body: RefundRequest, channel: Channel
) -> Reply[RefundReceipt]:
    """Refund a payment. The processor may use any of its keys, whichever key took the payment."""
    assert request.principal.processor_id is not None
    payment_id = decode_id(ids.TRANSACTION, body.original_transaction_id)
    return await payments.submit_refund(
        request, request.principal.processor_id, payment_id, body, channel
    )


async def _look_up_card(request: RequestContext, body: LookupCardRequest) -> LookupCardResponse:
    _touch_terminal(request)
    services = request.services
    proof = await _verify_proof(request, body.card_proof)
    try:
        found = await cards.look_up(
            services.database,
            _build_presented_card(request, body.card_identifier, proof),
            now=services.clock(),
            open_tx=services.transaction,
        )
    except ApiError as error:
        raise await foreign_cards.explain(request, body.card_identifier, error) from None
    await foreign_cards.require_own(request, found.card_serial)
    return found


async def _verify_proof(request: RequestContext, proof: CardProof | None) -> ProofResult | None:
    return None if proof is None else await request.services.proof_verifier.verify(proof)


def _build_presented_card(
    request: RequestContext, identifier: str | None, proof: ProofResult | None
) -> PresentedCard:
    principal = request.principal
    return PresentedCard(
        identifier, proof, principal.processor_id, principal.terminal_id, principal.id
    )


def _touch_terminal(request: RequestContext) -> None:
    if request.principal.terminal_id is not None:
        request.services.authenticator.terminals.touch(request.principal.terminal_id)


#: The paths without `/api/v1` are aliases. The suffix keeps their operation IDs unique.
_PREFIXES = (("/api/v1/payment", ""), ("/payment", "_alias"))

for _prefix, _suffix in _PREFIXES:

    @in_app_endpoints.post(
        _prefix,
        moves_money=True,
        requires=(require_idempotency_key,),
        errors=_PAYMENT_ERRORS,
        operation_id=f"pay_in_app{_suffix}",
        unnoticed=Unnoticed.RECEIPT,
    )
    async def pay_in_app(
        request: RequestContext, body: InAppPaymentRequest
    ) -> Reply[PaymentReceipt]:
        """Take a payment in an app.

        Requires an idempotency key. No PIN can be entered, so the no-PIN limits always apply.
        """
        return await _pay(request, body)

    @in_app_endpoints.post(
        f"{_prefix}/verify-card",
        errors=_VERIFY_ERRORS,
        operation_id=f"verify_in_app_card{_suffix}",
        effect="reads",
    )
    async def verify_in_app_card(
        request: RequestContext, body: VerifyInAppCardRequest
    ) -> VerifyCardResponse:
        """Verify a card before an in-app payment. The response has no balance."""
        services = request.services
        proof = await _verify_proof(request, body.card_proof)
        return await cards.verify_without_pin(
            services.database,
            _build_presented_card(request, body.card_serial, proof),
            now=services.clock(),
            open_tx=services.transaction,
        )

    @in_app_endpoints.post(
        f"{_prefix}/lookup-card",
        errors=(Code.CARD_NOT_FOUND, Code.CARD_IN_OTHER_BOOK, *_PROOF_ERRORS),
        operation_id=f"look_up_in_app_card{_suffix}",
        effect="reads",
    )
    async def look_up_in_app_card(
        request: RequestContext, body: LookupCardRequest
    ) -> LookupCardResponse:
        """Look up a card by its serial, its NFC UID or a tap's proof, from an app."""
        return await _look_up_card(request, body)

    @in_app_endpoints.post(
        f"{_prefix}/refund",
        moves_money=True,
        requires=(require_idempotency_key,),
        errors=payments.REFUND_ERRORS,
        operation_id=f"refund_in_app_payment{_suffix}",
        objects=ObjectAccess.PROCESSOR,
        unnoticed=Unnoticed.RECEIPT,
    )
    async def refund_in_app_payment(
        request: RequestContext, body: RefundRequest
    ) -> Reply[RefundReceipt]:
        """Refund an in-app payment in full or in part.

        Requires an idempotency key. Without `amount`, the entire refundable amount is refunded.
        """
        return await _submit_refund(request, body, Channel.IN_APP)
