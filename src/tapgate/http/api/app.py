"""The gateway's application: its callers, denials, sites and metrics.

`WebApp` defines the order of checks. An API key's address restriction (403) is checked before
its rate limit (429).

A site calls the endpoints like an API client, but within the process.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import structlog

from tapgate.auth.authenticator import has_bearer
from tapgate.auth.principals import Principal
from tapgate.http.api.openapi import render_openapi_document
from tapgate.http.api.openapi_webhooks import WebhookEvent
from tapgate.http.api.report_calls import load_result
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.route import GuardedRoute
from tapgate.http.api.services import RejectedRequest, Services
from tapgate.http.api.system import build_system_endpoints
from tapgate.http.app import SiteHandler, WebApp, build_no_route_error
from tapgate.http.cors import CorsPolicy
from tapgate.http.endpoint import Endpoint, RelayedReply, Reply
from tapgate.http.health_metrics import HealthMetrics
from tapgate.http.http_messages import Request, Response, require_plain_body
from tapgate.http.metrics import AuthFailure, Metrics
from tapgate.http.published_document import PublishedDocument
from tapgate.http.rate_limits.address_costs import LookupCost
from tapgate.http.rate_limits.throttle import build_rate_limit_error
from tapgate.http.rate_limits.token_buckets import RateLimitResult
from tapgate.http.responses import (
    encode_json,
    render_json,
    render_rate_limit_headers,
    render_result,
)
from tapgate.http.route import RouteLabel
from tapgate.runtime import logs
from tapgate.runtime.node_files import get_shared_folder
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.audit import AuditResult

_log = structlog.get_logger()

_AUTH_FAILURE_CODES: Final = frozenset({Code.UNAUTHORIZED, Code.INVALID_PIN, Code.INVALID_OTP})


class Site(Protocol):
    """HTML pages on the same server.

    Except for sessions, a site reads and changes data only through API endpoints.
    """

    #: Path prefix for the site's pages.
    prefix: str

    def get_route(self, path: str) -> str:
        """Return a page's path template for logs and traces, without values."""

    async def authorize(self, app: "App", request: RequestContext) -> int:
        """Authenticate the caller, throttle it and return the body limit in bytes.

        For an authenticated caller whose body was incomplete, this is called again once the body
        has arrived, and must not take another token.
        """

    async def respond(self, app: "App", request: RequestContext) -> Reply[bytes]:
        """Return the page for a request. Errors are reported as pages too."""

    def render_error(self, app: "App", request: RequestContext, error: ApiError) -> Reply[bytes]:
        """Return the error page for a request that is rejected before `respond` is called."""


class App(WebApp[RequestContext, GuardedRoute]):
    """Application that serves the given endpoints, the system endpoints and the sites.

    The first site also handles a browser's requests for unknown paths.
    """

    _services: Services

    def __init__(
        self,
        services: Services,
        endpoints: Iterable[Endpoint],
        sites: Iterable[Site] = (),
        events: Sequence[WebhookEvent] = (),
    ) -> None:
        system_endpoints = [*build_system_endpoints(self)]
        self.endpoints = [*system_endpoints, *endpoints]
        routes = [
            GuardedRoute(
                endpoint,
                services.settings.currency,
                row,
                ignores_overload=row < len(system_endpoints),
            )
            for row, endpoint in enumerate(self.endpoints)
        ]
        guarded = {each.operation_id for each in self.endpoints if each.guard is not None}
        if guarded - services.guarded_endpoints.keys():
            raise ValueError("the services were opened without the guarded endpoints")
        super().__init__(services, RequestContext, routes)
        if services.settings.cors_origins:
            self._cors = CorsPolicy(services.settings.cors_origins)
        self._routes_by_name = {route.endpoint.name: route for route in routes}
        currency = services.settings.currency
        described = [*self.endpoints[len(system_endpoints) :], *system_endpoints]
        self.openapi_document = PublishedDocument(
            lambda: render_openapi_document(described, currency, events)
        )
        self.sites = [
            (site, RouteLabel(row, site.prefix)) for row, site in enumerate(sites, len(routes))
        ]
        self.metrics = Metrics(
            get_shared_folder(services.settings.data_dir),
            [
                *((endpoint.method, endpoint.path) for endpoint in self.endpoints),
                *(("", label.name) for _, label in self.sites),
            ],
            services.event_counters,
        )
        self.metrics.add_source(HealthMetrics(services.health, services.nodes))
        for source in services.metric_sources:
            self.metrics.add_source(source)

    @staticmethod
    def render_error(error: ApiError) -> Response:
        headers = error.headers
        if error.status == 401:
            headers = {"WWW-Authenticate": "Bearer", **headers}
        return render_json(error.status, encode_json(error.body()), headers)

    def build_internal_error(self, context: RequestContext) -> ApiError:
        return ApiError(
            Code.INTERNAL_ERROR,
            "Something went wrong. The request ID identifies the error in the logs.",
            details={"request_id": context.request_id},
        )

    def render_rate_limit(self, result: RateLimitResult) -> bytes:
        return render_rate_limit_headers(result)

    def count_request(self, label: RouteLabel, status: int, seconds: float) -> None:
        self.metrics.count_request(label.metrics_row, status, seconds)
        if label.is_payment:
            self._services.latency_samples.add_request(seconds)

    def log_response(
        self, label: RouteLabel, context: RequestContext, status: int, seconds: float, body: bytes
    ) -> None:
        if context.caller is not None and label.endpoint is not None:
            self._services.request_log.add(context, label.endpoint, status, seconds, body)

    async def dispatch(self, request: RequestContext) -> Any:
        """Run a site request's endpoint as its principal, without throttling.

        Return the handler's result, or raise the ApiError from a check or the handler.
        """
        methods, parameters = self._router.find(request.path) or ({}, [])
        route = methods.get(request.method)
        if route is None:
            raise build_no_route_error(methods)
        try:
            rejection = None if route.is_public else route.get_rejection(request.principal)
            if rejection is not None:
                raise rejection
            if len(request.body) > route.body_limit:
                raise ApiError(Code.PAYLOAD_TOO_LARGE)
            result = await route.run(request, parameters)
            return await load_result(result) if isinstance(result, RelayedReply) else result
        except ApiError as error:
            await self.on_error(route, request, error)
            raise

    async def run_report(self, request: RequestContext) -> tuple[int, Any]:
        """Run a report for a gateway worker, which has checked the request; return its status.

        The gateway worker handles errors.
        """
        methods, parameters = self._router.find(request.path) or ({}, [])
        route = methods[request.method]
        if not route.is_report:
            raise ValueError(f"{route.endpoint.name} is not a report")
        if not route.is_public and (rejection := route.get_rejection(request.principal)):
            raise rejection
        return route.status, await route.run(request, parameters)

    def can_call(self, principal: Principal, endpoint: str, field: str | None = None) -> bool:
        """Return whether a principal may call an endpoint and, if given, send a restricted field.

        `endpoint` is a method and path template, such as `POST /api/v1/agents/{id}/fund`.
        """
        return self._routes_by_name[endpoint].get_rejection(principal, field) is None

    async def require_access(
        self, request: RequestContext, endpoint: str, field: str | None, message: str
    ) -> None:
        """Record and raise a denial with this message if the principal lacks access."""
        route = self._routes_by_name[endpoint]
        error = route.get_rejection(request.principal, field)
        if error is not None:
            error.message = message
            await self.on_error(route, request, error)
            raise error

    def find_site(
        self, context: RequestContext, methods: Mapping[str, GuardedRoute]
    ) -> tuple[RouteLabel, SiteHandler[RequestContext]]:
        path = context.path
        for site, label in self.sites:
            is_below = site.prefix != "/" and path.startswith(f"{site.prefix}/")
            if path == site.prefix or is_below:
                assets = f"{site.prefix}{logs.ASSETS_SUFFIX}"
                is_asset = path.startswith(f"{assets}/")
                name = assets if is_asset else site.get_route(path)
                return label._replace(name=name), partial(self._serve_site, site)
        if not methods and self.sites and _is_page_request(context):
            site, label = self.sites[0]  # renders its page for unknown paths
            return label, partial(self._serve_site, site)
        raise build_no_route_error(methods)

    async def _serve_site(self, site: Site, context: RequestContext, request: Request) -> Response:
        self.concurrency_limit.require_capacity()
        try:
            require_plain_body(request.headers)
            was_complete = request.is_complete
            context.body = await request.read_body(await site.authorize(self, context))
            if context.caller is not None and not was_complete:
                # The session may have ended while the body was being received.
                limit = await site.authorize(self, context)
                if len(context.body) > limit:
                    raise ApiError(Code.PAYLOAD_TOO_LARGE)
        except ApiError as error:
            return render_result(200, site.render_error(self, context, error))
        with self.concurrency_limit:
            return render_result(200, await site.respond(self, context))

    async def authorize(
        self, route: GuardedRoute, context: RequestContext, *, has_body: bool = True
    ) -> ApiError | None:
        authenticator = self._services.authenticator
        cost = LookupCost(context)
        is_charged = context.caller is not None
        try:
            if not has_body and authenticator.has_body_signature(context.headers):
                return route.get_rejection(
                    await authenticator.signatures.require_known_key(context.headers, cost)
                )
            principal = await authenticator.authenticate(
                context.method, context.path, context.query, context.headers, context.body, cost
            )
            if principal is None:
                raise ApiError(Code.UNAUTHORIZED, "Authentication is required.")
            context.caller = principal
            if principal.kind == "api_key":
                authenticator.authorize_api_key(principal, context.ip)
        except ApiError as error:
            if error.status in (401, 403):
                # A failure costs the address a token, which limits credential probing.
                await cost.take()
            raise
        if not is_charged:
            throttle = self._services.throttle
            rate = None
            if principal.kind == "api_key":
                rate = throttle.get_limit(principal.rate_limit, principal.burst)
            context.rate_limit_result = rate_limit = await throttle.take_leased(
                principal.rate_limit_key, rate
            )
            if not rate_limit.is_allowed:
                raise build_rate_limit_error(rate_limit)
        rejection = route.get_rejection(principal)
        if rejection is not None:
            raise rejection
        return None

    async def on_error(
        self, route: GuardedRoute | None, context: RequestContext, error: ApiError
    ) -> None:
        if error.code in _AUTH_FAILURE_CODES and route is not None:
            self.metrics.count_auth_failure(_classify_auth_failure(route, context, error))
        if route is None or (context.caller is None and not route.is_public):
            return  # no endpoint matches, or the caller is not authenticated
        if error.code is Code.FORBIDDEN:
            try:
                await self._services.rejection_log.record(
                    context.actor,
                    RejectedRequest(
                        event="access.denied",
                        resource_type="endpoint",
                        resource_id=route.endpoint.name,
                        result=AuditResult.DENIED,
                        reason=error.message,
                    ),
                )
            except Exception as failure:
                # The request is rejected even if the denial cannot be recorded.
                _log.error(
                    "audit.denial_not_recorded",
                    request_id=context.request_id,
                    failure=logs.describe_exception(failure),
                )


def _is_page_request(context: RequestContext) -> bool:
    """Return whether a browser opens a page. API clients do not ask for HTML."""
    accepted = context.get_header(b"accept") or ""
    return "text/html" in accepted.lower() and not context.path.startswith("/api/")


def _classify_auth_failure(
    route: GuardedRoute, context: RequestContext, error: ApiError
) -> AuthFailure:
    if error.code is Code.INVALID_PIN:
        return AuthFailure.PIN
    if error.code is Code.INVALID_OTP:
        return AuthFailure.ONE_TIME_CODE
    if route.is_public and context.body:  # with a password or a refresh token
        return AuthFailure.LOGIN
    if has_bearer(context.headers):
        return AuthFailure.TOKEN
    if not {b"x-signature", b"x-api-key-id", b"x-service-name"}.isdisjoint(context.headers):
        return AuthFailure.SIGNATURE
    return AuthFailure.TOKEN if b"authorization" in context.headers else AuthFailure.NONE
