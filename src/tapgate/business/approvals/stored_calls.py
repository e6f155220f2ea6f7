"""Calls that wait for approval: an endpoint and its arguments, sealed until they are executed."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate.business.approvals import model, queries
from tapgate.core.records import require_id
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.api.services import Services
from tapgate.http.endpoint import Endpoint
from tapgate.http.route import build_body_decoder
from tapgate.http.router import Router
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code


class StoredCall(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoint, named by its operation ID, and its handler's arguments.

    The arguments have their API form: encoded IDs, and the body as an object without PINs,
    passwords and the idempotency key.
    """

    endpoint: str
    arguments: dict[str, Any]
    ip: str
    #: API key that made the request.
    api_key_id: int | None = None

    def render_path(self, endpoint: Endpoint) -> str:
        """Return the request path with the same arguments."""
        return endpoint.path.format_map(self.arguments)


def build(endpoint: Endpoint, request: RequestContext, arguments: Mapping[str, Any]) -> StoredCall:
    stored = dict(arguments)
    for name, prefix in endpoint.id_prefixes.items():
        stored[name] = ids.encode(prefix, arguments[name])
    if "body" in arguments:
        stored["body"] = model.get_stored_fields(arguments["body"])
    return StoredCall(
        endpoint=endpoint.operation_id,
        arguments=stored,
        ip=request.ip,
        api_key_id=request.principal.key_id,
    )


def seal(services: Services, approval_id: int, call: StoredCall) -> bytes:
    context = model.get_seal_context(approval_id, "request")
    return services.vault.seal(msgspec.msgpack.encode(call), context)


async def load(services: Services, approval_id: int) -> tuple[StoredCall, Endpoint]:
    """Return an approval's stored call and its endpoint."""
    sealed = await queries.get_sealed_request(services.database, approval_id)
    plain = services.vault.open(sealed, model.get_seal_context(approval_id, "request"))
    fields = msgspec.msgpack.decode(plain)
    if "method" in fields:
        fields = _convert_request(services, fields)
    call = msgspec.convert(fields, StoredCall)
    endpoint = services.guarded_endpoints.get(call.endpoint)
    if endpoint is None:
        raise _build_no_endpoint_error()
    return call, endpoint


def _convert_request(services: Services, fields: dict[str, Any]) -> dict[str, Any]:
    """Convert what releases before 2.0 stored: a request with method, path and JSON body."""
    router = Router[Endpoint]()
    for each in services.guarded_endpoints.values():
        router.add(each.method, each.path, each)
    methods, parameters = router.find(fields["path"]) or ({}, [])
    endpoint = methods.get(fields["method"])
    if endpoint is None:
        raise _build_no_endpoint_error()
    arguments = dict(zip(endpoint.path_parameters, parameters, strict=True))
    if endpoint.body_type is not None:
        arguments["body"] = msgspec.json.decode(fields["body"])
    return {**fields, "endpoint": endpoint.operation_id, "arguments": arguments}


def _build_no_endpoint_error() -> ApiError:
    return ApiError(Code.NOT_FOUND, "The endpoint no longer exists.")


def decode_arguments(
    request: GuardedRequest, endpoint: Endpoint, stored: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the handler's arguments, validated as for a new request."""
    arguments = dict(stored)
    decode_body = build_body_decoder(endpoint, request.services.settings.currency)
    if decode_body is not None:
        arguments["body"] = decode_body(request, msgspec.json.encode(stored["body"]))
    for name, prefix in endpoint.id_prefixes.items():
        arguments[name] = require_id(prefix, arguments[name])
    return arguments
