"""The endpoints about the gateway itself: is it well, what can it do, how much does it do."""

from typing import Protocol

import msgspec

from tapgate import VERSION
from tapgate.edge.docs import serve_docs_file
from tapgate.edge.endpoint import Access, Endpoints, Reply
from tapgate.edge.metrics import CONTENT_TYPE, Metrics
from tapgate.edge.request_context import RequestContext
from tapgate.errors import Code

_PUBLIC = Access(public=True)


class WalletCore(msgspec.Struct):
    healthy: bool
    version: str


class Health(msgspec.Struct):
    service: str
    version: str
    healthy: bool
    wallet_core: WalletCore


class SystemSource(Protocol):
    """The application that these endpoints are about, and a part of."""

    metrics: Metrics

    @property
    def openapi_document(self) -> bytes: ...


def build_system_endpoints(app: SystemSource) -> Endpoints:
    endpoints = Endpoints("System")

    @endpoints.get("/health", access=_PUBLIC, other_statuses=(503,))
    async def get_health(call: RequestContext) -> Reply[Health]:
        """Tell whether the gateway and its ledger work.

        Answers 503 with the same body while the ledger or its database cannot be reached.
        """
        healthy = await call.services.ledger.check_health()
        body = Health("tapgate", VERSION, healthy, WalletCore(healthy, VERSION))
        return Reply(body, status=200 if healthy else 503)

    @endpoints.get("/openapi.json", access=_PUBLIC)
    async def get_openapi_document(call: RequestContext) -> Reply[bytes]:
        """Describe the interface in OpenAPI 3.1."""
        return Reply(app.openapi_document)

    @endpoints.get("/docs", access=_PUBLIC, media=("text/html",))
    async def get_docs_page(call: RequestContext) -> Reply[bytes]:
        """Show the interface as a page to read and to try out."""
        return serve_docs_file(call, "index.html")

    @endpoints.get(
        "/docs/{file}",
        access=_PUBLIC,
        media=("text/html", "text/css", "text/javascript"),
        errors=(Code.NOT_FOUND,),
    )
    async def get_docs_file(call: RequestContext, file: str) -> Reply[bytes]:
        """Give one of the files that the page is made of."""
        return serve_docs_file(call, file)

    @endpoints.get("/metrics", access=_PUBLIC, media=(CONTENT_TYPE,))
    async def get_metrics(call: RequestContext) -> Reply[bytes]:
        """Give the numbers of this node in Prometheus's text format."""
        return Reply(app.metrics.render(), content_type=CONTENT_TYPE)

    return endpoints
