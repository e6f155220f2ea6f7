"""System endpoints: health, OpenAPI document, documentation page and metrics."""

from typing import Final, Protocol

from tapgate import VERSION
from tapgate.api.access import Access
from tapgate.api.packaged_files import PackagedFiles
from tapgate.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.http.metrics import CONTENT_TYPE, Metrics
from tapgate.schemas.common import Health, WalletCore

_PUBLIC: Final = Access(public=True)
#: Allow scripts, styles, images and requests only from the page's own origin, and `data:` images.
_CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_serve_docs_file = PackagedFiles(
    "tapgate.api", "docs_page", {"Content-Security-Policy": _CONTENT_SECURITY_POLICY}
).serve


class SystemSource(Protocol):
    """The application on which the endpoints report."""

    metrics: Metrics

    @property
    def openapi_document(self) -> bytes: ...


def build_system_endpoints(app: SystemSource) -> Endpoints:
    """Return the endpoints that report on an application."""
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
        return _serve_docs_file(request, "index.html")

    @endpoints.get(
        "/docs/{file}", access=_PUBLIC, media=("text/html", "text/css", "text/javascript")
    )
    async def get_docs_file(request: RequestContext, file: str) -> Reply[bytes]:
        """Get a static file of the documentation page."""
        return _serve_docs_file(request, file)

    @endpoints.get("/metrics", access=_PUBLIC, media=(CONTENT_TYPE,))
    async def get_metrics(request: RequestContext) -> Reply[bytes]:
        """Get the metrics of this node in the Prometheus text format."""
        return Reply(app.metrics.render(), content_type=CONTENT_TYPE)

    return endpoints
