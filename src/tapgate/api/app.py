"""The gateway's request pipeline: routing, authentication, rate limits, handlers, metrics and logs.

The order of checks is part of the public API: 404 and 405, then 503 if too many requests are in
progress, then 413, 401, 429, 403, 400, 422, then the handler. The address restriction of an API key
(403) is checked before its rate limit (429). The credential is checked before the gateway waits for
the rest of a body. 413 therefore precedes 401 only if Content-Length, or a body that has already
arrived completely, exceeds the limit.

Sites serve HTML pages on the same server. A site calls the endpoints like an API client, but
within the process.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import structlog

from tapgate.api import responses
from tapgate.api.charges import LookupCharge, build_rate_limit_error
from tapgate.api.endpoint import Endpoint
from tapgate.api.openapi import render_openapi_document
from tapgate.api.openapi_webhooks import WebhookEvent
from tapgate.api.request_context import RequestContext
from tapgate.api.route import Route, RouteLabel
from tapgate.api.services import Services
from tapgate.api.site import Site
from tapgate.api.system import build_system_endpoints
from tapgate.auth.principals import Principal
from tapgate.errors import ApiError, Code
from tapgate.http.asgi import AsgiApp
from tapgate.http.body_limits import DEFAULT_BODY_BYTES
from tapgate.http.client_addresses import ClientAddresses, get_address_key
from tapgate.http.messages import ClientDisconnectedError, Request, Response
from tapgate.http.metrics import CLIENT_CLOSED_REQUEST, UNMATCHED_ROW, Metrics
from tapgate.http.overload import ConcurrencyLimit, OverloadError
from tapgate.http.router import Router
from tapgate.http.tracing import RequestIdSource
from tapgate.runtime import logs
from tapgate.runtime.node_files import get_shared_folder

_log = structlog.get_logger()


_UNMATCHED_LABEL = RouteLabel(UNMATCHED_ROW, "unmatched")


class App(AsgiApp):
    """ASGI application that serves the given endpoints, the system endpoints and the sites."""

    def __init__(
        self,
        services: Services,
        endpoints: Iterable[Endpoint],
        sites: Iterable[Site] = (),
        events: Sequence[WebhookEvent] = (),
    ) -> None:
        system_endpoints = [*build_system_endpoints(self)]
        all_endpoints = [*system_endpoints, *endpoints]
        self._services = services
        self._endpoints = all_endpoints
        self._events = events
        self._sites = [
            (site, RouteLabel(row, site.prefix))
            for row, site in enumerate(sites, len(all_endpoints))
        ]
        self.metrics = Metrics(
            get_shared_folder(services.settings.data_dir),
            [
                *((endpoint.method, endpoint.path) for endpoint in all_endpoints),
                *(("", label.name) for _, label in self._sites),
            ],
        )
        services.count_message_status = self.metrics.count_message_status
        self._client_addresses = ClientAddresses(services.settings.trusted_proxies)
        self._request_ids = RequestIdSource()
        self._concurrency_limit = ConcurrencyLimit()
        self._router: Router[Route] = Router()
        self._routes_by_name: dict[str, Route] = {}
        for row, endpoint in enumerate(all_endpoints):
            ignores_overload = endpoint in system_endpoints
            route = Route(
                endpoint, services.settings.currency, row, ignores_overload=ignores_overload
            )
            self._router.add(endpoint.method, endpoint.path, route)
            self._routes_by_name[endpoint.name] = route
            if endpoint.method == "GET":
                self._router.add("HEAD", endpoint.path, route)

    @cached_property
    def openapi_document(self) -> bytes:
        """The OpenAPI document, rendered on first use because most processes never serve it."""
        return render_openapi_document(
            self._endpoints, self._services.settings.currency, self._events
        )

    async def respond(self, request: Request) -> Response:
        started = perf_counter()
        context = self._build_context(request)
        methods, parameters = self._router.find(context.path) or ({}, [])
        route = methods.get(context.method)
        label = _UNMATCHED_LABEL if route is None else route.label
        try:
            if route is not None:
                response = await self._handle(route, parameters, context, request)
            else:
                site, label = self._find_site(context.path, methods)
                response = await self._serve_site(site, context, request)
        except OverloadError as error:
            response = responses.render_error(error)._replace(pause=error.pause)
        except ApiError as error:
            await self._record_denial(route, context, error)
            response = responses.render_error(error)
        except ClientDisconnectedError:
            self._record_request(label, context, CLIENT_CLOSED_REQUEST, started)
            raise
        except Exception as error:
            response = _render_internal_error(context, error)
        self._record_request(label, context, response.status, started)
        return self._add_common_headers(context, response)

    async def dispatch(self, request: RequestContext) -> Any:
        methods, parameters = self._router.find(request.path) or ({}, [])
        route = methods.get(request.method)
        if route is None:
            raise _build_no_route_error(methods)
        try:
            rejection = None if route.is_public else route.get_rejection(request.principal)
            if rejection is not None:
                raise rejection
            if len(request.body) > route.body_limit:
                raise ApiError(Code.PAYLOAD_TOO_LARGE)
            return await route.run(request, parameters)
        except ApiError as error:
            await self._record_denial(route, request, error)
            raise

    def can_call(self, principal: Principal, endpoint: str, field: str | None = None) -> bool:
        return self._routes_by_name[endpoint].get_rejection(principal, field) is None

    async def require_access(
        self, request: RequestContext, endpoint: str, field: str | None, message: str
    ) -> None:
        route = self._routes_by_name[endpoint]
        error = route.get_rejection(request.principal, field)
        if error is not None:
            error.message = message
            await self._record_denial(route, request, error)
            raise error

    def _find_site(self, path: str, methods: Mapping[str, Route]) -> tuple[Site, RouteLabel]:
        for site, label in self._sites:
            if path == site.prefix or path.startswith(f"{site.prefix}/"):
                return site, label
        raise _build_no_route_error(methods)

    async def _serve_site(self, site: Site, context: RequestContext, request: Request) -> Response:
        self._concurrency_limit.require_capacity()
        try:
            was_complete = request.is_complete
            context.body = await request.read_body(await site.authorize(self, context))
            if context.caller is not None and not was_complete:
                # The session may have ended while the body was being received.
                limit = await site.authorize(self, context)
                if len(context.body) > limit:
                    raise ApiError(Code.PAYLOAD_TOO_LARGE)
        except ApiError as error:
            return responses.render_result(200, site.render_error(self, context, error))
        with self._concurrency_limit:
            return responses.render_result(200, await site.respond(self, context))

    def _build_context(self, request: Request) -> RequestContext:
        headers = request.headers
        return RequestContext(
            services=self._services,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=headers,
            ip=self._client_addresses.resolve(request.peer, headers),
            request_id=self._request_ids.get_or_create(headers),
        )

    def _add_common_headers(self, request: RequestContext, response: Response) -> Response:
        """Add the request ID and, if a rate limit was checked, the rate limit headers."""
        status, head, body, pause = response
        rate_head = (
            b""
            if request.rate_limit_result is None
            else responses.render_rate_limit_headers(request.rate_limit_result)
        )
        full_head = b"%bx-request-id: %b\r\n%b" % (head, request.request_id.encode(), rate_head)
        return Response(status, full_head, body, pause)

    async def _handle(
        self, route: Route, parameters: list[str], context: RequestContext, request: Request
    ) -> Response:
        if route.ignores_overload:
            context.body = await request.read_body(route.body_limit)
            return await self._run_route(route, parameters, context)
        self._concurrency_limit.require_capacity()
        pending_rejection = None
        if not request.is_complete:
            request.check_content_length(route.body_limit)
            if not route.is_public:
                pending_rejection = await self._authorize(route, context, has_body=False)
        if pending_rejection is None or route.body_limit <= DEFAULT_BODY_BYTES:
            context.body = await request.read_body(route.body_limit)
        else:
            context.body = await self._receive_small_body(context, request, pending_rejection)
        with self._concurrency_limit:
            return await self._run_route(route, parameters, context)

    async def _receive_small_body(
        self, context: RequestContext, request: Request, rejection: ApiError
    ) -> bytes:
        """Receive a body only to verify its signature, on a route that rejects the signer.

        If the body exceeds the default limit, charge the address as for a failed authentication and
        raise the rejection without verifying the signature.
        """
        try:
            return await request.read_body(DEFAULT_BODY_BYTES)
        except ApiError as error:
            if error.code is not Code.PAYLOAD_TOO_LARGE:
                raise
        await LookupCharge(context).charge()
        raise rejection

    async def _run_route(
        self, route: Route, parameters: list[str], request: RequestContext
    ) -> Response:
        if route.is_public:
            await self._enforce_address_rate_limit(request)
        else:
            await self._authorize(route, request)
        return responses.render_result(route.status, await route.run(request, parameters))

    async def _authorize(
        self, route: Route, request: RequestContext, *, has_body: bool = True
    ) -> ApiError | None:
        """Authenticate the caller, charge its rate limit and check its access.

        If the body is incomplete, this is called without the body first and again with it, because
        the credential may have been revoked in between. The caller is charged only once.

        Return the route's rejection of a signer whose signature cannot be verified without the
        body, or None. Raise any other rejection.
        """
        authenticator = self._services.authenticator
        charge = LookupCharge(request)
        is_charged = request.caller is not None
        try:
            if not has_body and authenticator.signatures.has_body_signature(request.headers):
                return route.get_rejection(
                    await authenticator.signatures.require_known_key(request.headers, charge)
                )
            principal = await authenticator.authenticate(
                request.method, request.path, request.query, request.headers, request.body, charge
            )
            if principal is None:
                raise ApiError(Code.UNAUTHORIZED, "Authentication is required.")
            request.caller = principal
            if principal.kind == "api_key":
                authenticator.authorize_api_key(principal, request.ip)
        except ApiError as error:
            if error.status in (401, 403):
                # Charge failures to the address, so credentials cannot be probed without limit.
                await charge.charge()
            raise
        if not is_charged:
            throttle = self._services.throttle
            rate = throttle.get_limit(principal) if principal.kind == "api_key" else None
            request.rate_limit_result = rate_limit = await throttle.take(
                principal.rate_limit_key, rate
            )
            if not rate_limit.is_allowed:
                raise build_rate_limit_error(rate_limit)
        rejection = route.get_rejection(principal)
        if rejection is not None:
            raise rejection
        return None

    async def _enforce_address_rate_limit(self, request: RequestContext) -> None:
        await self.enforce_rate_limit(request, f"ip:{get_address_key(request.ip)}")

    async def enforce_rate_limit(self, request: RequestContext, key: str) -> None:
        request.rate_limit_result = rate_limit = await self._services.throttle.take(key)
        if not rate_limit.is_allowed:
            raise build_rate_limit_error(rate_limit)

    async def _record_denial(
        self, route: Route | None, request: RequestContext, error: ApiError
    ) -> None:
        if route is None or (request.caller is None and not route.is_public):
            return  # no endpoint matches, or the caller is not authenticated
        if error.code is Code.FORBIDDEN:
            try:
                await self._services.on_denied(request.actor, route.endpoint.name, error)
            except Exception as failure:
                # The request is rejected even if the denial cannot be recorded.
                _log.error(
                    "audit.denial_not_recorded",
                    request_id=request.request_id,
                    failure=logs.describe_exception(failure),
                )

    def _record_request(
        self, label: RouteLabel, request: RequestContext, status: int, started: float
    ) -> None:
        seconds = perf_counter() - started
        self.metrics.count_request(label.metrics_row, status, seconds)
        if label.moves_money:
            self._services.latency_samples.add_request(seconds)
        logs.write_request(
            logs.RequestLogLine(
                time=logs.now(),
                level="info" if status < 500 else "error",
                request_id=request.request_id,
                method=request.method,
                endpoint=label.name,
                status=status,
                ms=round(seconds * 1000, 3),
                principal=None if request.caller is None else request.caller.id,
                ip=request.ip,
            )
        )


def _build_no_route_error(methods: Mapping[str, Route]) -> ApiError:
    if not methods:
        return ApiError(Code.NOT_FOUND)
    return ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(sorted(methods))})


def _render_internal_error(request: RequestContext, error: Exception) -> Response:
    _log.error(
        "request.failed", request_id=request.request_id, failure=logs.describe_exception(error)
    )
    return responses.render_error(
        ApiError(
            Code.INTERNAL_ERROR,
            "Something went wrong. The request ID identifies the error in the logs.",
            details={"request_id": request.request_id},
        )
    )
