"""Requests that move money: the amount, the idempotency key, submission and the receipt.

A route builds a command, submits it, and adds its own fields to the receipt:

    result = await submit_request(request, command)
    return result.build_reply(FundingReceipt, "Float funded", new_balance=result.payee_balance)
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from tapgate.api import idempotency
from tapgate.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.ledger.chart import UNDER_REVIEW
from tapgate.ledger.commands import Command, Outcome, ScopedIdempotencyKey
from tapgate.transactions.submit import scope_idempotency_key, submit
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import MoneyRequest, Receipt

_REPLAYED_HEADERS: Final = {"Idempotent-Replayed": "true"}
_HELD_MESSAGE: Final = "Held for review. No money moves until the review is complete."

ReceiptT = TypeVar("ReceiptT", bound=Receipt)


class MoneyResult:
    """Result of an accepted command, formatted for the receipt.

    A balance is None for a platform account, for a payee that was only credited, and for a payee
    who is hidden from the caller.
    """

    def __init__(self, outcome: Outcome, currency: str) -> None:
        self._result = result = outcome.require_accepted()
        self._currency = currency
        self._replayed = outcome.replayed
        self.id, self.status = result.transaction_id, result.status

    @property
    def payee_name(self) -> str | None:
        return self._result.payee_name

    @property
    def fee(self) -> str | None:
        return self._format(self._result.fee)

    @property
    def commission(self) -> str | None:
        return self._format(self._result.commission)

    @property
    def payer_balance(self) -> str | None:
        return self._format(self._result.payer_available)

    @property
    def payee_balance(self) -> str | None:
        return self._format(self._result.payee_available)

    @property
    def refundable_amount(self) -> str | None:
        return self._format(self._result.refundable_amount)

    @property
    def fee_refunded(self) -> str | None:
        return self._format(self._result.fee_refunded)

    def _format(self, minor: int | None) -> str | None:
        return None if minor is None else money.format_money(minor, self._currency)

    def build_reply(
        self, receipt_type: Callable[..., ReceiptT], message: str, **fields: object
    ) -> Reply[ReceiptT]:
        """Return a receipt with the fields common to all receipts and the given ones."""
        receipt = receipt_type(
            message=_HELD_MESSAGE if self.status == UNDER_REVIEW else message,
            transaction_id=ids.encode(ids.TRANSACTION, self.id),
            status=self.status,
            amount=self._format(self._result.amount),
            **fields,
        )
        return Reply(receipt, headers=_REPLAYED_HEADERS if self._replayed else {})


async def submit_request(request: RequestContext, command: Command) -> MoneyResult:
    """Submit a command, or raise its decline or rejection as an ApiError.

    A replay returns the original result.
    """
    services = request.services
    if request.approval is not None:
        # The command executes only if it ends the approval.
        command = msgspec.structs.replace(
            command,
            context={**(command.context or {}), "approval_id": request.approval.id},
            approval_id=ids.decode(ids.APPROVAL, request.approval.id),
            audit=request.actor.build_audit_facts(),
        )
    outcome = await submit(services, request.caller, command)
    if request.approval is not None and outcome.replayed and outcome.code is None:
        # The execution of an approval ends it in the same transaction, so another request has used
        # the approval's ID as idempotency key, or the same partner reference.
        raise ApiError(Code.DUPLICATE_REQUEST, "Another request has already made this transfer.")
    return MoneyResult(outcome, services.settings.currency)


def build_idempotency_key(
    request: RequestContext, body: MoneyRequest
) -> ScopedIdempotencyKey | None:
    """Return the idempotency key of a request, or None if it has none."""
    request_id = idempotency.get_idempotency_key(request, body)
    if request_id is None:
        return None
    return scope_idempotency_key(request.principal, request_id, request.path, body)


def to_minor_units(request: RequestContext, amount: str) -> int:
    """Convert an amount from a validated request body to minor units."""
    return money.parse(amount, request.services.settings.currency)


def format_amount(request: RequestContext, amount: int) -> str:
    """Format an amount in minor units for people."""
    return money.format_money(amount, request.services.settings.currency)


def build_memo(text: str | None) -> dict[str, str] | None:
    """Return the context of a command with an optional memo."""
    return None if text is None else {"memo": text}
