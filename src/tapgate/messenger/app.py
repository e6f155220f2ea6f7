"""The messenger as an ASGI application: one request from its first byte to its log line.

The order of checks: 404 and 405, then 413, 401 and 403, then what the handler refuses.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from time import perf_counter
from typing import Final

import structlog

from tapgate.errors import ApiError
from tapgate.messenger.openapi import described
from tapgate.messenger.routes import ROUTES
from tapgate.messenger.routes.access import ANYBODY
from tapgate.messenger.routes.route import JSON, Refusal, Request, Route, refused
from tapgate.messenger.services import Services
from tapgate.service import asgi, logs
from tapgate.service.asgi import Answer, Disconnected, Receive, Scope, Send
from tapgate.service.request_ids import RequestIds

_log = structlog.get_logger()

#: What is logged as the status of a request that nobody waits for any more.
_DISCONNECTED: Final = 499


class App:
    """Serves the table of routes, and its description."""

    def __init__(self, services: Services, routes: Iterable[Route] = ROUTES) -> None:
        self._services = services
        self._routes = [
            *(route for route in routes if route.in_production or not services.settings.production),
            Route(
                method="GET",
                path="/openapi.json",
                handler=self.openapi,
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
        self._request_ids = RequestIds()

    @cached_property
    def _description(self) -> bytes:
        return described(self._routes)

    async def openapi(self, _request: Request) -> Answer:
        """Describe the interface in OpenAPI 3.1."""
        body = self._description
        length = b"%d" % len(body)
        return Answer(200, [(b"content-type", JSON.encode()), (b"content-length", length)], body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(self._request(scope), receive, send)
        elif scope["type"] == "lifespan":
            await asgi.live_and_die(receive, send)
        else:
            await send({"type": "websocket.close"})

    def _request(self, scope: Scope) -> Request:
        headers = dict(scope["headers"])
        peer = scope.get("client")
        return Request(
            services=self._services,
            method=scope["method"],
            path=asgi.request_path(scope),
            query=scope["query_string"],
            headers=headers,
            ip=peer[0] if peer else "local",
            request_id=self._request_ids.of(headers),
        )

    async def _serve(self, request: Request, receive: Receive, send: Send) -> None:
        started = perf_counter()
        methods = self._by_path.get(request.path, {})
        route = methods.get(request.method)
        try:
            if route is None:
                raise _no_route(methods)
            request.body = await asgi.read_body(receive, request.headers, route.body_limit)
            request.principal = route.access.check(request)
            answer = await route.handler(request)
        except Refusal as refusal:
            answer = refused(refusal)
        except ApiError as error:
            answer = _of_kernel(request, error)
        except Disconnected:
            return _record(route, request, _DISCONNECTED, started)
        except Exception as error:
            _log.error("request.failed", request_id=request.request_id, failure=logs.trace(error))
            answer = refused(Refusal(500, "Internal error"))
        answer.headers.append((b"x-request-id", request.request_id.encode()))
        _record(route, request, answer.status, started)
        return await asgi.send_answer(send, answer, only_head=request.method == "HEAD")


def _no_route(methods: Mapping[str, Route]) -> Refusal:
    if not methods:
        return Refusal(404, "Not found")
    return Refusal(405, "Method not allowed", headers={"Allow": ", ".join(sorted(methods))})


def _of_kernel(request: Request, error: ApiError) -> Answer:
    """The database is away, too much is waiting, or the body is too large."""
    if error.status < 500:
        return refused(Refusal(error.status, error.error, headers=error.headers))
    _log.error("request.failed", request_id=request.request_id, failure=logs.trace(error))
    sentence = "The messenger cannot do this at the moment. Please try again soon."
    return refused(Refusal(error.status, sentence, headers=error.headers))


def _record(route: Route | None, request: Request, status: int, started: float) -> None:
    logs.write(
        logs.RequestLine(
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
