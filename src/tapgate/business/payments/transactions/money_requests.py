"""Requests that move money: amounts, submission to the ledger and receipts.

A route builds a command, submits it, and adds its own fields to the receipt:

    result = await submit_request(request, command)
    return result.build_reply(FundingReceipt, "Float funded", new_balance=result.payee_balance)
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from tapgate.auth.disclosure import (
    Audience,
    Subject,
    find_hidden_accounts,
    find_hidden_subjects,
    has_full_disclosure,
    is_hidden,
)
from tapgate.auth.principals import Principal
from tapgate.http.api.request_context import GuardedRequest
from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.ledger.commands import PIN_POLICIES, Command, Outcome, Party, PinPolicy
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.transactions import Channel, Receipt

_REPLAYED_HEADERS: Final = {"Idempotent-Replayed": "true"}
_HELD_MESSAGE: Final = "Held for review. No money moves until the review is complete."

#: Caller types that act for an admin.
_RECORDED_KINDS: Final = ("admin", "api_key")

_CHANNEL_BY_PRINCIPAL: Final = {
    "api_key": Channel.API,
    "admin": Channel.ADMIN,
    "service": Channel.MESSAGING,
    "partner": Channel.PARTNER,
    "processor": Channel.POS,
}

#: Decline details about the customer at an agent's counter.
_CUSTOMER_AMOUNTS: Final[Mapping[str, frozenset[str]]] = {
    chart.AGENT_CASHIN: frozenset({"used"}),
    chart.AGENT_CASHOUT: frozenset({"available", "used"}),
}

ReceiptT = TypeVar("ReceiptT", bound=Receipt)


class MoneyResult:
    """Accepted command's result, formatted for the receipt.

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
            message=_HELD_MESSAGE if self.status == chart.UNDER_REVIEW else message,
            transaction_id=ids.encode(ids.TRANSACTION, self.id),
            status=self.status,
            amount=self._format(self._result.amount),
            **fields,
        )
        return Reply(receipt, headers=_REPLAYED_HEADERS if self._replayed else {})


def attach_request(request: GuardedRequest, command: Command) -> Command:
    """Return the command with its requester, and with the approval that it ends."""
    approval, caller = request.approval, request.caller
    if approval is not None:
        # The command executes only if it ends the approval.
        command = msgspec.structs.replace(
            command,
            context={**(command.context or {}), "approval_id": approval.id},
            approval_id=ids.decode(ids.APPROVAL, approval.id),
            audit=request.actor.build_audit_facts(
                None if command.audit is None else command.audit.reason
            ),
        )
    if caller is not None and caller.kind in _RECORDED_KINDS:
        # Who asked for a transaction may not release it from review.
        command = msgspec.structs.replace(
            command, context={**(command.context or {}), "requested_by": caller.id}
        )
    return command


async def submit_request(request: GuardedRequest, command: Command) -> MoneyResult:
    """Submit a command, or raise its decline or rejection as an ApiError.

    A replay returns the original result. A paying subscriber is not checked here: a caller without
    full disclosure must send the payer's PIN, or the route has already checked access to the payer.
    """
    services, caller = request.services, request.caller
    command = attach_request(request, command)
    if caller is not None and (command.payer_pin is not None or command.payee_pin is not None):
        command = msgspec.structs.replace(command, pin_credential=caller.pin_credential)
    may_be_subscriber = command.payee.by != "owner" or command.payee.kind == chart.WALLET
    if not may_be_subscriber or has_full_disclosure(caller):
        outcome = await services.ledger.submit(command)
    else:
        outcome = await _submit_for_disclosure(request, command)
    if caller is not None and caller.owner is not None:
        outcome = _hide_customer_amounts(outcome, command.type)
    require_own_effect(request, outcome)
    return MoneyResult(outcome, services.settings.currency)


def require_own_effect(request: GuardedRequest, outcome: Outcome) -> None:
    """Reject an approved request whose effect another request has had.

    Executing an approval ends it in the same database transaction, so another request has used the
    approval's ID as idempotency key, or the same partner reference.
    """
    if request.approval is not None and outcome.replayed and outcome.code is None:
        raise ApiError(Code.DUPLICATE_REQUEST, "Another request has already made this transfer.")


async def _submit_for_disclosure(request: GuardedRequest, command: Command) -> Outcome:
    """Submit a command, and return the outcome without payee data that the caller may not see."""
    services, caller = request.services, request.caller
    if caller is not None and caller.kind == "admin":
        # Query this before the ledger commits, so that if it fails with 503, nothing is executed.
        is_payee_hidden = await _is_payee_hidden(request, caller, command.payee)
        outcome = await services.ledger.submit(command)
    else:
        # Every restricted subscriber is hidden. The ledger reads this with its other data.
        outcome = await services.ledger.submit(
            msgspec.structs.replace(command, checks_restriction=True)
        )
        is_payee_hidden = outcome.is_payee_restricted is not False
    return _redact_payee(outcome) if is_payee_hidden else outcome


async def _is_payee_hidden(request: GuardedRequest, caller: Audience, payee: Party) -> bool:
    """Return whether the payee is a restricted subscriber that an admin cannot access."""
    database, now = request.services.database, request.services.clock()
    match payee:
        case Party(by="account", key=int(account_id)):
            return bool(await find_hidden_accounts(database, caller, now, [account_id]))
        case Party(by="card", key=str(serial)):
            subjects = [Subject("card", serial)]
            return bool(await find_hidden_subjects(database, caller, now, subjects))
        case Party(by="owner", key=int(owner_id), kind=chart.WALLET):
            return await is_hidden(database, caller, now, owner_id)
    return False


def _hide_customer_amounts(outcome: Outcome, transaction_type: str) -> Outcome:
    """Remove the customer's balance and usage from a decline's details, for an owner's caller."""
    hidden = _CUSTOMER_AMOUNTS.get(transaction_type)
    if hidden is None or outcome.details is None:
        return outcome
    details = {name: value for name, value in outcome.details.items() if name not in hidden}
    return msgspec.structs.replace(outcome, details=details)


def _redact_payee(outcome: Outcome) -> Outcome:
    """Remove the payee's name and balance, including `used` in the MAX_BALANCE_EXCEEDED details."""
    details, result = outcome.details, outcome.result
    if outcome.code == Code.MAX_BALANCE_EXCEEDED and details is not None:
        details = {name: value for name, value in details.items() if name != "used"}
    if result is not None:
        result = msgspec.structs.replace(result, payee_name=None, payee_available=None)
    return msgspec.structs.replace(outcome, result=result, details=details)


def get_channel(caller: Principal) -> Channel:
    """Return a command's channel if its route does not determine one."""
    return _CHANNEL_BY_PRINCIPAL[caller.kind]


def get_pin_policy(caller: Principal, transaction_type: str) -> PinPolicy:
    """Return when the payer must enter a PIN for a transaction that the caller requests."""
    if transaction_type == chart.TRANSFER and caller.kind == "admin":
        return "if_given"
    return PIN_POLICIES.get(transaction_type, "if_given")


def decode_id(prefix: str, public_id: str | None) -> int:
    """Decode a public ID; return 0, which no row has, for an invalid or missing ID.

    The ledger then returns the 404 error itself, after it has checked for a replay.
    """
    return 0 if public_id is None else ids.decode(prefix, public_id) or 0


def to_minor_units(request: GuardedRequest, amount: str) -> int:
    """Convert an amount from a validated request body to minor units."""
    return money.parse(amount, request.services.settings.currency)


def get_refund_limit(request: GuardedRequest) -> int | None:
    """Return how much of a payment may be refunded in all if a cashier refunds; else None."""
    settings = request.services.settings
    if request.principal.role != AdminRole.MERCHANT_CASHIER:
        return None
    return money.from_whole_units(settings.cashier_refund_limit, settings.currency)


def format_amount(request: GuardedRequest, amount: int) -> str:
    """Format an amount in minor units for people."""
    return money.format_money(amount, request.services.settings.currency)


def build_memo(text: str | None, reference: str | None = None) -> dict[str, str] | None:
    """Return a command's context with an optional memo and an optional bank reference."""
    context = {"memo": text, "reference": reference}
    return {name: value for name, value in context.items() if value is not None} or None
