"""Endpoints for transactions."""

from tapgate.auth import owners
from tapgate.business.payments.transactions import resent_receipts
from tapgate.business.payments.transactions.export import export_csv
from tapgate.business.payments.transactions.reader import TransactionReader
from tapgate.core.records import TransactionId
from tapgate.http.api import csv_files
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import Code
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.transactions import (
    ExportFilters,
    ReceiptResend,
    ReceiptsResent,
    TransactionChain,
    TransactionEntries,
    TransactionFilters,
    TransactionRecord,
)

endpoints = Endpoints(
    "Transactions", errors=(Code.OTP_REQUIRED,), objects=ObjectAccess.UNRESTRICTED, owners=NEVER
)

_READ = Access(scope="payments:read", roles="ACSF", service=True)
_ANY_ADMIN = Access(roles="ACSF")
_OWNER_LIST = OwnerAccess(binding=Binding.LIST, roles="MKPG", rows=owners.TRANSACTIONS)


@endpoints.get("/api/v1/transactions", access=_READ, owners=_OWNER_LIST, heavy="expensive_order")
async def list_transactions(
    request: RequestContext, query: TransactionFilters
) -> Page[TransactionRecord]:
    """List transactions, newest first, or oldest first with `order=oldest`.

    With `order=amount`, the list has the newest 10,000 transactions that match, largest amount
    first.

    With `user_id`, the list shows one user's transactions, and `direction` and `balance_after` are
    from that user's point of view. An agent's list covers the float and the commission account.
    `card_serial` selects transactions in which the card was used to pay or to receive money.

    For admins, the list includes the transactions of restricted subscribers, masked: `from` and
    `to` have only `type` and `id`, and the page and the transaction have `masked: true`. After
    verifying a one-time code, the admin sees that subscriber's transactions in full. For API keys,
    the list omits the transactions of restricted subscribers. Filtering by the `user_id` or
    `card_serial` of a restricted subscriber fails with `OTP_REQUIRED` for API keys, and for admins
    who have not verified the code.

    A user or an API key of a processor, partner or agent gets its transactions only, with
    abbreviated names; the filters select among them. A cashier gets today's and yesterday's.
    """
    return await _create_reader(request).list_page(query)


@endpoints.get(
    "/api/v1/transactions/export",
    access=Access(scope="payments:read", roles="ACSF"),
    owners=_OWNER_LIST,
    media=("text/csv",),
    heavy=True,
    report=True,
)
async def export_transactions(request: RequestContext, query: ExportFilters) -> Reply[bytes]:
    """Export transactions as CSV, newest first, or oldest first with `order=oldest`.

    Returns the same transactions as the list with the same filters, at most 50,000 per file. If
    there are more, the `X-Next-Cursor` header contains the `cursor` for the next file. Text that a
    spreadsheet would interpret as a formula is prefixed with an apostrophe. The last column,
    `masked`, is `true` for a masked transaction, whose names, card serial and memo are empty. If
    the file contains a masked transaction, the response has the header `X-Masked: true`.
    """
    services, database = request.services, await request.services.get_report_database()
    export = await export_csv(
        lambda filters: _create_reader(request, database).list_page(filters), query
    )
    day = get_platform_day(services.clock(), services.settings.timezone)
    headers = {"Content-Disposition": f'attachment; filename="transactions-{day}.csv"'}
    if export.next_cursor is not None:
        headers["X-Next-Cursor"] = export.next_cursor
    if export.masked:
        headers["X-Masked"] = "true"
    return Reply(export.content, headers=headers, content_type=csv_files.CONTENT_TYPE)


@endpoints.get(
    "/api/v1/transactions/{id}",
    access=_READ,
    owners=OwnerAccess(binding=Binding.ROW, roles="MKPG", rows=owners.TRANSACTIONS),
)
async def get_transaction(request: RequestContext, id: TransactionId) -> TransactionRecord:
    """Get a transaction.

    For admins, a restricted subscriber's transaction is masked, as in the list, until a one-time
    code is verified. For API keys, the request fails with `OTP_REQUIRED`.
    """
    return await _create_reader(request).get_record(id)


@endpoints.get("/api/v1/transactions/{id}/entries", access=_ANY_ADMIN)
async def list_transaction_entries(
    request: RequestContext, id: TransactionId
) -> TransactionEntries:
    """List a transaction's ledger entries.

    Entries are in posting order. Each moves one amount from the debited account to the credited
    account. A transaction that moved no money has no entries. `balance_after` is available only for
    the payer's and the payee's accounts. If a restricted subscriber takes part and the admin has
    not verified a one-time code, `masked` is `true`, and names and balances are null, except those
    of platform accounts.
    """
    return await _create_reader(request).get_entries(id)


@endpoints.get("/api/v1/transactions/{id}/chain", access=_ANY_ADMIN)
async def get_transaction_chain(request: RequestContext, id: TransactionId) -> TransactionChain:
    """Get the records related to a transaction.

    `original` is the transaction that a refund or a reversal undoes. `refunds` and `reversals` are
    the first 1,000 of a transaction, oldest first, including declined ones. `replays` counts the
    repeated requests that received the original response; it is updated about once a second.
    `terminal_name` is the payment terminal's name.
    """
    return await _create_reader(request).get_chain(id)


@endpoints.post(
    "/api/v1/transactions/{id}/send-receipt",
    access=Access(roles="ASF"),
    unguarded=Unguarded.NO_EFFECT,
)
async def send_transaction_receipt(
    request: RequestContext, tx: Transaction, id: TransactionId, body: ReceiptResend
) -> ReceiptsResent:
    """Send a transaction's receipt to the customers' phones again.

    The receipt is sent even if `TAPGATE_RECEIPTS` disables receipts. `recipients` are the parties
    that get it: customers who paid or received money in a completed transaction.
    """
    recipients = await resent_receipts.resend(
        tx, request.actor, request.services.vault, id, body.party
    )
    return ReceiptsResent(message="Receipt sent", recipients=recipients)


@endpoints.get(
    "/api/v1/processors/{id}/transactions",
    access=Access(scope="payments:read", roles="ACSF"),
    errors=(Code.PROCESSOR_NOT_FOUND,),
    heavy="expensive_order",
)
async def list_processor_transactions(
    request: RequestContext, id: str, query: TransactionFilters
) -> Page[TransactionRecord]:
    """List a processor's transactions, newest first, or oldest first with `order=oldest`.

    With `order=amount`, the list has the newest 10,000 transactions that match, largest amount
    first. Names are abbreviated for all callers. `user_id` selects transactions with one
    counterparty. Transactions of restricted subscribers are masked or omitted, as in the list of
    all transactions.
    """
    return await _create_reader(request).list_processor_page(id, query)


def _create_reader(request: RequestContext, database: Database | None = None) -> TransactionReader:
    services = request.services
    return TransactionReader(
        database or services.database,
        request.principal,
        services.clock(),
        services.settings.timezone,
    )
