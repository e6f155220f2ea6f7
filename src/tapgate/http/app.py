"""Request pipeline for both services: routing, limits, body, rate limits, handler and request log.

The order of checks is part of the public API: 404 and 405, then 415, then 503 if too many requests
are in progress, then 413, the service's access check (401, 429, 403), 400, 422, then the handler.
The credential is checked before the service waits for the rest of a body. 413 therefore precedes
401 only if Content-Length, or a body that has already arrived completely, exceeds the limit.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, Generic, TypeVar

import structlog

from tapgate.core import telemetry
from tapgate.http.body_limits import DEFAULT_BODY_BYTES
from tapgate.http.compression import compress_response
from tapgate.http.cors import CorsPolicy
from tapgate.http.endpoint import BaseRequestContext
from tapgate.http.http_messages import (
    ClientDisconnectedError,
    Request,
    Response,
    check_content_length,
    require_plain_body,
)
from tapgate.http.metrics import CLIENT_CLOSED_REQUEST, UNMATCHED_ROW
from tapgate.http.overload import ConcurrencyLimit, OverloadError
from tapgate.http.rate_limits.throttle import build_rate_limit_error
from tapgate.http.rate_limits.token_buckets import RateLimit, RateLimitResult
from tapgate.http.request_ids import RequestIdSource
from tapgate.http.responses import render_result
from tapgate.http.route import Route, RouteLabel
from tapgate.http.router import Router
from tapgate.runtime import logs
from tapgate.runtime.client_addresses import ClientAddresses, get_address_key
from tapgate_client.errors import ApiError, Code

C = TypeVar("C", bound=BaseRequestContext)
R = TypeVar("R", bound=Route)
SiteHandler = Callable[[C, Request], Awaitable[Response]]

_log = structlog.get_logger()

#: Health checks per second and address. Monitoring and load balancers need far fewer.
PROBE_RATE_LIMIT = RateLimit(500, 1000)
#: How long the server does not read from a stranger's connection after it exceeded a rate limit.
#: Otherwise the rejections in a flood would cost as much as the requests that the limit prevents.
RATE_LIMITED_PAUSE_SECONDS = 1.0
_TOO_MANY_REQUESTS = 429

_UNMATCHED_LABEL = RouteLabel(UNMATCHED_ROW, "unmatched")


class WebApp(ABC, Generic[C, R]):
    """Application that serves declared endpoints.

    A service's subclass authenticates callers, renders errors and counts requests.
    """

    #: Rate limit key prefix for client addresses.
    address_key_prefix = "ip"

    def __init__(self, services: Any, context_type: type[C], routes: Iterable[R]) -> None:
        self._services: Any = services
        self._context_type = context_type
        #: Set by a service that browser apps from other origins may call.
        self._cors: CorsPolicy | None = None
        self._client_addresses = ClientAddresses(services.settings.trusted_proxies)
        self._request_ids = RequestIdSource()
        self.concurrency_limit = ConcurrencyLimit()
        self._router: Router[R] = Router()
        for route in routes:
            method, path = route.endpoint.method, route.endpoint.path
            methods = self._router.add(method, path, route)
            if method == "GET":
                methods["HEAD"] = route

    # Defined by the service

    @staticmethod
    @abstractmethod
    def render_error(error: ApiError) -> Response:
        """Render an error in the service's format."""

    @abstractmethod
    async def authorize(self, route: R, context: C, *, has_body: bool = True) -> ApiError | None:
        """Authenticate the caller, throttle it and check its access.

        If the body is incomplete, this is called without the body first and again with it, because
        the credential may have been revoked in between. The caller must be throttled only once.

        Return the route's rejection for a signer whose signature cannot be verified without the
        body, or None. Raise any other rejection.
        """

    async def on_error(self, route: R | None, context: C, error: ApiError) -> None:
        """Handle an error before it is rendered."""

    def build_internal_error(self, context: C) -> ApiError:
        """Return the error for an unexpected exception."""
        return ApiError(Code.INTERNAL_ERROR)

    def find_site(
        self, context: C, methods: Mapping[str, R]
    ) -> tuple[RouteLabel, "SiteHandler[C]"]:
        """Return the label and handler for a request without a route, or raise 404 or 405."""
        raise build_no_route_error(methods)

    def render_rate_limit(self, result: RateLimitResult) -> bytes:
        """Return header lines for a rate limit check result."""
        return b""

    def count_request(self, label: RouteLabel, status: int, seconds: float) -> None:
        """Count a completed request in the service's metrics."""

    def log_response(
        self, label: RouteLabel, context: C, status: int, seconds: float, body: bytes
    ) -> None:
        """Record a request and its response in the service's own log."""

    # The pipeline

    async def respond(self, request: Request) -> Response:
        started = perf_counter()
        headers = request.headers
        context = self._context_type(
            services=self._services,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=headers,
            ip=self._client_addresses.resolve(request.peer, headers),
            request_id=self._request_ids.get_or_create(headers),
        )
        methods, parameters = self._router.find(context.path) or ({}, [])
        route = methods.get(context.method)
        label = _UNMATCHED_LABEL if route is None else route.label
        cors = self._cors
        try:
            if route is not None:
                response = await self._handle(route, parameters, context, request)
            elif (
                cors is not None
                and methods
                and (preflight := cors.build_preflight_response(request, methods)) is not None
            ):
                await self.charge_address(context)
                response = preflight
            else:
                label, serve = self.find_site(context, methods)
                response = await serve(context, request)
        except ApiError as error:
            await self.on_error(route, context, error)
            response = self.render_error(error)
            if isinstance(error, OverloadError):
                response = response._replace(pause=error.pause)
        except ClientDisconnectedError:
            self._record_request(label, context, CLIENT_CLOSED_REQUEST, b"", started)
            raise
        except Exception as error:
            log_failure(context, error)
            response = self.render_error(self.build_internal_error(context))
        self._record_request(label, context, response.status, response.body, started)
        rate_limit = context.rate_limit_result
        rate_head = b"" if rate_limit is None else self.render_rate_limit(rate_limit)
        if cors is not None and (methods or context.path.startswith("/api/")):
            rate_head += cors.get_headers(headers)
        full_head = b"%bx-request-id: %b\r\n%b" % (
            response.head,
            context.request_id.encode(),
            rate_head,
        )
        # Not `_replace`, which costs several times as much.
        status, _, body, pause, stream, is_compressible = response
        if status == _TOO_MANY_REQUESTS and self._is_direct_stranger(context, request):
            pause = RATE_LIMITED_PAUSE_SECONDS
        complete = Response(status, full_head, body, pause, stream)
        if label.compresses or is_compressible:
            return await compress_response(complete, headers)
        return complete

    def _is_direct_stranger(self, context: C, request: Request) -> bool:
        """Return whether only one unauthenticated client uses the connection."""
        return context.caller_id is None and not self._client_addresses.is_trusted(request.peer)

    async def _handle(
        self, route: R, parameters: list[str], context: C, request: Request
    ) -> Response:
        if b"content-encoding" in request.headers:
            require_plain_body(request.headers)
        if route.ignores_overload:
            context.body = await request.read_body(route.body_limit)
            return await self._run_route(route, parameters, context)
        self.concurrency_limit.require_capacity()
        pending_rejection = None
        if not request.is_complete:
            check_content_length(request.headers, route.body_limit)
            if not route.is_public:
                pending_rejection = await self.authorize(route, context, has_body=False)
        if pending_rejection is None or route.body_limit <= DEFAULT_BODY_BYTES:
            context.body = await request.read_body(route.body_limit)
        else:
            context.body = await self._receive_small_body(context, request, pending_rejection)
        with self.concurrency_limit:
            work = self._run_route(route, parameters, context)
            return await (request.cancel_on_disconnect(work) if route.is_report else work)

    async def _receive_small_body(self, context: C, request: Request, rejection: ApiError) -> bytes:
        """Receive a body only to verify its signature, on a route that rejects the signer.

        If the body exceeds the default limit, throttle the address as for a failed authentication
        and raise the rejection without verifying the signature.
        """
        try:
            return await request.read_body(DEFAULT_BODY_BYTES)
        except ApiError as error:
            if error.code is not Code.PAYLOAD_TOO_LARGE:
                raise
        await self.charge_address(context)
        raise rejection

    async def _run_route(self, route: R, parameters: list[str], context: C) -> Response:
        if not route.is_public:
            await self.authorize(route, context)
        elif route.is_unlimited:
            self._charge_probe(context)
        else:
            await self.charge_address(context)
        return render_result(route.status, await route.run(context, parameters))

    def _charge_probe(self, context: C) -> None:
        """Throttle a health check by the node's own limit per address, which needs no cache."""
        throttle, key = self._services.throttle, f"probe:{get_address_key(context.ip)}"
        result = throttle.take_on_node(key, PROBE_RATE_LIMIT)
        if not result.is_allowed:
            raise build_rate_limit_error(result)
        context.rate_limit_result = throttle.default_limit.build_result(True, 0)

    async def charge_address(self, context: C) -> None:
        """Take a token from the client address's bucket, or raise 429 if none is left."""
        await self.enforce_rate_limit(
            context, f"{self.address_key_prefix}:{get_address_key(context.ip)}"
        )

    async def enforce_rate_limit(self, context: C, key: str) -> None:
        """Take a token from a bucket, or raise 429 if none is left."""
        context.rate_limit_result = result = await self._services.throttle.take(key)
        if not result.is_allowed:
            raise build_rate_limit_error(result)

    def _record_request(
        self, label: RouteLabel, context: C, status: int, body: bytes, started: float
    ) -> None:
        seconds = perf_counter() - started
        self.count_request(label, status, seconds)
        self.log_response(label, context, status, seconds, body)
        if telemetry.tracer is not None:
            telemetry.describe_request(context.method, label.name, status, context.request_id)
        logs.write_request(
            logs.RequestLogLine(
                time=logs.now(),
                level="info" if status < 500 else "error",
                request_id=context.request_id,
                method=context.method,
                endpoint=label.name,
                status=status,
                ms=round(seconds * 1000, 3),
                principal=context.caller_id,
                ip=context.ip,
            )
        )


def build_no_route_error(methods: Mapping[str, Any]) -> ApiError:
    if not methods:
        return ApiError(Code.NOT_FOUND)
    return ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(sorted(methods))})


def log_failure(context: BaseRequestContext, error: Exception) -> None:
    _log.error(
        "request.failed", request_id=context.request_id, failure=logs.describe_exception(error)
    )
