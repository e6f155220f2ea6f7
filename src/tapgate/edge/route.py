"""One endpoint made ready to run: everything that can be known before a request is worked out."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.credentials.principals import Principal
from tapgate.edge.access import Guard
from tapgate.edge.call import Call
from tapgate.edge.endpoint import Endpoint
from tapgate.edge.reading import BodyReader, QueryReader
from tapgate.edge.request_ids import require_one_name
from tapgate.errors import ApiError, Code
from tapgate.service.addresses import counted_as

#: Readers are immutable, and making one inspects every field of its type: all apps share them.
_make_body_reader: Final = cache(BodyReader)
_make_query_reader: Final = cache(QueryReader)


class Place(NamedTuple):
    """Where requests are counted, and what log lines call it."""

    row: int
    name: str
    moves_money: bool = False


class Route:
    """`row` is where its requests are counted. `always`: it answers at overload too, as whoever
    looks after the gateway needs most then."""

    def __init__(self, endpoint: Endpoint, currency: str, row: int, *, always: bool) -> None:
        self.endpoint = endpoint
        self.place = Place(row, endpoint.path, endpoint.moves_money)
        self.always = always
        self.status = endpoint.status
        self.public = endpoint.access.public
        self._guard = Guard(endpoint.access)
        self.body_limit = endpoint.body_limit
        self._heavy = endpoint.heavy
        self._handler = endpoint.handler
        self._names = endpoint.path_names
        self._field_guards = {name: Guard(access) for name, access in endpoint.field_access.items()}
        self._read_body = _body_reader(endpoint, currency)
        self._read_query = (
            _make_query_reader(endpoint.query_type, currency).read if endpoint.query_type else None
        )

    def refusal(self, principal: Principal, field: str | None = None) -> ApiError | None:
        """Why somebody may not call it, or may not send one of its fields."""
        refusal = self._guard.refusal(principal)
        if refusal is None and field in self._field_guards:
            return self._field_guards[field].refusal(principal)
        return refusal

    async def run(self, call: Call, names: list[str]) -> Any:
        """Reads what the endpoint takes and lets it work."""
        arguments: dict[str, Any] = dict(zip(self._names, names, strict=True)) if names else {}
        if self._field_guards:
            self._require_field_access(call, _first_look(call.body))
        if self._read_body is not None:
            arguments["body"] = body = self._read_body(call)
            if self._field_guards:
                # What a first look cannot read may still be read: what is used decides.
                self._require_field_access(call, msgspec.structs.asdict(body))
        if self._read_query is not None:
            arguments["query"] = self._read_query(call.query)
        if not self._is_heavy(arguments.get("query")):
            return await self._handler(call, **arguments)
        group = counted_as(call.ip) if call.caller is None else call.caller.scope
        async with call.services.heavy.slot(group):
            return await self._handler(call, **arguments)

    def _is_heavy(self, query: Any) -> bool:
        if isinstance(self._heavy, str):
            return getattr(query, self._heavy) is not None
        return self._heavy

    def _require_field_access(self, call: Call, sent: Mapping[str, Any]) -> None:
        for name, guard in self._field_guards.items():
            refusal = None if sent.get(name) is None else guard.refusal(call.principal)
            if refusal is not None:
                raise refusal


def _first_look(body: bytes) -> Mapping[str, Any]:
    """Before the values are looked at: who may not send a field is not told more about it."""
    try:
        sent = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return sent if isinstance(sent, dict) else {}


def _body_reader(endpoint: Endpoint, currency: str) -> Callable[[Call], Any] | None:
    if endpoint.body_type is None:
        return None
    if endpoint.body_type is bytes:
        return lambda call: call.body
    invalid = Code.INVALID_REQUEST if endpoint.invalid_is_400 else Code.VALIDATION_FAILED
    reader = _make_body_reader(endpoint.body_type, currency, invalid=invalid)
    requires = (*((require_one_name,) if endpoint.moves_money else ()), *endpoint.requires)
    if not requires:
        return lambda call: reader.read(call.body)

    def read(call: Call) -> Any:
        def require(body: Any) -> None:
            for requirement in requires:
                requirement(call, body)

        return reader.read(call.body, require)

    return read
