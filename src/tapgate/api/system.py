"""System endpoints: health, OpenAPI document, documentation page and metrics."""

from typing import Protocol

from tapgate import VERSION
from tapgate.api.docs import serve_docs_file
from tapgate.api.endpoint import Access, Endpoints, Reply
from tapgate.api.request_context import RequestContext
from tapgate.errors import Code
from tapgate.http.metrics import CONTENT_TYPE, Metrics
from tapgate.schemas.system import Health, WalletCore

_PUBLIC = Access(public=True)


class SystemSource(Protocol):
    """The application that the system endpoints report on."""

    metrics: Metrics

    @property
    def openapi_document(self) -> bytes: ...


def build_system_endpoints(app: SystemSource) -> Endpoints:
    endpoints = Endpoints("System")

    @endpoints.get("/health", access=_PUBLIC, other_statuses=(503,))
    async def get_health(request: RequestContext) -> Reply[Health]:
        """Get the health of the gateway and its ledger.

        Returns 503 with `healthy: false` while the database is unreachable.
        """
        healthy = await request.services.ledger.check_health()
        body = Health("tapgate", VERSION, healthy, WalletCore(healthy, VERSION))
        return Reply(body, status=200 if healthy else 503)

    @endpoints.get("/openapi.json", access=_PUBLIC)
    async def get_openapi_document(request: RequestContext) -> Reply[bytes]:
        """Get the OpenAPI 3.1 document of the API."""
        return Reply(app.openapi_document)

    @endpoints.get("/docs", access=_PUBLIC, media=("text/html",))
    async def get_docs_page(request: RequestContext) -> Reply[bytes]:
        """Get the interactive API documentation page."""
        return serve_docs_file(request, "index.html")

    @endpoints.get(
        "/docs/{file}",
        access=_PUBLIC,
        media=("text/html", "text/css", "text/javascript"),
        errors=(Code.NOT_FOUND,),
    )
    async def get_docs_file(request: RequestContext, file: str) -> Reply[bytes]:
        """Get a static file of the documentation page."""
        return serve_docs_file(request, file)

    @endpoints.get("/metrics", access=_PUBLIC, media=(CONTENT_TYPE,))
    async def get_metrics(request: RequestContext) -> Reply[bytes]:
        """Get the metrics of this node in the Prometheus text format."""
        return Reply(app.metrics.render(), content_type=CONTENT_TYPE)

    return endpoints
