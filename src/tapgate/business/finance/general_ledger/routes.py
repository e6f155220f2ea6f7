"""General ledger endpoints."""

from datetime import timedelta

from tapgate.business.branding.operations import get_branding
from tapgate.business.finance.general_ledger import operations, queries
from tapgate.business.finance.general_ledger.journal import export_journal
from tapgate.business.finance.general_ledger.model import build_kind_balances, build_trial_balance
from tapgate.business.finance.reports.files import MEDIA, build_reply
from tapgate.business.finance.reports.ledger_reports import describe_trial_balance
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.finance_reports import TrialBalanceFileQuery
from tapgate_client.schemas.general_ledger import (
    GlCodes,
    JournalQuery,
    JournalRow,
    LedgerAccounts,
    TrialBalance,
    TrialBalanceQuery,
    UpdateGlCodes,
)
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.periods import parse_period_end

endpoints = Endpoints("General ledger", "/api/v1/ledger", access=Access(roles="AF"), owners=NEVER)


@endpoints.get("/gl-codes", objects=ObjectAccess.ANY)
async def get_gl_codes(request: RequestContext) -> GlCodes:
    """Get the GL codes.

    Every account kind has a GL code, its account in the company's chart of accounts. The list is
    ordered by code.
    """
    return GlCodes(data=await queries.list_codes(request.services.database))


@endpoints.put("/gl-codes", unguarded=Unguarded.NO_EFFECT, objects=ObjectAccess.ANY)
async def update_gl_codes(request: RequestContext, tx: Transaction, body: UpdateGlCodes) -> GlCodes:
    """Change GL codes.

    Account kinds that the request does not list keep their code, and a kind without `name` keeps
    its name. Every kind has its own code; dots and hyphens are the same for this purpose. Reports
    and journals use the new codes for all days. Returns all codes.
    """
    return await operations.update_codes(tx, request.actor, body.data)


@endpoints.get("/accounts", heavy=True, report=True, objects=ObjectAccess.NO_OBJECT)
async def get_ledger_accounts(request: RequestContext) -> LedgerAccounts:
    """Get the balances by account kind.

    The platform's own accounts are included, with their `account_id`. `accounts` is the number of
    accounts of a kind. `balance` is positive on the account's `normal_side`: debit for cash and
    expenses, credit for income and for what the platform owes, such as customer balances. `debit`
    or `credit` has the same amount without a sign. All balances are from one database snapshot, so
    total debits equal total credits.
    """
    services = request.services
    codes, totals = await queries.load_totals(await services.get_report_database(), None)
    return LedgerAccounts(data=build_kind_balances(codes, totals, services.settings.currency))


@endpoints.get("/trial-balance", heavy=True, report=True, objects=ObjectAccess.NO_OBJECT)
async def get_trial_balance(request: RequestContext, query: TrialBalanceQuery) -> TrialBalance:
    """Get the trial balance.

    There is one row per GL code, with its balance as a debit or a credit. Total debits equal total
    credits. `as_of` is a time, or a date in the platform's time zone for the end of that day.
    Without `as_of`, balances are current. A transaction counts from the time at which it completed;
    held funds count as the payer's.
    """
    services = request.services
    settings = services.settings
    end = parse_period_end(query.as_of, settings.timezone)
    last = services.clock() if end is None else end - timedelta(milliseconds=1)
    codes, totals = await queries.load_totals(await services.get_report_database(), end)
    return build_trial_balance(codes, totals, format_rfc3339(last), settings.currency)


@endpoints.get(
    "/trial-balance/file",
    media=MEDIA[1:],
    heavy=True,
    report=True,
    objects=ObjectAccess.NO_OBJECT,
)
async def download_trial_balance(
    request: RequestContext, query: TrialBalanceFileQuery
) -> Reply[bytes]:
    """Download the trial balance as a CSV or PDF file."""
    report = await get_trial_balance(request, query)
    return await build_reply(request.services, query.format, describe_trial_balance(report))


@endpoints.get(
    "/journal",
    media=("application/json", "text/csv", "text/plain", "application/pdf"),
    heavy=True,
    report=True,
    objects=ObjectAccess.NO_OBJECT,
)
async def export_ledger_journal(
    request: RequestContext, query: JournalQuery
) -> Reply[Page[JournalRow]]:
    """Export the journal for a day or period.

    Set either `day`, or `from` and `to`, which include at most 31 days. The journal contains every
    ledger entry for transactions that completed in this time, in the platform's time zone, ordered
    by transaction ID and position. In `json`, `csv` and `pdf`, each entry has two rows: the debit
    and the credit. `hledger` and `beancount` are text files for these programs, with one account
    per GL code.

    `reference` is the payment's `transaction_ref`, or else the `request_id` or the partner's
    reference. In `hledger`, it is a tag with percent-encoded punctuation. Descriptions contain no
    personal data.

    A file has at most `limit` transactions, 20,000 by default. If there are more, `next_cursor`,
    also in the `X-Next-Cursor` header, is the `cursor` for the next file. A later file continues
    the journal. The current day's journal grows until the day ends.
    """
    services, settings = request.services, request.services.settings
    database = await services.get_report_database()
    file = await export_journal(
        database,
        query,
        await get_branding(database, settings, services.clock()),
        zone=settings.timezone,
        currency=settings.currency,
    )
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    if file.next_cursor is not None:
        headers["X-Next-Cursor"] = file.next_cursor
    return Reply(file.content, headers=headers, content_type=file.content_type)
