"""Routes: endpoints with their decoders prepared before the first request."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from tapgate.core.records import require_id
from tapgate.http.decoding import BodyDecoder, QueryDecoder, require_declared_parameters
from tapgate.http.endpoint import BaseContext, BaseRequestContext, Endpoint, Handler
from tapgate_client.errors import Code

#: Decoders are immutable and expensive to build, because each inspects every field in its type.
#: All apps in the process share them.
_get_body_decoder: Final = cache(BodyDecoder)
_get_query_decoder: Final = cache(QueryDecoder)


class RouteLabel(NamedTuple):
    """A route's or site's metrics row and log name, and a route's endpoint."""

    metrics_row: int
    name: str
    is_payment: bool = False
    endpoint: Endpoint | None = None
    compresses: bool = False


class Route:
    """Endpoint with its prepared decoders.

    `currency` selects the rules for amounts; None means that handlers check all values themselves.
    `row` is the endpoint's row in the metrics. A route with `ignores_overload` is also served
    under overload, when operators need health checks and metrics most.
    """

    def __init__(
        self, endpoint: Endpoint, currency: str | None, row: int, *, ignores_overload: bool
    ) -> None:
        self.endpoint = endpoint
        self.label = RouteLabel(
            row, endpoint.path, endpoint.is_payment, endpoint, endpoint.compresses
        )
        self.ignores_overload = ignores_overload
        self.status = endpoint.status
        self.is_public: bool = endpoint.access.public
        self.is_unlimited = endpoint.unlimited
        self.is_report = endpoint.report
        self.body_limit = endpoint.body_limit
        self._handler = open_transaction(endpoint) if endpoint.takes_tx else endpoint.handler
        self._path_parameters = endpoint.path_parameters
        self._id_prefixes = endpoint.id_prefixes
        self._decode_body = build_body_decoder(endpoint, currency)
        self._query_names = None if endpoint.any_query else endpoint.query_names
        self._decode_query = (
            _get_query_decoder(endpoint.query_type, currency, self._query_names).decode
            if endpoint.query_type
            else None
        )

    async def run(self, request: Any, parameters: list[str]) -> Any:
        """Decode the arguments and run the handler."""
        return await self._handler(request, **self._decode_arguments(request, parameters))

    def _decode_arguments(
        self, request: BaseRequestContext, parameters: list[str]
    ) -> dict[str, Any]:
        arguments: dict[str, Any] = (
            dict(zip(self._path_parameters, parameters, strict=True)) if parameters else {}
        )
        if self._decode_body is not None:
            arguments["body"] = self._decode_body(request, request.body)
        if self._decode_query is not None:
            arguments["query"] = self._decode_query(request.query)
        elif request.query and self._query_names is not None:
            require_declared_parameters(request.query, self._query_names)
        for name, prefix in self._id_prefixes.items():
            arguments[name] = require_id(prefix, arguments[name])
        return arguments


async def _run_handler(
    endpoint: Endpoint, request: Any, tx: Any, arguments: Mapping[str, Any]
) -> Any:
    return await endpoint.handler(request, tx=tx, **arguments)


def open_transaction(endpoint: Endpoint, run: Handler = _run_handler) -> Handler:
    """Return the handler, run in a database transaction for its parameter `tx`."""

    async def handle(request: BaseRequestContext, **arguments: Any) -> Any:
        if endpoint.prepare is not None:
            arguments |= await endpoint.run_preparation(request, arguments)
        async with request.services.transaction() as tx:
            return await run(endpoint, request, tx, arguments)

    return handle


def build_body_decoder(
    endpoint: Endpoint, currency: str | None
) -> Callable[[BaseContext, bytes], Any] | None:
    """Return the decoder for a request and its body, or None if the endpoint has no body."""
    if endpoint.body_type is None:
        return None
    if endpoint.body_type is bytes:
        return lambda _request, body: body
    invalid = Code.INVALID_REQUEST if endpoint.invalid_is_400 else Code.VALIDATION_FAILED
    decoder = _get_body_decoder(endpoint.body_type, currency, invalid=invalid)
    requirements = endpoint.requires
    if not requirements:
        return lambda _request, body: decoder.decode(body)

    def decode(request: BaseContext, body: bytes) -> Any:
        def require(decoded: Any) -> None:
            for requirement in requirements:
                requirement(request, decoded)

        return decoder.decode(body, require)

    return decode
