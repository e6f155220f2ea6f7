"""Payout, payout run and payout schedule endpoints."""

from tapgate.auth import owners
from tapgate.business.finance.bank_accounts.model import to_record as to_account_record
from tapgate.business.finance.payouts import operations, queries
from tapgate.business.finance.payouts.bank_files import load_file
from tapgate.business.finance.payouts.model import (
    to_record,
    to_record_at,
    to_run_record,
    to_schedule,
)
from tapgate.business.finance.payouts.requests import (
    ALLOWED_STATUSES,
    build_change_command,
    build_payout_command,
    decode_owner,
    describe_return,
    find_destination,
)
from tapgate.business.payments.transactions.money_requests import (
    MoneyResult,
    attach_request,
    format_amount,
    require_own_effect,
    submit_request,
    to_minor_units,
)
from tapgate.core.pagination import paginate
from tapgate.core.records import PayoutId, PayoutRunId, ProcessorId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.payouts import (
    BankPayoutReceipt,
    NewPayoutRequest,
    NewPayoutRun,
    PayoutCancellation,
    PayoutConfirmation,
    PayoutFileQuery,
    PayoutFilters,
    PayoutRecord,
    PayoutReturn,
    PayoutRunRecord,
    PayoutSchedule,
    PayoutStatus,
)
from tapgate_client.schemas.transactions import MoneyRequest

endpoints = Endpoints("Payouts", access=Access(roles="AF"), objects=ObjectAccess.ANY, owners=NEVER)
_PREFIX = "/api/v1/payouts"
_RUN_PREFIX = "/api/v1/payout-runs"


async def _describe_payout(request: GuardedRequest, body: NewPayoutRequest) -> Proposal | None:
    owner_type, owner_id = decode_owner(body.owner_id)
    row = await request.services.database.fetchrow(
        """SELECT holder_name, greatest(balance - held, 0) FROM accounts
           WHERE owner_id = $1 AND kind <> 'commission'""",
        owner_id,
    )
    if row is None:
        return None  # the ledger rejects the payout, after its replay check
    amount = row[1] if body.amount is None else to_minor_units(request, body.amount)
    sum_text = "everything available" if body.amount is None else format_amount(request, amount)
    named = body.bank_account_id
    account = (await find_destination(request, owner_type, owner_id, named)).account
    summary = f"Pay out {sum_text} to {owner_type} {row[0]}"
    if account is not None:
        number = to_account_record(account).number
        summary = (
            f"Pay out {sum_text} to the account of {owner_type} {row[0]} that ends in {number}"
        )
    return Proposal(
        operations=(Operation.PAYOUTS,),
        summary=summary,
        resource_id=body.owner_id,
        # The only verified account may be another one when the payout is approved.
        implied={"bank_account_id": account.public_id} if account and named is None else {},
        amount=amount,
    )


@endpoints.post(
    _PREFIX,
    moves_money=True,
    guard=Guard(_describe_payout, Operation.PAYOUTS),
    owners=OwnerAccess(binding=Binding.BODY, roles="MP", parameter="owner_id", key_roles=""),
    unnoticed=Unnoticed.RECEIPT,
    errors=(
        Code.PROCESSOR_NOT_FOUND,
        Code.PARTNER_NOT_FOUND,
        Code.AGENT_NOT_FOUND,
        Code.BANK_ACCOUNT_NOT_FOUND,
        Code.BANK_ACCOUNT_NOT_VERIFIED,
        Code.PROCESSOR_SUSPENDED,
        Code.PARTNER_SUSPENDED,
        Code.AGENT_NOT_ACTIVE,
        Code.INSUFFICIENT_FUNDS,
        Code.INSUFFICIENT_FLOAT,
    ),
    step_up=True,
)
async def request_payout(
    request: GuardedRequest, body: NewPayoutRequest
) -> Reply[BankPayoutReceipt]:
    """Request a payout to a bank account.

    The amount and the fee move from the owner's account to `payouts_in_transit`, and the next
    payout run sends the payout to the bank. Without `amount`, everything available above the
    reserve of the payout schedule is paid out, fee included, but no money that arrives after the
    approval rules were checked. Without `bank_account_id`, the owner's only verified account at the
    time of the request is used; approvers see it, and an approved payout goes to no other. Payouts
    never use an overdraft. A bank account that was verified less than
    `TAPGATE_BANK_ACCOUNT_COOLDOWN` seconds ago gets 403 `FORBIDDEN`, with `details.until`.
    """
    result = await submit_request(request, await build_payout_command(request, body))
    payout = await queries.get_by_transaction(request.services.database, result.id)
    record = to_record(payout)
    return result.build_reply(
        BankPayoutReceipt,
        "Payout requested",
        payout_id=record.id,
        reference=record.reference,
        fee_amount=result.fee,
        new_balance=result.payer_balance,
    )


@endpoints.get(
    _PREFIX,
    owners=OwnerAccess(
        binding=Binding.LIST, roles="MPG", rows=owners.PAYOUTS, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def list_payouts(request: RequestContext, query: PayoutFilters) -> Page[PayoutRecord]:
    """List payouts, newest first."""
    services = request.services
    rows = await queries.list_page(
        services.database, query, services.settings.timezone, request.owner_view
    )
    return paginate(rows, query, to_record)


@endpoints.get(
    f"{_PREFIX}/{{id}}",
    owners=OwnerAccess(
        binding=Binding.ROW, roles="MPG", rows=owners.PAYOUTS, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def get_payout(request: RequestContext, id: PayoutId) -> PayoutRecord:
    """Get a payout."""
    return to_record(await queries.get(request.services.database, id))


async def _change(
    request: GuardedRequest, payout_id: int, status: PayoutStatus, body: MoneyRequest
) -> Reply[PayoutRecord]:
    services = request.services
    command = attach_request(request, build_change_command(request, payout_id, status, body))
    outcome = await services.ledger.submit(command)
    require_own_effect(request, outcome)
    result = MoneyResult(outcome, services.settings.currency)
    payout = await queries.get(services.database, payout_id)
    # Another change may have followed.
    changed_at = await queries.get_time(services.database, result.id) or payout.updated_at
    headers = {"Idempotent-Replayed": "true"} if outcome.replayed else {}
    return Reply(to_record_at(payout, status, changed_at), headers=headers)


@endpoints.post(
    f"{_PREFIX}/{{id}}/cancel",
    moves_money=True,
    unguarded=Unguarded.OWN_MONEY,
    unnoticed=Unnoticed.OUTCOME,
    errors=(Code.PAYOUT_NOT_PENDING,),
)
async def cancel_payout(
    request: RequestContext, id: PayoutId, body: PayoutCancellation
) -> Reply[PayoutRecord]:
    """Cancel a requested payout.

    The amount and the fee go back to the owner.
    """
    return await _change(request, id, PayoutStatus.CANCELLED, body)


@endpoints.post(
    f"{_PREFIX}/{{id}}/paid",
    moves_money=True,
    unguarded=Unguarded.OWN_MONEY,
    unnoticed=Unnoticed.OUTCOME,
    errors=(Code.PAYOUT_NOT_PENDING,),
)
async def mark_payout_paid(
    request: RequestContext, id: PayoutId, body: PayoutConfirmation
) -> Reply[PayoutRecord]:
    """Confirm that the bank has paid a submitted payout.

    The amount moves from `payouts_in_transit` to cash.
    """
    return await _change(request, id, PayoutStatus.PAID, body)


async def _describe_return(request: GuardedRequest, id: int, body: PayoutReturn) -> Proposal | None:
    payout = await queries.get(request.services.database, id)
    return describe_return(request, payout, ALLOWED_STATUSES[PayoutStatus.RETURNED])


@endpoints.post(
    f"{_PREFIX}/{{id}}/returned",
    moves_money=True,
    guard=Guard(_describe_return, Operation.REVERSALS),
    unnoticed=Unnoticed.OUTCOME,
    errors=(Code.PAYOUT_NOT_PENDING,),
    step_up=True,
)
async def mark_payout_returned(
    request: GuardedRequest, id: PayoutId, body: PayoutReturn
) -> Reply[PayoutRecord]:
    """Return a submitted or paid payout that the bank sent back.

    The amount and the fee go back to the owner. The bank has the payout, so nothing in the ledger
    shows that it failed: approval rules for `reversals` apply.
    """
    return await _change(request, id, PayoutStatus.RETURNED, body)


@endpoints.post(
    _RUN_PREFIX,
    unguarded=Unguarded.OWN_MONEY,
    errors=(Code.PAYOUT_NOT_PENDING, Code.BANK_ACCOUNT_NOT_VERIFIED, Code.DUPLICATE_REQUEST),
    step_up=True,
)
async def create_payout_run(
    request: RequestContext, tx: Transaction, body: NewPayoutRun
) -> Reply[PayoutRunRecord]:
    """Submit requested payouts to the bank.

    All requested payouts, or only one owner type's, become `submitted`. Download the bank file of
    the run and upload it to your bank. Payouts to bank accounts that were blocked since are left
    out.
    """
    run, is_replay = await operations.create_run(
        tx,
        request.actor,
        owner_type=body.owner_type,
        admin_id=request.admin_and_session_ids[0],
        currency=request.services.settings.currency,
        key=build_idempotency_key(request, body),
    )
    headers = {"Idempotent-Replayed": "true"} if is_replay else {}
    return Reply(to_run_record(run), headers=headers)


@endpoints.get(_RUN_PREFIX)
async def list_payout_runs(request: RequestContext, query: PageQuery) -> Page[PayoutRunRecord]:
    """List payout runs, newest first."""
    return paginate(await queries.list_runs(request.services.database, query), query, to_run_record)


@endpoints.get(f"{_RUN_PREFIX}/{{id}}")
async def get_payout_run(request: RequestContext, id: PayoutRunId) -> PayoutRunRecord:
    """Get a payout run."""
    return to_run_record(await queries.get_run(request.services.database, id))


@endpoints.get(f"{_RUN_PREFIX}/{{id}}/file", media=("application/xml", "text/csv"))
async def download_payout_file(
    request: RequestContext, tx: Transaction, id: PayoutRunId, query: PayoutFileQuery
) -> Reply[bytes]:
    """Download the bank file of a payout run.

    `pain.001` is a credit transfer file of ISO 20022, pain.001.001.09. The end-to-end ID of each
    payment is the `reference` of its payout. The file of a run never changes. Every download is in
    the audit log.
    """
    file = await load_file(tx, id, query.format)
    await operations.record_download(tx, request.actor, id, query.format)
    return Reply(
        file.content,
        headers={"Content-Disposition": f'attachment; filename="{file.name}"'},
        content_type=file.content_type,
    )


@endpoints.get(
    "/api/v1/processors/{id}/payout-schedule",
    owners=OwnerAccess(binding=Binding.PATH, roles="M", scopes=(Scope.PAYMENTS_READ,)),
)
async def get_payout_schedule(request: RequestContext, id: ProcessorId) -> PayoutSchedule:
    """Get a processor's payout schedule."""
    services = request.services
    await queries.require_processor(services.database, id)
    schedule = await queries.find_schedule(services.database, id)
    return to_schedule(schedule, services.settings.currency)


@endpoints.put(
    "/api/v1/processors/{id}/payout-schedule",
    unguarded=Unguarded.OWN_MONEY,
    owners=OwnerAccess(binding=Binding.PATH, roles="M", key_roles=""),
)
async def set_payout_schedule(
    request: RequestContext, tx: Transaction, id: ProcessorId, body: PayoutSchedule
) -> PayoutSchedule:
    """Set a processor's payout schedule.

    A due payout is requested once after a day is closed: every day, or for `weekly` after Sunday.
    It pays everything available above the reserve, if it is at least `minimum`. The reserve is a
    percentage of the available balance at that moment. If an approval rule guards `payouts`, the
    payout waits for approval.
    """
    await queries.require_processor(tx, id)
    currency = request.services.settings.currency
    schedule = await operations.set_schedule(
        tx, request.actor, id, body, admin_id=request.admin_and_session_ids[0], currency=currency
    )
    return to_schedule(schedule, currency)
