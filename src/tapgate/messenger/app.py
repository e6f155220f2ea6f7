"""The messenger's side of HTTP: one request from its first byte to its log line.

The order of checks: 404 and 405, 503 when the process is at its concurrency limit, 413 by the
declared length, 401, 403 and 429, then what the handler refuses. Credentials in headers are checked
before the body is read; a signature over the body, after it.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from time import perf_counter
from typing import Final

import structlog

from tapgate.errors import ApiError
from tapgate.messenger.openapi import described
from tapgate.messenger.routes import ROUTES
from tapgate.messenger.routes.access import ANYBODY
from tapgate.messenger.routes.route import Refusal, Request, Route, encoded_answer, refused
from tapgate.messenger.services import Services
from tapgate.service import http, logs
from tapgate.service.asgi import AsgiApp
from tapgate.service.client_addresses import ClientAddresses, get_address_key
from tapgate.service.http import ClientDisconnectedError, Response, encode_header
from tapgate.service.overload import ConcurrencyLimit, OverloadError
from tapgate.service.token_buckets import MICROSECONDS_PER_SECOND
from tapgate.service.tracing import RequestIdSource

_log = structlog.get_logger()

#: What is logged as the status of a request that nobody waits for any more.
_DISCONNECTED: Final = 499
#: Digits of a declared length that are parsed.


class App(AsgiApp):
    """Serves the table of routes, and its description."""

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
                access=ANYBODY,
                answers={200: {"type": "object"}},
            ),
        ]
        self._by_path: dict[str, dict[str, Route]] = {}
        for route in self._routes:
            methods = self._by_path.setdefault(route.path, {})
            methods[route.method] = route
            if route.method == "GET":
                methods["HEAD"] = route
        self._addresses = ClientAddresses(services.settings.trusted_proxies)
        self._request_ids = RequestIdSource()
        self._at_once = ConcurrencyLimit()

    @cached_property
    def _description(self) -> bytes:
        return described(self._routes)

    async def get_openapi_document(self, _request: Request) -> Response:
        """Describe the interface in OpenAPI 3.1."""
        return encoded_answer(200, self._description)

    async def respond(self, asked: http.Request) -> Response:
        started = perf_counter()
        request = self._request(asked)
        methods = self._by_path.get(request.path, {})
        route = methods.get(request.method)
        try:
            if route is None:
                raise _no_route(methods)
            answer = await self._work(route, request, asked)
        except Refusal as refusal:
            answer = refused(refusal)
        except OverloadError as error:
            answer = _later(error)._replace(pause=error.pause)
        except ApiError as error:
            answer = _of_kernel(request, error)
        except ClientDisconnectedError:
            _record(route, request, _DISCONNECTED, started)
            raise
        except Exception as error:
            _log.error(
                "request.failed",
                request_id=request.request_id,
                failure=logs.describe_exception(error),
            )
            answer = refused(Refusal(500, "Internal error"))
        _record(route, request, answer.status, started)
        return answer._replace(head=answer.head + encode_header("x-request-id", request.request_id))

    async def _work(self, route: Route, request: Request, asked: http.Request) -> Response:
        if route.access is ANYBODY:
            await self._take_of_address(request)
            return await route.handler(request)
        self._at_once.require_capacity()
        asked.check_content_length(route.body_limit)
        access = route.access
        if access.check_body is None:
            await self._admit(request, access.check)
            request.body = await asked.read_body(route.body_limit)
        else:
            await self._charge_refusals(request, access.check)
            request.body = await asked.read_body(route.body_limit)
            await self._admit(request, access.check_body)
        with self._at_once:
            return await route.handler(request)

    async def _admit(self, request: Request, check: Callable[[Request], str | None]) -> None:
        """Limit callers without a credential by address.

        The provider and bridges send everyone's messages from a few addresses, so an authenticated
        caller is limited per phone number only.
        """
        request.principal = await self._charge_refusals(request, check)
        if request.principal is None:
            await self._take_of_address(request)

    async def _charge_refusals(
        self, request: Request, check: Callable[[Request], str | None]
    ) -> str | None:
        """Charge failed authentication to the address, so credentials cannot be probed without
        limit."""
        try:
            return check(request)
        except Refusal:
            await self._take_of_address(request)
            raise

    async def _take_of_address(self, request: Request) -> None:
        taken = await self._services.throttle.take(f"messenger ip:{get_address_key(request.ip)}")
        if not taken.is_allowed:
            raise Refusal(
                429,
                "Too many requests",
                retry_after=-(-taken.retry_in_us // MICROSECONDS_PER_SECOND),
            )

    def _request(self, asked: http.Request) -> Request:
        return Request(
            services=self._services,
            method=asked.method,
            path=asked.path,
            query=asked.query,
            headers=asked.headers,
            ip=self._addresses.resolve(asked.peer, asked.headers),
            request_id=self._request_ids.get_or_create(asked.headers),
        )


def _no_route(methods: Mapping[str, Route]) -> Refusal:
    if not methods:
        return Refusal(404, "Not found")
    return Refusal(405, "Method not allowed", headers={"Allow": ", ".join(sorted(methods))})


def _of_kernel(request: Request, error: ApiError) -> Response:
    """The database is away, too much is waiting, or the body is too large."""
    if error.status < 500:
        return refused(Refusal(error.status, error.error, headers=error.headers))
    _log.error(
        "request.failed", request_id=request.request_id, failure=logs.describe_exception(error)
    )
    return _later(error)


def _later(error: ApiError) -> Response:
    sentence = "The messenger cannot do this at the moment. Please try again soon."
    return refused(Refusal(error.status, sentence, headers=error.headers))


def _record(route: Route | None, request: Request, status: int, started: float) -> None:
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
