"""The messenger's HTTP application: authentication and error responses on the shared pipeline.

`WebApp` defines the order of checks. Credentials in headers are checked before the body is read,
and a signature over the body after it is read. Public endpoints are also served under overload.
"""

from collections.abc import Iterable

from tapgate.http.app import WebApp, log_failure
from tapgate.http.endpoint import Endpoint, Endpoints, Reply
from tapgate.http.health_metrics import HealthMetrics
from tapgate.http.metrics import CONTENT_TYPE, AuthFailure, Metrics
from tapgate.http.metrics_access import require_metrics_access
from tapgate.http.overload import OverloadError
from tapgate.http.published_document import PublishedDocument
from tapgate.http.route import Route, RouteLabel
from tapgate.messenger import web
from tapgate.messenger.openapi import build_document
from tapgate.messenger.routes import ENDPOINTS
from tapgate.messenger.routes.access import BRIDGE, METRICS, PUBLIC, SMS_PROVIDER, Access
from tapgate.messenger.services import Services
from tapgate.messenger.web import RequestContext
from tapgate.runtime.node_files import get_shared_folder
from tapgate_client.errors import ApiError, Code

_UNAVAILABLE_TEXT = "The messenger is temporarily unavailable. Try again in a few seconds."


class App(WebApp[RequestContext, Route]):
    """Application that serves the endpoints, their OpenAPI document and metrics."""

    address_key_prefix = "messenger ip"
    render_error = staticmethod(web.render_error)

    def __init__(self, services: Services, endpoints: Iterable[Endpoint] = ENDPOINTS) -> None:
        is_production = services.settings.is_production
        self.endpoints = [
            *(item for item in endpoints if item.in_production or not is_production),
            *self._build_system_endpoints(),
        ]
        self._openapi_document = PublishedDocument(lambda: build_document(self.endpoints))
        self._metrics = Metrics(
            get_shared_folder(services.settings.data_dir) / "messenger",
            [(endpoint.method, endpoint.path) for endpoint in self.endpoints],
            services.event_counters,
        )
        self._metrics.add_source(HealthMetrics(services.health, services.nodes))
        for source in services.metric_sources:
            self._metrics.add_source(source)
        super().__init__(
            services,
            RequestContext,
            [
                Route(endpoint, None, row, ignores_overload=endpoint.access.public)
                for row, endpoint in enumerate(self.endpoints)
            ],
        )

    def _build_system_endpoints(self) -> Endpoints:
        endpoints = Endpoints("System")

        @endpoints.get("/openapi.json", access=PUBLIC)
        async def get_openapi_document(request: RequestContext) -> Reply[bytes]:
            """Return the OpenAPI 3.1 document of this API."""
            return await self._openapi_document.serve(request)

        @endpoints.get("/metrics", access=METRICS, media=(CONTENT_TYPE,))
        async def get_metrics(request: RequestContext) -> Reply[bytes]:
            """Return the metrics of this node in the Prometheus text format."""
            require_metrics_access(request.services.settings, request.get_header(b"authorization"))
            return Reply(await self._metrics.scrape(), content_type=CONTENT_TYPE)

        return endpoints

    def count_request(self, label: RouteLabel, status: int, seconds: float) -> None:
        self._metrics.count_request(label.metrics_row, status, seconds)

    async def authorize(
        self, route: Route, context: RequestContext, *, has_body: bool = True
    ) -> None:
        """Set the principal, and rate-limit anonymous callers by IP address.

        The provider and the bridges send the messages of all users from a few IP addresses, so
        authenticated callers have no limit per IP address. Messages are limited per sender instead.
        """
        if context.is_authorized:
            return
        access: Access = route.endpoint.access
        try:
            principal = None if access.check is None else access.check(context)
            if access.check_body is not None:
                if not has_body:
                    return
                principal = access.check_body(context)
        except ApiError:
            # A failure costs the address a token, which limits credential probing.
            await self.charge_address(context)
            raise
        if principal is None:
            await self.charge_address(context)
        context.principal, context.is_authorized = principal, True

    async def on_error(self, route: Route | None, context: RequestContext, error: ApiError) -> None:
        """Log a server error and replace its message; count failed authentication."""
        if error.code is Code.UNAUTHORIZED and route is not None:
            is_token = route.endpoint.access in (BRIDGE, METRICS, SMS_PROVIDER)
            self._metrics.count_auth_failure(
                AuthFailure.TOKEN if is_token else AuthFailure.SIGNATURE
            )
        if error.status >= 500:
            if not isinstance(error, OverloadError):
                log_failure(context, error)
            error.message = _UNAVAILABLE_TEXT
