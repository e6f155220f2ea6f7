"""System endpoints: health, OpenAPI document and metrics."""

from typing import Final, Protocol

from tapgate import VERSION
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.http.metrics import CONTENT_TYPE, Metrics
from tapgate.http.metrics_access import require_metrics_access
from tapgate.http.published_document import PublishedDocument
from tapgate.runtime.health import describe_problems
from tapgate.runtime.store.migration_plan import get_newest_number
from tapgate_client.errors import Code
from tapgate_client.schemas.health import Health, Live, Readiness, VersionRecord, WalletCore

_PUBLIC: Final = Access(public=True)


class SystemSource(Protocol):
    """The application on which the endpoints report."""

    metrics: Metrics

    openapi_document: PublishedDocument


def build_system_endpoints(app: SystemSource) -> Endpoints:
    """Return the endpoints that report on an application."""
    endpoints = Endpoints(
        "System",
        any_query="Monitoring tools and caches add parameters.",
        objects=ObjectAccess.NO_OBJECT,
        owners=NEVER,
    )
    _add_health_endpoints(endpoints)

    @endpoints.get("/version", access=_PUBLIC)
    async def get_version(request: RequestContext) -> VersionRecord:
        """Get the release that the gateway runs."""
        return VersionRecord(
            service="tapgate", version=VERSION, newest_migration=get_newest_number()
        )

    @endpoints.get("/openapi.json", access=_PUBLIC)
    async def get_openapi_document(request: RequestContext) -> Reply[bytes]:
        """Get the API's OpenAPI 3.1 document.

        Send the `ETag` as `If-None-Match` to get 304 if the document has not changed.
        """
        return await app.openapi_document.serve(request)

    @endpoints.get(
        "/metrics",
        access=_PUBLIC,
        media=(CONTENT_TYPE,),
        errors=(Code.UNAUTHORIZED, Code.NOT_FOUND),
    )
    async def get_metrics(request: RequestContext) -> Reply[bytes]:
        """Get this node's metrics in the Prometheus text format.

        If `TAPGATE_METRICS_TOKEN` is set, it is required as the bearer token. Without it, staging
        and production return 404. Metrics are at most one second old.
        """
        require_metrics_access(request.services.settings, request.get_header(b"authorization"))
        return Reply(await app.metrics.scrape(), content_type=CONTENT_TYPE)

    return endpoints


def _add_health_endpoints(endpoints: Endpoints) -> None:
    @endpoints.get("/live", access=_PUBLIC, unlimited=True)
    async def get_liveness(request: RequestContext) -> Live:
        """Get whether the process responds.

        Checks nothing else: a process that cannot reach the database must not be restarted.
        """
        return Live()

    @endpoints.get("/ready", access=_PUBLIC, unlimited=True, other_statuses=(503,))
    async def get_readiness(request: RequestContext) -> Reply[Readiness]:
        """Get whether the node can process requests, for load balancers.

        Returns 503 with the reasons while the node starts or shuts down, while the database is
        unreachable or read-only, and while the node's disk is full or its clock is wrong.
        """
        readiness = await request.services.health.get_readiness()
        return Reply(readiness, status=200 if readiness.ready else 503)

    @endpoints.get("/health", access=_PUBLIC, unlimited=True, other_statuses=(503,))
    async def get_health(request: RequestContext) -> Reply[Health]:
        """Get gateway and ledger health.

        Returns 503 with `healthy: false` and the reasons while the database is unreachable or
        read-only, and while the node's disk is full or its clock is wrong.
        """
        status = await request.services.health.get_status()
        body = Health(
            "tapgate",
            VERSION,
            status.is_healthy,
            WalletCore(status.can_write, VERSION),
            describe_problems(status.problems),
            None if status.server is None else status.server.replication,
            await request.services.health.list_warnings(),
        )
        return Reply(body, status=200 if status.is_healthy else 503)
