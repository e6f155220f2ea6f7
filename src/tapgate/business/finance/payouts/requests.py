"""Payout requests: the bank account to use, and the ledger commands."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from tapgate.business.finance.bank_accounts import queries as bank_accounts
from tapgate.business.finance.bank_accounts.model import BankAccount, parse_owner_id
from tapgate.business.finance.payouts import queries
from tapgate.business.finance.payouts.model import Payout, build_owner_party, build_reference
from tapgate.business.payments.transactions.money_requests import (
    format_amount,
    get_channel,
    to_minor_units,
)
from tapgate.http.api.guards import Proposal
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.request_context import GuardedRequest
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, NewPayout, PayoutChange
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.bank_accounts import BankAccountOwner, BankAccountStatus
from tapgate_client.schemas.payouts import NewPayoutRequest, PayoutStatus
from tapgate_client.schemas.transactions import MoneyRequest


class Destination(NamedTuple):
    """Bank account of a payout, or why there is none."""

    account: BankAccount | None
    error: Code | None = None
    details: dict[str, str | list[str]] | None = None


def decode_owner(owner_id: str) -> tuple[BankAccountOwner, int]:
    owner = parse_owner_id(owner_id)
    if owner is None:
        raise invalid_field("owner_id", "must be the ID of a processor, partner or agent")
    return owner


async def build_payout_command(
    request: GuardedRequest, body: NewPayoutRequest, *, minimum: int = 0
) -> Command:
    """Return the command. The ledger reports a bank account error after it checked for a replay."""
    owner_type, owner_id = decode_owner(body.owner_id)
    services = request.services
    named = body.bank_account_id or _get_described_account(request)
    destination = await find_destination(request, owner_type, owner_id, named)
    account_id = 0 if destination.account is None else destination.account.id
    schedule = await queries.find_schedule(services.database, owner_id)
    payout_id = services.new_id()
    return Command(
        type=chart.PAYOUT,
        channel=get_channel(request.principal),
        payer=build_owner_party(owner_type, owner_id),
        payee=commands.PAYOUTS_IN_TRANSIT_PARTY,
        amount=None if body.amount is None else to_minor_units(request, body.amount),
        idempotency_key=build_idempotency_key(request, body),
        caller_error=destination.error,
        caller_error_details=destination.details,
        audit=request.actor.build_audit_facts(),
        payout=NewPayout(
            id=payout_id,
            owner_type=owner_type,
            owner_id=owner_id,
            bank_account_id=account_id,
            reference=build_reference(payout_id),
            reserve_percent=0 if schedule is None else schedule.reserve_percent,
            minimum=minimum,
            maximum=request.proposed_amount,
        ),
    )


def _get_described_account(request: GuardedRequest) -> str | None:
    """Return the account that the request meant when approval rules were checked."""
    proposal = None if request.description is None else request.description.proposal
    return None if proposal is None else proposal.implied.get("bank_account_id")


async def find_destination(
    request: GuardedRequest, owner_type: BankAccountOwner, owner_id: int, account_id: str | None
) -> Destination:
    services = request.services
    if account_id is None:
        verified = await bank_accounts.list_verified(services.database, owner_type, owner_id)
        if len(verified) != 1:
            listed = [account.public_id for account in verified]
            return Destination(None, Code.BANK_ACCOUNT_NOT_VERIFIED, {"accounts": listed})
        account = verified[0]
    else:
        number = ids.decode(ids.BANK_ACCOUNT, account_id)
        found = None if number is None else await _find_account(services.database, number)
        if found is None or (found.owner_type, found.owner_id) != (owner_type, owner_id):
            return Destination(None, Code.BANK_ACCOUNT_NOT_FOUND)
        account = found
    if account.status != BankAccountStatus.VERIFIED or account.verified_at is None:
        return Destination(account, Code.BANK_ACCOUNT_NOT_VERIFIED)
    until = account.verified_at + timedelta(seconds=services.settings.bank_account_cooldown)
    if services.clock() < until:
        return Destination(account, Code.FORBIDDEN, {"until": format_rfc3339(until)})
    return Destination(account)


async def _find_account(reader: Any, number: int) -> BankAccount | None:
    try:
        return await bank_accounts.get(reader, number)
    except ApiError:
        return None


#: Statuses from which a payout can get a status.
ALLOWED_STATUSES: Final = {
    PayoutStatus.CANCELLED: (PayoutStatus.REQUESTED,),
    PayoutStatus.PAID: (PayoutStatus.SUBMITTED,),
    PayoutStatus.RETURNED: (PayoutStatus.SUBMITTED, PayoutStatus.PAID),
}


#: Statuses that a payout keeps.
_FINAL_STATUSES: Final = (PayoutStatus.RETURNED, PayoutStatus.CANCELLED)


def describe_return(
    request: GuardedRequest, payout: Payout, allowed: Sequence[PayoutStatus]
) -> Proposal | None:
    """Describe the return of a payout that the bank has: a reversal by staff.

    Return None if the payout's status can no longer change: the ledger replays or rejects the
    request. A status that can still change is rejected here, because the ledger may find another
    one.
    """
    if payout.status in _FINAL_STATUSES:
        return None
    if payout.status not in allowed:
        raise ApiError(Code.PAYOUT_NOT_PENDING, details={"status": payout.status})
    amount = payout.amount + payout.fee_amount
    return Proposal(
        operations=(Operation.REVERSALS,),
        summary=f"Return payout {payout.reference} of {format_amount(request, amount)} to "
        f"{payout.owner_type} {payout.owner_name}",
        resource_id=ids.encode(ids.PAYOUT, payout.id),
        amount=amount,
    )


def build_change_command(
    request: GuardedRequest, payout_id: int, status: PayoutStatus, body: MoneyRequest
) -> Command:
    """Return the command that cancels, confirms or returns a payout."""
    return Command(
        type=chart.BANK_POSTING if status == PayoutStatus.PAID else chart.PAYOUT_RETURN,
        channel=get_channel(request.principal),
        payer=commands.UNKNOWN_PARTY,
        payee=commands.UNKNOWN_PARTY,
        amount=None,
        idempotency_key=build_idempotency_key(request, body),
        audit=request.actor.build_audit_facts(),
        payout_change=PayoutChange(
            payout_id=payout_id,
            status=status,
            allowed=ALLOWED_STATUSES[status],
            bank_reference=getattr(body, "bank_reference", None),
            return_reason=getattr(body, "reason", None),
        ),
    )
