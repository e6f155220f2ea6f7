"""What a merchant asks with a signing key: at a terminal, or in an app."""

from collections.abc import Mapping
from typing import Any

from tapgate.client.operation import Group, M, Operation, act, ask, move, operation
from tapgate.client.records.pos import CardCheck, CardFound, PaymentReceipt, RefundReceipt
from tapgate.client.values import Money, given, money, money_or_none

_POS = "/api/v1/pos"
_IN_APP = "/api/v1/payment"


class Pos(Group[M]):
    """At a terminal."""

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
        """A small amount needs no PIN."""
        body = given(
            card_serial=card_serial,
            amount=money(amount),
            pin=pin,
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            transaction_ref=transaction_ref,
            terminal_id=terminal_id,
            metadata=metadata,
            currency=currency,
        )
        return move(f"{_POS}/payment", PaymentReceipt, request_id, body)

    @operation
    def verify_card(self, *, card_serial: str, pin: str) -> Operation[CardCheck]:
        """A wrong PIN is counted."""
        return act(f"{_POS}/verify-card", CardCheck, given(card_serial=card_serial, pin=pin))

    @operation
    def lookup_card(self, card_identifier: str) -> Operation[CardFound]:
        """By its serial or its NFC UID."""
        return ask(f"{_POS}/lookup-card", CardFound, given(card_identifier=card_identifier))

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
        """All that remains, or a part of it."""
        body = _refund(original_transaction_id, reason, amount, currency)
        return move(f"{_POS}/refund", RefundReceipt, request_id, body)


class InApp(Group[M]):
    """In an app or a shop online, without a PIN."""

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
        body = given(
            card_serial=card_serial,
            amount=money(amount),
            merchant_id=merchant_id,
            merchant_name=merchant_name,
            transaction_ref=transaction_ref,
            metadata=metadata,
            currency=currency,
        )
        return move(_IN_APP, PaymentReceipt, request_id, body)

    @operation
    def verify_card(self, card_serial: str) -> Operation[CardCheck]:
        return ask(f"{_IN_APP}/verify-card", CardCheck, given(card_serial=card_serial))

    @operation
    def lookup_card(self, card_identifier: str) -> Operation[CardFound]:
        """By its serial or its NFC UID."""
        return ask(f"{_IN_APP}/lookup-card", CardFound, given(card_identifier=card_identifier))

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
        """All that remains, or a part of it."""
        body = _refund(original_transaction_id, reason, amount, currency)
        return move(f"{_IN_APP}/refund", RefundReceipt, request_id, body)


def _refund(
    original_transaction_id: str, reason: str, amount: Money | None, currency: str | None
) -> dict[str, Any]:
    return given(
        original_transaction_id=original_transaction_id,
        reason=reason,
        amount=money_or_none(amount),
        currency=currency,
    )
