"""Bank account endpoints."""

from tapgate.auth.owners import BANK_ACCOUNTS
from tapgate.business.finance.bank_accounts import operations, queries
from tapgate.business.finance.bank_accounts.model import to_record
from tapgate.core.pagination import paginate
from tapgate.core.records import BankAccountId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.bank_accounts import (
    BankAccountFilters,
    BankAccountRecord,
    NewBankAccount,
)
from tapgate_client.schemas.common import Reason
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Bank accounts",
    "/api/v1/bank-accounts",
    access=Access(roles="AF"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.post(
    "",
    status=201,
    errors=(
        Code.PROCESSOR_NOT_FOUND,
        Code.PARTNER_NOT_FOUND,
        Code.AGENT_NOT_FOUND,
        Code.DUPLICATE_REFERENCE,
    ),
    unguarded=Unguarded.NO_MONEY,
    step_up=True,
    owners=OwnerAccess(binding=Binding.BODY, roles="MP", parameter="owner_id", key_roles=""),
)
async def create_bank_account(
    request: RequestContext, tx: Transaction, body: NewBankAccount
) -> BankAccountRecord:
    """Add a bank account.

    The owner is a processor, partner or agent, or with `owner_type` `platform` the platform itself.
    Another admin must verify the account before payouts can use it. An owner cannot have the same
    number twice, unless the other account is blocked.
    """
    account = await operations.create(
        tx,
        request.actor,
        body,
        admin_id=request.admin_and_session_ids[0],
        currency=request.services.settings.currency,
    )
    return to_record(account, full=True)


@endpoints.get(
    "",
    owners=OwnerAccess(
        binding=Binding.LIST, roles="MPG", rows=BANK_ACCOUNTS, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def list_bank_accounts(
    request: RequestContext, query: BankAccountFilters
) -> Page[BankAccountRecord]:
    """List bank accounts, newest first.

    `number` has the last four characters.
    """
    rows = await queries.list_page(request.services.database, query, request.owner_view)
    return paginate(rows, query, to_record)


@endpoints.get(
    "/{id}",
    owners=OwnerAccess(
        binding=Binding.ROW, roles="MPG", rows=BANK_ACCOUNTS, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def get_bank_account(request: RequestContext, id: BankAccountId) -> BankAccountRecord:
    """Get a bank account with its complete number."""
    return to_record(await queries.get(request.services.database, id), full=True)


async def _describe_verification(request: GuardedRequest, id: int) -> Proposal:
    database, admin_id = request.services.database, request.principal.admin_id
    account = await queries.get(database, id)
    assert admin_id is not None
    await operations.require_verifiable(database, account, admin_id)
    owner = account.owner_name or "the platform"
    record = to_record(account)
    return Proposal(
        operations=(Operation.BANK_ACCOUNTS,),
        summary=f"Verify the bank account of {owner} that ends in {record.number}",
        resource_id=record.id,
        before={"status": record.status},
        implied={"status": "verified"},
    )


@endpoints.post(
    "/{id}/verify",
    errors=(Code.ALREADY_BLOCKED,),
    guard=Guard(_describe_verification, Operation.BANK_ACCOUNTS),
    step_up=True,
)
async def verify_bank_account(
    request: GuardedRequest, tx: Transaction, id: BankAccountId
) -> BankAccountRecord:
    """Verify a bank account.

    The admin must be another person than the one who added the account. Payouts can use the
    account when `TAPGATE_BANK_ACCOUNT_COOLDOWN` has passed.
    """
    admin_id = request.principal.admin_id
    assert admin_id is not None
    account = await operations.verify(tx, request.actor, id, admin_id=admin_id)
    return to_record(account, full=True)


@endpoints.post("/{id}/block", errors=(Code.ALREADY_BLOCKED,), unguarded=Unguarded.TAKES_RIGHTS)
async def block_bank_account(
    request: RequestContext, tx: Transaction, id: BankAccountId, body: Reason
) -> BankAccountRecord:
    """Block a bank account permanently.

    Requested payouts to the account stay requested, and payout runs leave them out.
    """
    return to_record(await operations.block(tx, request.actor, id, body.reason), full=True)
