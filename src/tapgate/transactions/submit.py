"""Submission of money requests to the ledger, with idempotency keys and receipts."""

import hashlib
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from tapgate import ids, money
from tapgate.api import idempotency
from tapgate.api.endpoint import Reply
from tapgate.api.request_context import RequestContext
from tapgate.auth.disclosure import (
    Subject,
    find_hidden_accounts,
    find_hidden_subjects,
    has_full_disclosure,
    is_hidden,
)
from tapgate.auth.principals import Principal
from tapgate.errors import Code
from tapgate.ledger import chart
from tapgate.ledger.commands import Command, Outcome, Party, ScopedIdempotencyKey, TransactionResult
from tapgate.schemas.transactions import Channel, MoneyRequest, Receipt, TransactionStatus

_REPLAYED_HEADERS: Final = {"Idempotent-Replayed": "true"}

#: Fields outside the fingerprint: the idempotency key, PINs, and the currency, which cannot vary.
_FINGERPRINT_EXCLUDED_FIELDS: Final = ("request_id", "pin", "agent_pin", "currency")

_CHANNEL_BY_PRINCIPAL: Final = {
    "api_key": Channel.API,
    "admin": Channel.ADMIN,
    "service": Channel.MESSAGING,
    "partner": Channel.PARTNER,
    "processor": Channel.POS,
}


ReceiptT = TypeVar("ReceiptT", bound=Receipt)


class ReceiptFields:
    """A ledger result, formatted for receipts."""

    def __init__(self, result: TransactionResult, currency: str) -> None:
        self._result = result
        self._currency = currency
        self.internal_id = result.transaction_id
        self.transaction_id = ids.encode(ids.TRANSACTION, result.transaction_id)
        self.status = result.status
        self.amount = self.format_money(result.amount)
        self.fee = self.format_money(result.fee)
        self.payee_name = result.payee_name

    @property
    def commission(self) -> str:
        return self.format_money(self._result.commission)

    def format_money(self, minor: int) -> str:
        return money.format_money(minor, self._currency)

    def build_message(self, completed_message: str) -> str:
        if self.status == TransactionStatus.UNDER_REVIEW:
            return "Held for review. No money moves until the review is complete."
        return completed_message

    @property
    def payer_balance(self) -> str:
        """Return the payer's available balance. The payer must not be a platform account."""
        balance, _ = self.balances
        assert balance is not None, "platform accounts have no balance"
        return balance

    @property
    def payee_balance(self) -> str:
        """Return the available balance of a payee that is an agent or a partner."""
        balance = self.visible_payee_balance
        assert balance is not None, "the payee's balance is not available"
        return balance

    @property
    def visible_payee_balance(self) -> str | None:
        """Return the payee's available balance, or None as in `balances`."""
        _, balance = self.balances
        return balance

    @property
    def balances(self) -> tuple[str | None, str | None]:
        """Return the available balances of payer and payee, or None where a balance is unavailable.

        A balance is unavailable for a platform account, a credit-only payee or a payee who is
        hidden from the caller.
        """
        payer, payee = self._result.payer_available, self._result.payee_available
        return (
            None if payer is None else self.format_money(payer),
            None if payee is None else self.format_money(payee),
        )

    @property
    def refundable_amount(self) -> str:
        assert self._result.refundable_amount is not None
        return self.format_money(self._result.refundable_amount)


async def submit(
    request: RequestContext, command: Command, build_receipt: Callable[[ReceiptFields], ReceiptT]
) -> Reply[ReceiptT]:
    """Submit a command and return its receipt, or raise the decline or rejection as an ApiError.

    A replay returns the original receipt.
    """
    # Query this before the ledger commits, so that if it fails with 503, nothing is executed.
    is_payee_hidden = not has_full_disclosure(request.caller) and await _is_payee_hidden(
        request, command.payee
    )
    outcome = await request.services.ledger.submit(command)
    if is_payee_hidden:
        outcome = _redact_payee(outcome)
    receipt_fields = ReceiptFields(outcome.require_accepted(), request.services.settings.currency)
    return Reply(
        build_receipt(receipt_fields), headers=_REPLAYED_HEADERS if outcome.replayed else {}
    )


async def _is_payee_hidden(request: RequestContext, payee: Party) -> bool:
    """Return whether the payee is a restricted subscriber hidden from the caller.

    A subscriber who pays is not checked here: a caller without full disclosure must send the
    payer's PIN, or the route has already checked access to the payer.
    """
    audience = (request.services.database, request.caller, request.services.clock())
    match payee:
        case Party(by="account", key=int(account_id)):
            return bool(await find_hidden_accounts(*audience, [account_id]))
        case Party(by="card", key=str(serial)):
            return bool(await find_hidden_subjects(*audience, [Subject("card", serial)]))
        case Party(by="owner", key=int(owner_id), kind=chart.WALLET):
            return await is_hidden(*audience, owner_id)
    return False


def _redact_payee(outcome: Outcome) -> Outcome:
    """Remove the payee's name and balance, including `used` in the MAX_BALANCE_EXCEEDED details."""
    details, result = outcome.details, outcome.result
    if outcome.code == Code.MAX_BALANCE_EXCEEDED and details is not None:
        details = {name: value for name, value in details.items() if name != "used"}
    if result is not None:
        result = msgspec.structs.replace(result, payee_name=None, payee_available=None)
    return msgspec.structs.replace(outcome, result=result, details=details)


def build_idempotency_key(
    request: RequestContext, body: MoneyRequest
) -> ScopedIdempotencyKey | None:
    """Return the idempotency key of a request, or None if it has none."""
    request_id = idempotency.get_idempotency_key(request, body)
    if request_id is None:
        return None
    caller = request.principal
    return ScopedIdempotencyKey(
        caller.idempotency_scope,
        request_id,
        _calculate_fingerprint(request, body),
        caller.lookup_scopes,
    )


def _calculate_fingerprint(request: RequestContext, body: MoneyRequest) -> bytes:
    fields = msgspec.structs.asdict(body)
    for name in _FINGERPRINT_EXCLUDED_FIELDS:
        fields.pop(name, None)
    path = request.path.removeprefix("/api/v1").encode()
    encoded = msgspec.json.encode(fields, order="deterministic")
    return hashlib.blake2b(path + b"\n" + encoded, digest_size=16).digest()


def get_channel(caller: Principal) -> Channel:
    """Return the channel of a command whose route does not determine it."""
    return _CHANNEL_BY_PRINCIPAL[caller.kind]


def to_minor_units(request: RequestContext, amount: str) -> int:
    """Convert an amount from a validated request body to minor units."""
    return money.parse(amount, request.services.settings.currency)


def decode_id(prefix: str, public_id: str | None) -> int:
    """Decode a public ID; return 0, which no row has, for an invalid or missing ID.

    The ledger then returns the 404 error itself, after it has checked for a replay.
    """
    return 0 if public_id is None else ids.decode(prefix, public_id) or 0
