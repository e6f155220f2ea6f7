"""Routes: endpoints with their decoders and access checks prepared before the first request."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.api.access import Guard
from tapgate.api.endpoint import Endpoint
from tapgate.api.idempotency import require_consistent_idempotency_key
from tapgate.api.request_context import RequestContext
from tapgate.auth.principals import Principal
from tapgate.errors import ApiError, Code
from tapgate.http.client_addresses import get_address_key
from tapgate.http.decoding import BodyDecoder, QueryDecoder

#: Decoders are immutable and expensive to build, because each inspects every field of its type.
#: All apps in the process share them.
_get_body_decoder: Final = cache(BodyDecoder)
_get_query_decoder: Final = cache(QueryDecoder)


class RouteLabel(NamedTuple):
    """Metrics row and log name of a route or site."""

    metrics_row: int
    name: str
    moves_money: bool = False


class Route:
    """Endpoint with its prepared decoders and access checks.

    `row` is the row of the endpoint in the metrics. A route with `ignores_overload` is also served
    under overload, when operators need health checks and metrics most.
    """

    def __init__(
        self, endpoint: Endpoint, currency: str, row: int, *, ignores_overload: bool
    ) -> None:
        self.endpoint = endpoint
        self.label = RouteLabel(row, endpoint.path, endpoint.moves_money)
        self.ignores_overload = ignores_overload
        self.status = endpoint.status
        self.is_public = endpoint.access.public
        self._guard = Guard(endpoint.access)
        self.body_limit = endpoint.body_limit
        self._heavy = endpoint.heavy
        self._handler = endpoint.handler
        self._path_parameters = endpoint.path_parameters
        self._field_guards = {name: Guard(access) for name, access in endpoint.field_access.items()}
        self._decode_body = _build_body_decoder(endpoint, currency)
        self._decode_query = (
            _get_query_decoder(endpoint.query_type, currency).decode
            if endpoint.query_type
            else None
        )

    def get_rejection(self, principal: Principal, field: str | None = None) -> ApiError | None:
        """Return why a principal may not call the endpoint or send one of its fields, or None."""
        error = self._guard.get_rejection(principal)
        if error is None and field in self._field_guards:
            return self._field_guards[field].get_rejection(principal)
        return error

    async def run(self, request: RequestContext, parameters: list[str]) -> Any:
        """Check access to fields, decode the arguments and run the handler."""
        arguments: dict[str, Any] = (
            dict(zip(self._path_parameters, parameters, strict=True)) if parameters else {}
        )
        if self._field_guards:
            self._require_field_access(request, _peek_fields(request.body))
        if self._decode_body is not None:
            arguments["body"] = body = self._decode_body(request)
            if self._field_guards:
                # Check the decoded body too: its decoder accepts JSON that `_peek_fields` rejects.
                self._require_field_access(request, msgspec.structs.asdict(body))
        if self._decode_query is not None:
            arguments["query"] = self._decode_query(request.query)
        if not self._is_heavy(arguments.get("query")):
            return await self._handler(request, **arguments)
        group = (
            get_address_key(request.ip)
            if request.caller is None
            else request.caller.idempotency_scope
        )
        async with request.services.heavy_read_limit.slot(group):
            return await self._handler(request, **arguments)

    def _is_heavy(self, query: Any) -> bool:
        if isinstance(self._heavy, str):
            return getattr(query, self._heavy) is not None
        return self._heavy

    def _require_field_access(self, request: RequestContext, fields: Mapping[str, Any]) -> None:
        for name, guard in self._field_guards.items():
            error = None if fields.get(name) is None else guard.get_rejection(request.principal)
            if error is not None:
                raise error


def _peek_fields(body: bytes) -> Mapping[str, Any]:
    """Return the fields of a body before validation, or {} if it is not a JSON object.

    Field access is checked on these fields first, so that a caller without access to a field learns
    nothing about its valid values.
    """
    try:
        fields = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _build_body_decoder(
    endpoint: Endpoint, currency: str
) -> Callable[[RequestContext], Any] | None:
    if endpoint.body_type is None:
        return None
    if endpoint.body_type is bytes:
        return lambda request: request.body
    invalid = Code.INVALID_REQUEST if endpoint.invalid_is_400 else Code.VALIDATION_FAILED
    decoder = _get_body_decoder(endpoint.body_type, currency, invalid=invalid)
    requirements = (
        *((require_consistent_idempotency_key,) if endpoint.moves_money else ()),
        *endpoint.requires,
    )
    if not requirements:
        return lambda request: decoder.decode(request.body)

    def decode(request: RequestContext) -> Any:
        def require(body: Any) -> None:
            for requirement in requirements:
                requirement(request, body)

        return decoder.decode(request.body, require)

    return decode
