"""Merchant operations, authenticated by signing key: at a terminal or in an app."""

from collections.abc import Mapping
from typing import Any

from tapgate.client.encoding import Money, encode_amount, encode_optional_amount, omit_none
from tapgate.client.operation import (
    M,
    Operation,
    OperationGroup,
    build_idempotent_post,
    build_post,
    build_safe_post,
    operation,
)
from tapgate.client.records.pos import (
    LookupCardResponse,
    PaymentReceipt,
    RefundReceipt,
    VerifyCardResponse,
)

_POS_PATH = "/api/v1/pos"
_IN_APP_PATH = "/api/v1/payment"


class Pos(OperationGroup[M]):
    """Payments, card checks and refunds at a terminal."""

    @operation
    def pay(
        self,
        *,
        card_serial: str,
        amount: Money,
        pin: str | None = None,
        merchant_id: str | None = None,
        merchant_name: str | None = None,
        transaction_ref: str | None = None,
        terminal_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[PaymentReceipt]:
        """Charge a card. The PIN is required above the no-PIN limits."""
        body = omit_none(
            card_serial=card_serial,
            amount=encode_amount(amount),
            pin=pin,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            transaction_ref=transaction_ref,
            terminal_id=terminal_id,
            metadata=metadata,
            currency=currency,
        )
        return build_idempotent_post(f"{_POS_PATH}/payment", PaymentReceipt, request_id, body)

    @operation
    def verify_card(self, *, card_serial: str, pin: str) -> Operation[VerifyCardResponse]:
        """Verify a card and its PIN. An incorrect PIN counts toward the PIN lock."""
        return build_post(
            f"{_POS_PATH}/verify-card",
            VerifyCardResponse,
            omit_none(card_serial=card_serial, pin=pin),
        )

    @operation
    def lookup_card(self, card_identifier: str) -> Operation[LookupCardResponse]:
        """Look up a card by its serial number or NFC UID."""
        return build_safe_post(
            f"{_POS_PATH}/lookup-card",
            LookupCardResponse,
            omit_none(card_identifier=card_identifier),
        )

    @operation
    def refund(
        self,
        *,
        original_transaction_id: str,
        reason: str,
        amount: Money | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[RefundReceipt]:
        """Refund a payment, by default the full remaining amount."""
        body = _build_refund_body(original_transaction_id, reason, amount, currency)
        return build_idempotent_post(f"{_POS_PATH}/refund", RefundReceipt, request_id, body)


class InApp(OperationGroup[M]):
    """Payments, card checks and refunds in an app or online shop, without a PIN."""

    @operation
    def pay(
        self,
        *,
        card_serial: str,
        amount: Money,
        merchant_id: str | None = None,
        merchant_name: str | None = None,
        transaction_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[PaymentReceipt]:
        body = omit_none(
            card_serial=card_serial,
            amount=encode_amount(amount),
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            transaction_ref=transaction_ref,
            metadata=metadata,
            currency=currency,
        )
        return build_idempotent_post(_IN_APP_PATH, PaymentReceipt, request_id, body)

    @operation
    def verify_card(self, card_serial: str) -> Operation[VerifyCardResponse]:
        return build_safe_post(
            f"{_IN_APP_PATH}/verify-card", VerifyCardResponse, omit_none(card_serial=card_serial)
        )

    @operation
    def lookup_card(self, card_identifier: str) -> Operation[LookupCardResponse]:
        """Look up a card by its serial number or NFC UID."""
        return build_safe_post(
            f"{_IN_APP_PATH}/lookup-card",
            LookupCardResponse,
            omit_none(card_identifier=card_identifier),
        )

    @operation
    def refund(
        self,
        *,
        original_transaction_id: str,
        reason: str,
        amount: Money | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[RefundReceipt]:
        """Refund a payment, by default the full remaining amount."""
        body = _build_refund_body(original_transaction_id, reason, amount, currency)
        return build_idempotent_post(f"{_IN_APP_PATH}/refund", RefundReceipt, request_id, body)


def _build_refund_body(
    original_transaction_id: str, reason: str, amount: Money | None, currency: str | None
) -> dict[str, Any]:
    return omit_none(
        original_transaction_id=original_transaction_id,
        reason=reason,
        amount=encode_optional_amount(amount),
        currency=currency,
    )
