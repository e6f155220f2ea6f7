"""The endpoints of transactions."""

from tapgate import ids
from tapgate.clock import get_platform_day
from tapgate.edge import csv_files
from tapgate.edge.endpoint import Access, Endpoints, Reply
from tapgate.edge.pagination import Page, paginate
from tapgate.edge.request_context import RequestContext
from tapgate.errors import ApiError, Code
from tapgate.subscribers.restriction import find_accounts_hidden_from, require_account_access
from tapgate.transactions import queries
from tapgate.transactions.chain import TransactionChain, get_chain
from tapgate.transactions.entries import TransactionEntries, get_entries
from tapgate.transactions.export import ExportFilters, export_csv
from tapgate.transactions.model import (
    Transaction,
    TransactionFilters,
    TransactionRecord,
    decode_transaction_id,
    parse_user_id,
    to_record,
)
from tapgate.transactions.queries import TransactionQuery

endpoints = Endpoints("Transactions")

_READ = Access(scope="payments:read", roles="ACSF", service=True)
_ANY_ADMIN = Access(roles="ACSF")
_TRANSACTION_ERRORS = (Code.TRANSACTION_NOT_FOUND, Code.OTP_REQUIRED)


@endpoints.get("/api/v1/transactions", access=_READ, errors=(Code.OTP_REQUIRED,))
async def list_transactions(
    call: RequestContext, query: TransactionFilters
) -> Page[TransactionRecord]:
    """List transactions, newest first.

    With `user_id` the list is one user's: `direction` and `balance_after` are that user's, of an
    agent the float and the commission. `card_serial` finds what was paid with a card and what was
    received by it.

    An admin also gets the transactions of restricted subscribers, masked: `from` and `to` have only
    `type` and `id`, and the page and the transaction have `masked: true`. After verifying a code,
    the admin sees that subscriber's transactions in full. API keys do not get them. Filtering by a
    restricted subscriber's own `user_id` or `card_serial` needs the code: `OTP_REQUIRED`.
    """
    return await _list_page(call, query)


@endpoints.get(
    "/api/v1/transactions/export",
    access=Access(scope="payments:read", roles="ACSF"),
    errors=(Code.OTP_REQUIRED,),
    media=("text/csv",),
    heavy=True,
)
async def export_transactions(call: RequestContext, query: ExportFilters) -> Reply[bytes]:
    """Export transactions as CSV, newest first.

    The same transactions as the list with the same filters, at most 50,000 in a file. When there
    are more, the header `X-Next-Cursor` has the `cursor` of the next file. Text that a spreadsheet
    would read as a formula starts with an apostrophe. The last column, `masked`, is `true` for a
    transaction of a restricted subscriber, whose names, card, and memo are empty; a file with such
    a row has the header `X-Masked: true`.
    """
    services = call.services
    export = await export_csv(lambda filters: _list_page(call, filters), query)
    day = get_platform_day(services.clock(), services.settings.timezone)
    headers = {"Content-Disposition": f'attachment; filename="transactions-{day}.csv"'}
    if export.next_cursor is not None:
        headers["X-Next-Cursor"] = export.next_cursor
    if export.masked:
        headers["X-Masked"] = "true"
    return Reply(export.content, headers=headers, content_type=csv_files.CONTENT_TYPE)


async def _list_page(call: RequestContext, query: TransactionFilters) -> Page[TransactionRecord]:
    scope, own_accounts = TransactionQuery(), []
    if query.user_id is not None:
        own_accounts = await _list_visible_account_ids(call, query.user_id)
        scope.include_accounts(own_accounts)
        if not own_accounts:
            return Page([], has_more=False, next_cursor=None)
    if query.card_serial is not None:
        account_id = await queries.get_card_account_id(call.services.database, query.card_serial)
        await require_account_access(call.services.database, call, [account_id])
        if own_accounts:
            scope.filter_by_card(query.card_serial)
        else:
            scope.include_card(query.card_serial, account_id)
    return await _build_page(call, scope, query, own_accounts, full=_can_see_full_names(call))


@endpoints.get("/api/v1/transactions/{id}", access=_READ, errors=_TRANSACTION_ERRORS)
async def get_transaction(call: RequestContext, id: str) -> TransactionRecord:
    """Get a transaction.

    An admin gets a restricted subscriber's transaction masked, as in the list, until a code is
    verified; an API key gets `OTP_REQUIRED`.
    """
    transaction, hidden = await _get_visible_transaction(call, id)
    return to_record(transaction, full=_can_see_full_names(call), hidden=hidden)


@endpoints.get("/api/v1/transactions/{id}/entries", access=_ANY_ADMIN, errors=_TRANSACTION_ERRORS)
async def list_transaction_entries(call: RequestContext, id: str) -> TransactionEntries:
    """List the ledger entries of a transaction.

    In the order in which they were booked. Each takes one amount from the account that is debited
    and gives it to the one that is credited; a transaction that moved nothing has none.
    `balance_after` is known of the payer's and the payee's account only. `masked: true` is there
    when a restricted subscriber takes part: names and balances are then null.
    """
    transaction, hidden = await _get_visible_transaction(call, id)
    return await get_entries(call.services.database, transaction, masked=bool(hidden))


@endpoints.get("/api/v1/transactions/{id}/chain", access=_ANY_ADMIN, errors=_TRANSACTION_ERRORS)
async def get_transaction_chain(call: RequestContext, id: str) -> TransactionChain:
    """Get what belongs to a transaction.

    `original` is the payment that a refund gives back. `refunds` are those of a payment, oldest
    first, the first 1,000, also those that were declined. `replays` is how often its request came
    again and was answered with what had been answered before; counted about once a second.
    """
    transaction, _ = await _get_visible_transaction(call, id)
    return await get_chain(call, transaction)


@endpoints.get(
    "/api/v1/processors/{id}/transactions",
    access=Access(scope="payments:read", roles="ACSF"),
    errors=(Code.PROCESSOR_NOT_FOUND, Code.OTP_REQUIRED),
)
async def list_processor_transactions(
    call: RequestContext, id: str, query: TransactionFilters
) -> Page[TransactionRecord]:
    """List a processor's transactions, newest first.

    Names are shortened for every caller. `user_id` finds those with one other user. Transactions of
    restricted subscribers are masked, or left out, as in the list of all transactions.
    """
    scope = TransactionQuery()
    own_accounts = await _list_visible_account_ids(call, id) if id.startswith(ids.PROCESSOR) else []
    if not own_accounts:
        raise ApiError(Code.PROCESSOR_NOT_FOUND)
    scope.include_accounts(own_accounts)
    if query.user_id is not None:
        scope.filter_by_accounts(await _list_visible_account_ids(call, query.user_id))
    if query.card_serial is not None:
        account_id = await queries.get_card_account_id(call.services.database, query.card_serial)
        await require_account_access(call.services.database, call, [account_id])
        scope.filter_by_card(query.card_serial)
    return await _build_page(call, scope, query, own_accounts, full=False)


async def _get_visible_transaction(call: RequestContext, id: str) -> tuple[Transaction, set[int]]:
    """Return a transaction and those of its accounts whose holders are hidden from the caller: an
    admin gets it masked, an API key is refused."""
    database = call.services.database
    transaction = await queries.get(database, decode_transaction_id(id))
    if call.principal.kind != "admin":
        await require_account_access(database, call, transaction.account_ids)
    return transaction, await find_accounts_hidden_from(database, call, transaction.account_ids)


async def _list_visible_account_ids(call: RequestContext, user_id: str) -> list[int]:
    """The accounts of a user who is open to the caller; none of somebody who does not exist."""
    user = parse_user_id(user_id)
    if user is None:
        return []
    accounts = await queries.list_account_ids(call.services.database, user)
    await require_account_access(call.services.database, call, accounts)
    return accounts


async def _build_page(
    call: RequestContext,
    scope: TransactionQuery,
    query: TransactionFilters,
    own_accounts: list[int],
    *,
    full: bool,
) -> Page[TransactionRecord]:
    services = call.services
    rows = await queries.list_page(
        services.database,
        scope,
        query,
        call.principal,
        now=services.clock(),
        zone=services.settings.timezone,
    )
    hidden = await find_accounts_hidden_from(
        services.database, call, {account for row in rows for account in row.account_ids}
    )
    return paginate(
        rows,
        query.limit,
        key=lambda row: row.id,
        show=lambda row: to_record(row, full=full, own_accounts=own_accounts, hidden=hidden),
    )


def _can_see_full_names(call: RequestContext) -> bool:
    """Admins work for the platform; everybody else sees as much of a name as a merchant may."""
    return call.principal.kind == "admin"
