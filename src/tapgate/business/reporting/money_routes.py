"""Money view endpoints."""

import msgspec

from tapgate.auth import owners
from tapgate.business.agents import queries as agents
from tapgate.business.merchants.processors import queries as processors
from tapgate.business.partners import queries as partners
from tapgate.business.payments.transactions.reader import TransactionReader
from tapgate.business.reporting import money_views, transaction_totals
from tapgate.core.records import ProcessorId
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.admin import Scope
from tapgate_client.schemas.agents import AgentFilters
from tapgate_client.schemas.money_views import (
    AgentTotalsQuery,
    BalanceTotals,
    LiquidityQuery,
    NetworkLiquidity,
    PartnerTotalsQuery,
    ProcessorSummary,
    ProcessorSummaryQuery,
    ProcessorTotalsQuery,
)
from tapgate_client.schemas.transactions import (
    TransactionFilters,
    TransactionListTotals,
    TransactionTotalsFilters,
)

_ANY_ADMIN = Access(roles="ACSF")
#: The chat shows agents what they did today.
_TOTALS_ACCESS = Access(roles="ACSF", service=True)

transaction_endpoints = Endpoints(
    "Transactions",
    "/api/v1/transactions",
    access=_ANY_ADMIN,
    objects=ObjectAccess.UNRESTRICTED,
    owners=NEVER,
)
processor_endpoints = Endpoints(
    "Processors", "/api/v1/processors", access=_ANY_ADMIN, objects=ObjectAccess.ANY, owners=NEVER
)
partner_endpoints = Endpoints(
    "Partners",
    "/api/v1/admin/partners",
    access=Access(roles="AF"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)
agent_endpoints = Endpoints(
    "Agents", "/api/v1/agents", access=_ANY_ADMIN, objects=ObjectAccess.ANY, owners=NEVER
)


@transaction_endpoints.get(
    "/totals",
    access=_TOTALS_ACCESS,
    heavy=True,
    errors=(Code.OTP_REQUIRED,),
    owners=OwnerAccess(
        binding=Binding.LIST, roles="MKPG", rows=owners.TRANSACTIONS, scopes=(Scope.PAYMENTS_READ,)
    ),
)
async def get_transaction_totals(
    request: RequestContext, query: TransactionTotalsFilters
) -> TransactionListTotals:
    """Get transaction list totals with the same filters.

    With a period of at most 366 days and no filter by user or card, the totals are complete.
    Otherwise they cover the newest 10,000 transactions, and `is_complete` is false if the list has
    more. A user or an API key of a processor, partner or agent gets totals over its transactions.
    """
    services = request.services
    reader = TransactionReader(
        services.database, request.principal, services.clock(), services.settings.timezone
    )
    return await transaction_totals.get_totals(
        services.database,
        reader,
        TransactionFilters(**msgspec.structs.asdict(query)),
        services.settings.currency,
    )


@processor_endpoints.get("/totals", heavy="search")
async def get_processor_totals(
    request: RequestContext, query: ProcessorTotalsQuery
) -> BalanceTotals:
    """Get the processor count and total balance for a list with the same filters."""
    totals = await processors.TABLE.sum_balances(request.services.database, query)
    return _build_totals(request, *totals)


@partner_endpoints.get("/totals", heavy="search")
async def get_partner_totals(request: RequestContext, query: PartnerTotalsQuery) -> BalanceTotals:
    """Get the partner count and total balance for a list with the same filters."""
    totals = await partners.TABLE.sum_balances(request.services.database, query)
    return _build_totals(request, *totals)


@agent_endpoints.get("/totals", heavy="search")
async def get_agent_totals(request: RequestContext, query: AgentTotalsQuery) -> BalanceTotals:
    """Get the agent count and total float for a list with the same filters."""
    settings = request.services.settings
    totals = await agents.sum_floats(
        request.services.database,
        AgentFilters(**msgspec.structs.asdict(query)),
        money.from_whole_units(settings.float_low, settings.currency),
    )
    return _build_totals(request, *totals)


def _build_totals(request: RequestContext, count: int, balance: int) -> BalanceTotals:
    currency = request.services.settings.currency
    return BalanceTotals(
        count=count, balance=money.format_decimal(balance, currency), currency=currency
    )


@processor_endpoints.get(
    "/{id}/summary",
    heavy=True,
    report=True,
    owners=OwnerAccess(binding=Binding.PATH, roles="M", scopes=(Scope.PAYMENTS_READ,)),
)
async def get_processor_summary(
    request: RequestContext, id: ProcessorId, query: ProcessorSummaryQuery
) -> ProcessorSummary:
    """Get a processor's sales, fees, refunds and payouts for a period.

    The period has at most 366 days; by default, it is the last 30 days. A held payment counts from
    its release. `balance` is the current balance. With `terminals=true`, the response also has
    the movements by terminal and day, except payouts, and the period has at most 31 days.
    """
    services, zone = request.services, request.services.settings.timezone
    period = money_views.parse_period(query, services.clock(), zone)
    processor = await processors.get(services.database, id)
    database = await services.get_report_database()
    return await money_views.summarize_processor(
        database, processor, period, zone, by_terminal=query.terminals
    )


@agent_endpoints.get("/liquidity", heavy=True, report=True)
async def get_agent_liquidity(request: RequestContext, query: LiquidityQuery) -> NetworkLiquidity:
    """Get the float of active agents, those who run out first at the beginning.

    With `parent_agent_id`, only a super-agent and its sub-agents. The average outflow is computed
    from cash-ins and cash-outs in the last 7 days.
    """
    services = request.services
    parent_id = query.parent_agent_id and ids.decode(ids.AGENT, query.parent_agent_id)
    return await money_views.load_liquidity(
        await services.get_report_database(),
        services.clock(),
        parent_id or None,
        limit=query.limit,
        currency=services.settings.currency,
    )
