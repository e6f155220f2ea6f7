"""Endpoints for transactions."""

from tapgate import ids
from tapgate.api import csv_files
from tapgate.api.endpoint import Access, Endpoints, Reply
from tapgate.api.request_context import RequestContext
from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.clock import get_platform_day
from tapgate.errors import ApiError, Code
from tapgate.schemas.pagination import Page, paginate
from tapgate.schemas.transactions import (
    ExportFilters,
    TransactionChain,
    TransactionEntries,
    TransactionFilters,
    TransactionRecord,
)
from tapgate.subscribers.restriction import require_account_access
from tapgate.transactions import queries
from tapgate.transactions.chain import get_chain
from tapgate.transactions.entries import get_entries
from tapgate.transactions.export import export_csv
from tapgate.transactions.model import Transaction, decode_transaction_id, parse_user_id, to_record
from tapgate.transactions.queries import TransactionQuery

endpoints = Endpoints("Transactions")

_READ = Access(scope="payments:read", roles="ACSF", service=True)
_ANY_ADMIN = Access(roles="ACSF")
_TRANSACTION_ERRORS = (Code.TRANSACTION_NOT_FOUND, Code.OTP_REQUIRED)


@endpoints.get("/api/v1/transactions", access=_READ, errors=(Code.OTP_REQUIRED,))
async def list_transactions(
    request: RequestContext, query: TransactionFilters
) -> Page[TransactionRecord]:
    """List transactions, newest first.

    With `user_id`, the list shows one user's transactions, and `direction` and `balance_after` are
    from that user's point of view. An agent's list covers the float and the commission account.
    `card_serial` selects transactions in which the card was used to pay or to receive money.

    For admins, the list includes the transactions of restricted subscribers, masked: `from` and
    `to` have only `type` and `id`, and the page and the transaction have `masked: true`. After
    verifying a one-time code, the admin sees that subscriber's transactions in full. For API keys,
    the list omits the transactions of restricted subscribers. Filtering by the `user_id` or
    `card_serial` of a restricted subscriber fails with `OTP_REQUIRED` for API keys, and for admins
    who have not verified the code.
    """
    return await _list_page(request, query)


@endpoints.get(
    "/api/v1/transactions/export",
    access=Access(scope="payments:read", roles="ACSF"),
    errors=(Code.OTP_REQUIRED,),
    media=("text/csv",),
    heavy=True,
)
async def export_transactions(request: RequestContext, query: ExportFilters) -> Reply[bytes]:
    """Export transactions as CSV, newest first.

    Returns the same transactions as the list with the same filters, at most 50,000 per file. If
    there are more, the `X-Next-Cursor` header contains the `cursor` for the next file. Text that a
    spreadsheet would interpret as a formula is prefixed with an apostrophe. The last column,
    `masked`, is `true` for a masked transaction, whose names, card serial and memo are empty. If
    the file contains a masked transaction, the response has the header `X-Masked: true`.
    """
    services = request.services
    export = await export_csv(lambda filters: _list_page(request, filters), query)
    day = get_platform_day(services.clock(), services.settings.timezone)
    headers = {"Content-Disposition": f'attachment; filename="transactions-{day}.csv"'}
    if export.next_cursor is not None:
        headers["X-Next-Cursor"] = export.next_cursor
    if export.masked:
        headers["X-Masked"] = "true"
    return Reply(export.content, headers=headers, content_type=csv_files.CONTENT_TYPE)


async def _list_page(request: RequestContext, query: TransactionFilters) -> Page[TransactionRecord]:
    scope, own_accounts = TransactionQuery(), []
    if query.user_id is not None:
        own_accounts = await _list_visible_account_ids(request, query.user_id)
        scope.include_accounts(own_accounts)
        if not own_accounts:
            return Page([], has_more=False, next_cursor=None)
    if query.card_serial is not None:
        account_id = await queries.get_card_account_id(request.services.database, query.card_serial)
        await require_account_access(
            request.services.database, request.caller, request.services.clock(), [account_id]
        )
        if own_accounts:
            scope.filter_by_card(query.card_serial)
        else:
            scope.include_card(query.card_serial, account_id)
    return await _build_page(request, scope, query, own_accounts, full=_can_see_full_names(request))


@endpoints.get("/api/v1/transactions/{id}", access=_READ, errors=_TRANSACTION_ERRORS)
async def get_transaction(request: RequestContext, id: str) -> TransactionRecord:
    """Get a transaction.

    For admins, a restricted subscriber's transaction is masked, as in the list, until a one-time
    code is verified. For API keys, the request fails with `OTP_REQUIRED`.
    """
    transaction, hidden = await _get_visible_transaction(request, id)
    return to_record(transaction, full=_can_see_full_names(request), hidden=hidden)


@endpoints.get("/api/v1/transactions/{id}/entries", access=_ANY_ADMIN, errors=_TRANSACTION_ERRORS)
async def list_transaction_entries(request: RequestContext, id: str) -> TransactionEntries:
    """List the ledger entries of a transaction.

    Entries are in posting order. Each moves one amount from the debited account to the credited
    account. A transaction that moved no money has no entries. `balance_after` is available only for
    the accounts of the payer and the payee. If a restricted subscriber takes part and the admin has
    not verified a one-time code, `masked` is `true`, and names and balances are null, except those
    of platform accounts.
    """
    transaction, hidden = await _get_visible_transaction(request, id)
    return await get_entries(request.services.database, transaction, masked=bool(hidden))


@endpoints.get("/api/v1/transactions/{id}/chain", access=_ANY_ADMIN, errors=_TRANSACTION_ERRORS)
async def get_transaction_chain(request: RequestContext, id: str) -> TransactionChain:
    """Get the records related to a transaction.

    `original` is the payment that a refund belongs to. `refunds` are the first 1,000 refunds of a
    payment, oldest first, including declined ones. `replays` counts the repeated requests that
    received the original response; it is updated about once a second.
    """
    transaction, _ = await _get_visible_transaction(request, id)
    return await get_chain(request, transaction)


@endpoints.get(
    "/api/v1/processors/{id}/transactions",
    access=Access(scope="payments:read", roles="ACSF"),
    errors=(Code.PROCESSOR_NOT_FOUND, Code.OTP_REQUIRED),
)
async def list_processor_transactions(
    request: RequestContext, id: str, query: TransactionFilters
) -> Page[TransactionRecord]:
    """List a processor's transactions, newest first.

    Names are abbreviated for all callers. `user_id` selects transactions with one counterparty.
    Transactions of restricted subscribers are masked or omitted, as in the list of all
    transactions.
    """
    scope = TransactionQuery()
    own_accounts = (
        await _list_visible_account_ids(request, id) if id.startswith(ids.PROCESSOR) else []
    )
    if not own_accounts:
        raise ApiError(Code.PROCESSOR_NOT_FOUND)
    scope.include_accounts(own_accounts)
    if query.user_id is not None:
        scope.filter_by_accounts(await _list_visible_account_ids(request, query.user_id))
    if query.card_serial is not None:
        account_id = await queries.get_card_account_id(request.services.database, query.card_serial)
        await require_account_access(
            request.services.database, request.caller, request.services.clock(), [account_id]
        )
        scope.filter_by_card(query.card_serial)
    return await _build_page(request, scope, query, own_accounts, full=False)


async def _get_visible_transaction(
    request: RequestContext, id: str
) -> tuple[Transaction, set[int]]:
    """Return a transaction, and those of its accounts whose holders are hidden from the caller.

    If there are such accounts, API keys get `OTP_REQUIRED`.
    """
    database = request.services.database
    transaction = await queries.get(database, decode_transaction_id(id))
    if request.principal.kind != "admin":
        await require_account_access(
            database, request.caller, request.services.clock(), transaction.account_ids
        )
    return transaction, await find_hidden_accounts(
        database, request.caller, request.services.clock(), transaction.account_ids
    )


async def _list_visible_account_ids(request: RequestContext, user_id: str) -> list[int]:
    """Return a user's account IDs, or raise OTP_REQUIRED if the user is hidden from the caller.

    The list is empty if the user does not exist.
    """
    user = parse_user_id(user_id)
    if user is None:
        return []
    accounts = await queries.list_account_ids(request.services.database, user)
    await require_account_access(
        request.services.database, request.caller, request.services.clock(), accounts
    )
    return accounts


async def _build_page(
    request: RequestContext,
    scope: TransactionQuery,
    query: TransactionFilters,
    own_accounts: list[int],
    *,
    full: bool,
) -> Page[TransactionRecord]:
    services = request.services
    rows = await queries.list_page(
        services.database,
        scope,
        query,
        request.principal,
        now=services.clock(),
        zone=services.settings.timezone,
    )
    hidden = await find_hidden_accounts(
        services.database,
        request.caller,
        request.services.clock(),
        {account for row in rows for account in row.account_ids},
    )
    return paginate(
        rows,
        query.limit,
        key=lambda row: row.id,
        to_record=lambda row: to_record(row, full=full, own_accounts=own_accounts, hidden=hidden),
    )


def _can_see_full_names(request: RequestContext) -> bool:
    """Return whether the caller is an admin. Other callers see abbreviated names."""
    return request.principal.kind == "admin"
