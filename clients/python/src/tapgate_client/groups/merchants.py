"""Merchant operations, authenticated by signing key: at a terminal or in an app."""

from collections.abc import Mapping
from typing import Any

from tapgate_client.declaration import M, OperationGroup, acts, moves, reads
from tapgate_client.encoding import CardProofLike, Money
from tapgate_client.schemas.pos import (
    LookupCardResponse,
    PaymentOutcomeRecord,
    PaymentReceipt,
    RefundReceipt,
    VerifyCardResponse,
)


class Pos(OperationGroup[M]):
    """Payments, card checks and refunds at a terminal."""

    @moves("POST /api/v1/pos/payment")
    def pay(
        self,
        *,
        card_serial: str | None = None,
        card_proof: CardProofLike | None = None,
        amount: Money,
        pin: str | None = None,
        merchant_id: str | None = None,
        merchant_name: str | None = None,
        transaction_ref: str | None = None,
        terminal_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> PaymentReceipt:
        """Charge a card. The PIN is required above the no-PIN limits.

        A card that signs its taps requires `card_proof`, which can also replace `card_serial`.
        """

    @reads("GET /api/v1/pos/payments/{request_id}")
    def get_payment_outcome(
        self, request_id: str, *, terminal_id: str | None = None
    ) -> PaymentOutcomeRecord:
        """Return the outcome of a payment by its idempotency key, for example after a timeout.

        Raises `NotFoundError` if no payment is recorded. A processor can name the terminal that
        requested the payment.
        """

    @acts("POST /api/v1/pos/verify-card")
    def verify_card(
        self, *, pin: str, card_serial: str | None = None, card_proof: CardProofLike | None = None
    ) -> VerifyCardResponse:
        """Verify a card and its PIN. An incorrect PIN counts toward the PIN lock."""

    @reads("POST /api/v1/pos/lookup-card")
    def lookup_card(
        self, card_identifier: str | None = None, *, card_proof: CardProofLike | None = None
    ) -> LookupCardResponse:
        """Look up a card by its serial number, its NFC UID or the proof of a tap."""

    @moves("POST /api/v1/pos/refund")
    def refund(
        self,
        *,
        original_transaction_id: str,
        reason: str,
        amount: Money | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> RefundReceipt:
        """Refund a payment, by default the full remaining amount."""


class InApp(OperationGroup[M]):
    """Payments, card checks and refunds in an app or online shop, without a PIN."""

    @moves("POST /api/v1/payment")
    def pay(
        self,
        *,
        card_serial: str | None = None,
        card_proof: CardProofLike | None = None,
        amount: Money,
        merchant_id: str | None = None,
        merchant_name: str | None = None,
        transaction_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> PaymentReceipt: ...

    @reads("POST /api/v1/payment/verify-card")
    def verify_card(
        self, card_serial: str | None = None, *, card_proof: CardProofLike | None = None
    ) -> VerifyCardResponse: ...

    @reads("POST /api/v1/payment/lookup-card")
    def lookup_card(
        self, card_identifier: str | None = None, *, card_proof: CardProofLike | None = None
    ) -> LookupCardResponse:
        """Look up a card by its serial number, its NFC UID or the proof of a tap."""

    @moves("POST /api/v1/payment/refund")
    def refund(
        self,
        *,
        original_transaction_id: str,
        reason: str,
        amount: Money | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> RefundReceipt:
        """Refund a payment, by default the full remaining amount."""
