"""Endpoints for the overview and for ledger verification."""

from tapgate.business.reporting import operations
from tapgate.business.reporting.model import to_ledger_proof
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client.schemas.reporting import LedgerProof, Overview, OverviewQuery

endpoints = Endpoints("Overview", objects=ObjectAccess.NO_OBJECT, owners=NEVER)


@endpoints.get("/api/v1/overview", access=Access(roles="ACSF"))
async def get_overview(request: RequestContext, query: OverviewQuery) -> Overview:
    """Get the platform overview.

    Transaction counts and volumes are grouped by hour for the last 24 hours, or by day in the
    platform's time zone for the last 7 or 30 days. The last bucket is still in progress. The counts
    and volumes are exact at request time. `flows` groups them by payments, money in, money out,
    refunds and internal moves. `previous` covers the preceding period with the same length, up to
    the same time, rounded down to 15 minutes. With `from` and `to`, which are inclusive dates at
    most 92 days apart, the period is `custom` and has one bucket per day.

    `unavailable_services` counts what customers asked for in the chat although it is not offered.

    `standing` contains counts and balances as of `as_of`, usually a few seconds ago. `alerts`
    counts open alerts by severity, and alerts under investigation. `alerts` is null if the caller
    may not list alerts. `engine` contains this node's latencies for ledger batches and for requests
    that move money.
    """
    services = request.services
    return await operations.get_overview(
        services.database,
        request.principal,
        query,
        services.clock(),
        settings=services.settings,
        latency_samples=services.latency_samples,
    )


@endpoints.post(
    "/api/v1/ledger/verify", access=Access(roles="AF"), report=True, unguarded=Unguarded.NO_EFFECT
)
async def verify_ledger(request: RequestContext) -> LedgerProof:
    """Verify the ledger.

    Runs the ledger checks of `tapgate verify` and records the result. Transactions and entries that
    were verified before are not read again; `tapgate verify --all` reads everything. With millions
    of transactions, the first verification takes minutes. Transactions continue during that time.
    Only one verification runs at a time; concurrent requests get 429.

    If a check fails, the response is still 200, with `holds` false. For each claim, the response
    contains the number of violations and up to five examples.
    """
    services = request.services
    return to_ledger_proof(
        *await operations.verify_ledger(
            services.database,
            request.actor,
            services.clock,
            services.new_id,
            vault=services.vault,
        )
    )
