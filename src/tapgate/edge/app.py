"""The gateway's side of HTTP: one request from its first byte to its log line.

The order of checks is public: 404 and 405, then 503 where too many requests are in progress, then
413, 401, 429, 403, 400, 422, then the handler. A body that has not arrived is not waited for
before the credential is checked, so 413 comes first only for a declared length, and for what has
arrived by then.

Sites have pages for people beside the endpoints. They ask the endpoints as an API client would, but
without a connection in between.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import structlog

from tapgate.credentials.principals import Principal
from tapgate.edge import answers
from tapgate.edge.body_limits import DEFAULT_BODY_BYTES
from tapgate.edge.call import Call
from tapgate.edge.charges import LookupCharge, rate_limited
from tapgate.edge.endpoint import Endpoint
from tapgate.edge.metrics import DISCONNECTED, UNMATCHED, Metrics
from tapgate.edge.openapi import described
from tapgate.edge.openapi_webhooks import WebhookEvent
from tapgate.edge.route import Place, Route
from tapgate.edge.routing import Router
from tapgate.edge.services import Services
from tapgate.edge.site import Site
from tapgate.edge.system import system_endpoints
from tapgate.errors import ApiError, Code
from tapgate.service import logs
from tapgate.service.addresses import Addresses, counted_as
from tapgate.service.asgi import AsgiApp
from tapgate.service.http import Answer, Disconnected, Request
from tapgate.service.node_files import shared_folder
from tapgate.service.overload import AtOnce, OverloadError
from tapgate.service.request_ids import RequestIds

_log = structlog.get_logger()


_NOWHERE = Place(UNMATCHED, "unmatched")


class App(AsgiApp):
    """Serves the given endpoints, those about the gateway itself, and sites beside them."""

    def __init__(
        self,
        services: Services,
        endpoints: Iterable[Endpoint],
        sites: Iterable[Site] = (),
        events: Sequence[WebhookEvent] = (),
    ) -> None:
        about_itself = [*system_endpoints(self)]
        declared = [*about_itself, *endpoints]
        self._services = services
        self._declared = declared
        self._events = events
        self._sites = [
            (site, Place(row, site.prefix)) for row, site in enumerate(sites, len(declared))
        ]
        self.metrics = Metrics(
            shared_folder(services.settings.data_dir),
            [
                *((endpoint.method, endpoint.path) for endpoint in declared),
                *(("", place.name) for _, place in self._sites),
            ],
        )
        services.count_message = self.metrics.count_message
        self._addresses = Addresses(services.settings.trusted_proxies)
        self._request_ids = RequestIds()
        self._at_once = AtOnce()
        self._router: Router[Route] = Router()
        self._named: dict[str, Route] = {}
        for row, endpoint in enumerate(declared):
            always = endpoint in about_itself
            route = Route(endpoint, services.settings.currency, row, always=always)
            self._router.add(endpoint.method, endpoint.path, route)
            self._named[endpoint.name] = route
            if endpoint.method == "GET":
                self._router.add("HEAD", endpoint.path, route)

    @cached_property
    def description(self) -> bytes:
        """Written when somebody first asks for it: few processes are ever asked."""
        return described(self._declared, self._services.settings.currency, self._events)

    async def respond(self, request: Request) -> Answer:
        started = perf_counter()
        call = self._call(request)
        methods, names = self._router.find(call.path) or ({}, [])
        route = methods.get(call.method)
        place = _NOWHERE if route is None else route.place
        try:
            if route is not None:
                answer = await self._work(route, names, call, request)
            else:
                site, place = self._site(call.path, methods)
                answer = await self._visited(site, call, request)
        except OverloadError as error:
            answer = answers.of_refusal(error)._replace(pause=error.pause)
        except ApiError as error:
            await self._record_denial(route, call, error)
            answer = answers.of_refusal(error)
        except Disconnected:
            self._record(place, call, DISCONNECTED, started)
            raise
        except Exception as error:
            answer = _failed(call, error)
        self._record(place, call, answer.status, started)
        return self._signed_off(call, answer)

    async def ask(self, call: Call) -> Any:
        methods, names = self._router.find(call.path) or ({}, [])
        route = methods.get(call.method)
        if route is None:
            raise _no_route(methods)
        try:
            refusal = None if route.public else route.refusal(call.principal)
            if refusal is not None:
                raise refusal
            if len(call.body) > route.body_limit:
                raise ApiError(Code.PAYLOAD_TOO_LARGE)
            return await route.run(call, names)
        except ApiError as error:
            await self._record_denial(route, call, error)
            raise

    def admits(self, principal: Principal, endpoint: str, field: str | None = None) -> bool:
        return self._named[endpoint].refusal(principal, field) is None

    async def require(self, call: Call, endpoint: str, field: str | None, sentence: str) -> None:
        route = self._named[endpoint]
        refusal = route.refusal(call.principal, field)
        if refusal is not None:
            refusal.message = sentence
            await self._record_denial(route, call, refusal)
            raise refusal

    def _site(self, path: str, methods: Mapping[str, Route]) -> tuple[Site, Place]:
        for site, place in self._sites:
            if path == site.prefix or path.startswith(f"{site.prefix}/"):
                return site, place
        raise _no_route(methods)

    async def _visited(self, site: Site, call: Call, request: Request) -> Answer:
        self._at_once.require_room()
        try:
            was_complete = request.complete
            call.body = await request.body(await site.admit(self, call))
            if call.caller is not None and not was_complete:
                # The session may have ended while the body arrived.
                limit = await site.admit(self, call)
                if len(call.body) > limit:
                    raise ApiError(Code.PAYLOAD_TOO_LARGE)
        except ApiError as error:
            return answers.of_result(200, site.refused(self, call, error))
        with self._at_once:
            return answers.of_result(200, await site.answer(self, call))

    def _call(self, request: Request) -> Call:
        headers = request.headers
        return Call(
            services=self._services,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=headers,
            ip=self._addresses.of(request.peer, headers),
            request_id=self._request_ids.of(headers),
        )

    def _signed_off(self, call: Call, answer: Answer) -> Answer:
        """With what every answer says: its id for tracing, and what is left of the rate."""
        status, head, body, pause = answer
        rate = b"" if call.taken is None else answers.rate_headers(call.taken)
        named = b"%bx-request-id: %b\r\n%b" % (head, call.request_id.encode(), rate)
        return Answer(status, named, body, pause)

    async def _work(self, route: Route, names: list[str], call: Call, request: Request) -> Answer:
        if route.always:
            call.body = await request.body(route.body_limit)
            return await self._done(route, names, call)
        self._at_once.require_room()
        unproven_refusal = None
        if not request.complete:
            request.require_length(route.body_limit)
            if not route.public:
                unproven_refusal = await self._admit(route, call, has_body=False)
        if unproven_refusal is None or route.body_limit <= DEFAULT_BODY_BYTES:
            call.body = await request.body(route.body_limit)
        else:
            call.body = await self._small_body(call, request, unproven_refusal)
        with self._at_once:
            return await self._done(route, names, call)

    async def _small_body(self, call: Call, request: Request, refusal: ApiError) -> bytes:
        """Receive a body only to verify its signature: the route does not accept the signer. A
        large body is refused without that."""
        try:
            return await request.body(DEFAULT_BODY_BYTES)
        except ApiError as error:
            if error.code is not Code.PAYLOAD_TOO_LARGE:
                raise
        await LookupCharge(call).charge()
        raise refusal

    async def _done(self, route: Route, names: list[str], call: Call) -> Answer:
        if route.public:
            await self._take_of_address(call)
        else:
            await self._admit(route, call)
        return answers.of_result(route.status, await route.run(call, names))

    async def _admit(self, route: Route, call: Call, *, has_body: bool = True) -> ApiError | None:
        """Authenticate and charge the caller. Without the body, this is done again when it has
        arrived: the credential may have been revoked since.

        Return why the route refuses a signer whose signature cannot be verified yet.
        """
        authenticator = self._services.authenticator
        charge = LookupCharge(call)
        is_charged = call.caller is not None
        try:
            if not has_body and authenticator.signs_body(call.headers):
                return route.refusal(await authenticator.require_known_key(call.headers, charge))
            principal = await authenticator.authenticate(
                call.method, call.path, call.query, call.headers, call.body, charge
            )
            if principal is None:
                raise ApiError(Code.UNAUTHORIZED, "A credential is required")
            call.caller = principal
            if principal.kind == "api_key":
                authenticator.admit_api_key(principal, call.ip)
        except ApiError as error:
            if error.status in (401, 403):
                # Credentials cannot be probed beyond the address's rate.
                await charge.charge()
            raise
        if not is_charged:
            throttle = self._services.throttle
            rate = throttle.rate_of(principal) if principal.kind == "api_key" else None
            call.taken = taken = await throttle.take(principal.rate_key, rate)
            if not taken.allowed:
                raise rate_limited(taken)
        refusal = route.refusal(principal)
        if refusal is not None:
            raise refusal
        return None

    async def _take_of_address(self, call: Call) -> None:
        await self.take(call, f"ip:{counted_as(call.ip)}")

    async def take(self, call: Call, key: str) -> None:
        call.taken = taken = await self._services.throttle.take(key)
        if not taken.allowed:
            raise rate_limited(taken)

    async def _record_denial(self, route: Route | None, call: Call, error: ApiError) -> None:
        if route is None or (call.caller is None and not route.public):
            return  # nobody is proven to have tried
        if error.code is Code.FORBIDDEN:
            try:
                await self._services.denied(call.origin, route.endpoint.name, error)
            except Exception as problem:
                # What cannot be recorded is refused all the same.
                _log.error(
                    "denied.not_recorded", request_id=call.request_id, failure=logs.trace(problem)
                )

    def _record(self, place: Place, call: Call, status: int, started: float) -> None:
        seconds = perf_counter() - started
        self.metrics.count(place.row, status, seconds)
        if place.moves_money:
            self._services.recent.add_request(seconds)
        logs.write(
            logs.RequestLine(
                time=logs.now(),
                level="info" if status < 500 else "error",
                request_id=call.request_id,
                method=call.method,
                endpoint=place.name,
                status=status,
                ms=round(seconds * 1000, 3),
                principal=None if call.caller is None else call.caller.id,
                ip=call.ip,
            )
        )


def _no_route(methods: Mapping[str, Route]) -> ApiError:
    if not methods:
        return ApiError(Code.NOT_FOUND)
    return ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(sorted(methods))})


def _failed(call: Call, error: Exception) -> Answer:
    _log.error("request.failed", request_id=call.request_id, failure=logs.trace(error))
    return answers.of_refusal(
        ApiError(
            Code.INTERNAL_ERROR,
            "The request failed and was logged under this id",
            details={"request_id": call.request_id},
        )
    )
