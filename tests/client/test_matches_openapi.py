"""The client has the operations and types of the declared API, except for listed omissions."""

from itertools import chain
from typing import Any, get_origin
from urllib.parse import parse_qs, urlsplit

import msgspec

from cases import each
from client.operation_catalog import ClientMethod, list_methods, list_structs
from tapgate.http.api.examples import build_response_example
from tapgate.http.api.system import build_system_endpoints
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate_client import File
from tapgate_client.responses import decode_json_content
from tapgate_client.schemas.open_enums import open_enums

#: Endpoints without a client operation, and the reason.
OMITTED_OPERATIONS = {
    "POST /payment": "an older name of POST /api/v1/payment",
    "POST /payment/verify-card": "an older name of POST /api/v1/payment/verify-card",
    "POST /payment/lookup-card": "an older name of POST /api/v1/payment/lookup-card",
    "POST /payment/refund": "an older name of POST /api/v1/payment/refund",
    "GET /openapi.json": "for tools that read OpenAPI documents",
    "GET /metrics": "for Prometheus",
}

DECLARED_ENDPOINTS: dict[str, Endpoint] = {
    endpoint.name: endpoint
    for endpoint in chain(build_system_endpoints(None), *ENDPOINT_GROUPS)  # type: ignore[arg-type]
}
METHODS = list_methods()


def get_endpoint(method: ClientMethod) -> Endpoint:
    return DECLARED_ENDPOINTS[method.sample_operation.name]


def get_fields(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def test_every_endpoint_has_one_operation_or_a_documented_omission() -> None:
    names = [method.sample_operation.name for method in METHODS]
    assert len(names) == len(set(names))
    assert set(names).isdisjoint(OMITTED_OPERATIONS)
    assert set(names) | set(OMITTED_OPERATIONS) == set(DECLARED_ENDPOINTS)


def get_body_type(endpoint: Endpoint) -> Any:
    """Return the struct for a JSON body, `bytes` for a file, or None without a body."""
    schema = endpoint.body_schema
    return endpoint.body_type if schema is None or isinstance(schema, dict) else schema


@each("method", METHODS)
def test_operation_sends_exactly_the_declared_parameters(method: ClientMethod) -> None:
    endpoint = get_endpoint(method)
    for arguments in method.sample_arguments():
        operation = method.build_operation(**arguments)
        sent = dict(parse_qs(urlsplit(operation.target).query))
        query_fields = get_fields(endpoint.query_type) if endpoint.query_type else {}
        assert sent.keys() == query_fields.keys()
        for name, (value,) in sent.items():
            msgspec.convert(value, open_enums(query_fields[name].type), strict=False)
        kind = get_body_type(endpoint)
        if kind is None or kind is bytes:
            assert operation.body == (b"" if kind is None else b"bytes")
            continue
        sent_body = msgspec.json.decode(operation.body)
        body_fields = get_fields(kind)
        assert sent_body.keys() == body_fields.keys()
        for name, value in sent_body.items():
            msgspec.convert(value, open_enums(body_fields[name].type))


@each("method", METHODS)
def test_required_arguments_match_the_declared_fields(method: ClientMethod) -> None:
    endpoint = get_endpoint(method)
    kind = get_body_type(endpoint)
    if kind is None or kind is bytes:
        return
    for arguments in method.sample_arguments(include_optional=False):
        operation = method.build_operation(**arguments)
        required = {name for name, field in get_fields(kind).items() if field.required}
        generated = {"request_id"} if operation.effect == "moves" else set()
        assert msgspec.json.decode(operation.body).keys() == required | generated


@each("method", METHODS)
def test_effect_access_and_media_type_match_the_endpoint(method: ClientMethod) -> None:
    operation, endpoint = method.sample_operation, get_endpoint(method)
    # A wrong PIN counts toward the PIN lock.
    counts_pins = endpoint.effect == "reads" and "pin" in method.parameters
    assert operation.effect == ("acts" if counts_pins else endpoint.effect)
    assert operation.is_public == endpoint.access.public
    if operation.body:
        assert operation.headers["Content-Type"] in endpoint.body_media
    for arguments in method.sample_arguments():
        operation = method.build_operation(**arguments)
        if endpoint.moves_money:
            key = operation.headers.get("Idempotency-Key")  # of a file
            key = key or msgspec.json.decode(operation.body)["request_id"]
            assert operation.request_id == key


@each("method", METHODS)
def test_response_is_decoded_as_the_declared_type(method: ClientMethod) -> None:
    endpoint, response_type = get_endpoint(method), method.sample_operation.response_type
    kind = endpoint.response_type
    if kind is bytes or len(endpoint.media) > 1:  # the caller chooses the file format
        assert response_type is File
    else:
        assert response_type == (type(None) if kind is None else kind)


@each("endpoint", DECLARED_ENDPOINTS.values())
def test_every_struct_of_the_api_is_defined_in_schemas(endpoint: Endpoint) -> None:
    for kind in (get_body_type(endpoint), endpoint.query_type, endpoint.response_type):
        for struct in list_structs(kind):
            assert struct.__module__.startswith("tapgate_client.schemas."), struct


JSON_RESPONSE_TYPES = {
    str(method): method.sample_operation.response_type
    for method in METHODS
    if method.sample_operation.response_type not in (type(None), File)
}


@each("kind", JSON_RESPONSE_TYPES.values())
def test_response_of_a_newer_gateway_is_decoded(kind: Any) -> None:
    """A newer gateway adds fields to any object and values to any enum."""
    example = build_response_example(kind)
    newer = msgspec.json.encode(add_unknown_fields_and_values(example))
    decoded = decode_json_content(newer, kind)
    assert isinstance(decoded, get_origin(kind) or kind)


def add_unknown_fields_and_values(value: Any) -> Any:
    if isinstance(value, dict):
        members = {name: add_unknown_fields_and_values(item) for name, item in value.items()}
        return members | {"field_of_the_future": [1]}
    if isinstance(value, list):
        return [add_unknown_fields_and_values(item) for item in value]
    return "VALUE_OF_THE_FUTURE" if isinstance(value, str) else value
