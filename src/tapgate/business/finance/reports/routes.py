"""Finance report endpoints."""

from datetime import date

from tapgate.business.finance.reports import ledger_reports, reconciliation, safeguarding
from tapgate.business.finance.reports.files import MEDIA, build_reply
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.finance_reports import (
    IncomeStatement,
    IncomeStatementQuery,
    ReconciliationQuery,
    ReconciliationReport,
    SafeguardingQuery,
    SafeguardingReport,
)

endpoints = Endpoints(
    "Finance reports",
    "/api/v1/reports",
    access=Access(roles="AF"),
    objects=ObjectAccess.NO_OBJECT,
    heavy=True,
    report=True,
    media=MEDIA,
    owners=NEVER,
)


def _get_today(request: RequestContext) -> date:
    services = request.services
    return get_platform_day(services.clock(), services.settings.timezone)


@endpoints.get("/income-statement")
async def get_income_statement(
    request: RequestContext, query: IncomeStatementQuery
) -> Reply[IncomeStatement]:
    """Get the income statement of a period.

    The period includes both days, in the platform's time zone. Expenses are negative.
    """
    services, settings = request.services, request.services.settings
    last = _get_today(request) if query.to is None else date.fromisoformat(query.to)
    first = last.replace(day=1) if query.from_ is None else date.fromisoformat(query.from_)
    report = await ledger_reports.build_income_statement(
        await services.get_report_database(),
        (first, last),
        zone=settings.timezone,
        currency=settings.currency,
    )
    document = ledger_reports.describe_income_statement(report)
    return await build_reply(services, query.format, document, report)


@endpoints.get("/safeguarding")
async def get_safeguarding_report(
    request: RequestContext, query: SafeguardingQuery
) -> Reply[SafeguardingReport]:
    """Get the safeguarding report of a day.

    It compares the platform's cash in the ledger with the closing balance of the last bank
    statement up to the day, and shows what the platform owes by account kind.
    """
    services, settings = request.services, request.services.settings
    report = await safeguarding.build_report(
        await services.get_report_database(),
        _get_today(request) if query.day is None else date.fromisoformat(query.day),
        zone=settings.timezone,
        currency=settings.currency,
    )
    return await build_reply(services, query.format, safeguarding.describe(report), report)


@endpoints.get("/reconciliation")
async def get_reconciliation_report(
    request: RequestContext, query: ReconciliationQuery
) -> Reply[ReconciliationReport]:
    """Get the reconciliation report of a period.

    It has the number and the sums of statement lines by status, and the oldest unmatched line.
    """
    services = request.services
    report = await reconciliation.build_report(
        await services.get_report_database(), query, services.settings.currency
    )
    return await build_reply(services, query.format, reconciliation.describe(report), report)
