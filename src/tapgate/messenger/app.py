"""The messenger's HTTP application: routing, authentication, rate limits and the request log.

Checks run in this order: route and method (404, 405), concurrency limit (503), declared body length
(413), credentials (401, 403 or 432) and rate limit (429), then the handler's own checks. Public
routes skip all but the first and the rate limit. Credentials in headers are checked before the body
is read, and a signature over the body after it is read.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from time import perf_counter
from typing import Final

import structlog

from tapgate.errors import ApiError
from tapgate.http import messages as http
from tapgate.http.asgi import AsgiApp
from tapgate.http.client_addresses import ClientAddresses, get_address_key
from tapgate.http.messages import ClientDisconnectedError, Response, encode_header
from tapgate.http.overload import ConcurrencyLimit, OverloadError
from tapgate.http.token_buckets import MICROSECONDS_PER_SECOND
from tapgate.http.tracing import RequestIdSource
from tapgate.messenger.openapi import build_document
from tapgate.messenger.routes import ROUTES
from tapgate.messenger.routes.access import PUBLIC
from tapgate.messenger.routes.route import (
    HttpError,
    Request,
    Route,
    render_encoded_json,
    render_http_error,
)
from tapgate.messenger.services import Services
from tapgate.runtime import logs

_log = structlog.get_logger()

#: Status logged when the client disconnects before the response.
_CLIENT_CLOSED_STATUS: Final = 499


class App(AsgiApp):
    """ASGI application that serves the route table and its OpenAPI document."""

    def __init__(self, services: Services, routes: Iterable[Route] = ROUTES) -> None:
        self._services = services
        self._routes = [
            *(
                route
                for route in routes
                if route.in_production or not services.settings.is_production
            ),
            Route(
                method="GET",
                path="/openapi.json",
                handler=self.get_openapi_document,
                access=PUBLIC,
                responses={200: {"type": "object"}},
            ),
        ]
        self._routes_by_path: dict[str, dict[str, Route]] = {}
        for route in self._routes:
            methods = self._routes_by_path.setdefault(route.path, {})
            methods[route.method] = route
            if route.method == "GET":
                methods["HEAD"] = route
        self._addresses = ClientAddresses(services.settings.trusted_proxies)
        self._request_ids = RequestIdSource()
        self._concurrency_limit = ConcurrencyLimit()

    @cached_property
    def _openapi_document(self) -> bytes:
        return build_document(self._routes)

    async def get_openapi_document(self, _request: Request) -> Response:
        """Return the OpenAPI 3.1 document of this API."""
        return render_encoded_json(200, self._openapi_document)

    async def respond(self, http_request: http.Request) -> Response:
        started = perf_counter()
        request = self._build_request(http_request)
        methods = self._routes_by_path.get(request.path, {})
        route = methods.get(request.method)
        try:
            if route is None:
                raise _build_routing_error(methods)
            response = await self._dispatch(route, request, http_request)
        except HttpError as error:
            response = render_http_error(error)
        except OverloadError as error:
            response = _render_unavailable(error)._replace(pause=error.pause)
        except ApiError as error:
            response = _render_api_error(request, error)
        except ClientDisconnectedError:
            _log_request(route, request, _CLIENT_CLOSED_STATUS, started)
            raise
        except Exception as error:
            _log.error(
                "request.failed",
                request_id=request.request_id,
                failure=logs.describe_exception(error),
            )
            response = render_http_error(HttpError(500, "Internal error"))
        _log_request(route, request, response.status, started)
        return response._replace(
            head=response.head + encode_header("x-request-id", request.request_id)
        )

    async def _dispatch(
        self, route: Route, request: Request, http_request: http.Request
    ) -> Response:
        if route.access is PUBLIC:
            await self._throttle_address(request)
            return await route.handler(request)
        self._concurrency_limit.require_capacity()
        http_request.check_content_length(route.body_limit)
        access = route.access
        if access.check_body is None:
            await self._authenticate(request, access.check)
            request.body = await http_request.read_body(route.body_limit)
        else:
            await self._charge_failed_authentication(request, access.check)
            request.body = await http_request.read_body(route.body_limit)
            await self._authenticate(request, access.check_body)
        with self._concurrency_limit:
            return await route.handler(request)

    async def _authenticate(self, request: Request, check: Callable[[Request], str | None]) -> None:
        """Set the request's principal, and rate-limit anonymous callers by IP address.

        The provider and the bridges send the messages of all users from a few IP addresses, so
        authenticated callers have no limit per IP address. Messages are limited per sender instead.
        """
        request.principal = await self._charge_failed_authentication(request, check)
        if request.principal is None:
            await self._throttle_address(request)

    async def _charge_failed_authentication(
        self, request: Request, check: Callable[[Request], str | None]
    ) -> str | None:
        """Return the principal; charge a failed check to the caller's IP address.

        The charge prevents a caller from probing credentials without limit.
        """
        try:
            return check(request)
        except HttpError:
            await self._throttle_address(request)
            raise

    async def _throttle_address(self, request: Request) -> None:
        rate_limit = await self._services.throttle.take(
            f"messenger ip:{get_address_key(request.ip)}"
        )
        if not rate_limit.is_allowed:
            raise HttpError(
                429,
                "Too many requests",
                retry_after=-(-rate_limit.retry_in_us // MICROSECONDS_PER_SECOND),
            )

    def _build_request(self, request: http.Request) -> Request:
        return Request(
            services=self._services,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=request.headers,
            ip=self._addresses.resolve(request.peer, request.headers),
            request_id=self._request_ids.get_or_create(request.headers),
        )


def _build_routing_error(methods: Mapping[str, Route]) -> HttpError:
    if not methods:
        return HttpError(404, "Not found")
    return HttpError(405, "Method not allowed", headers={"Allow": ", ".join(sorted(methods))})


def _render_api_error(request: Request, error: ApiError) -> Response:
    """Render an error from shared platform code; log a server error and replace its message."""
    if error.status < 500:
        return render_http_error(HttpError(error.status, error.error, headers=error.headers))
    _log.error(
        "request.failed", request_id=request.request_id, failure=logs.describe_exception(error)
    )
    return _render_unavailable(error)


def _render_unavailable(error: ApiError) -> Response:
    message = "The messenger is temporarily unavailable. Try again in a few seconds."
    return render_http_error(HttpError(error.status, message, headers=error.headers))


def _log_request(route: Route | None, request: Request, status: int, started: float) -> None:
    logs.write_request(
        logs.RequestLogLine(
            time=logs.now(),
            level="info" if status < 500 else "error",
            request_id=request.request_id,
            method=request.method,
            endpoint="unmatched" if route is None else route.path,
            status=status,
            ms=round((perf_counter() - started) * 1000, 3),
            principal=request.principal,
            ip=request.ip,
        )
    )
