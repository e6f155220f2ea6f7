"""The client has the operations and fields of the declared API, except for listed omissions."""

from itertools import chain
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from client.operation_catalog import ClientMethod, list_methods
from tapgate.api.endpoint import Endpoint
from tapgate.api.system import build_system_endpoints
from tapgate.client import File
from tapgate.client.records.base import Receipt
from tapgate.gateway import ENDPOINT_GROUPS
from tapgate.schemas.pagination import Page

#: Endpoints without a client operation, and the reason.
OMITTED_OPERATIONS = {
    "POST /payment": "an older name of POST /api/v1/payment",
    "POST /payment/verify-card": "an older name of POST /api/v1/payment/verify-card",
    "POST /payment/lookup-card": "an older name of POST /api/v1/payment/lookup-card",
    "POST /payment/refund": "an older name of POST /api/v1/payment/refund",
    "GET /openapi.json": "for tools that read OpenAPI documents",
    "GET /docs": "for people",
    "GET /docs/{file}": "for people",
    "GET /metrics": "for Prometheus",
}

DECLARED_ENDPOINTS: dict[str, Endpoint] = {
    endpoint.name: endpoint
    for endpoint in chain(build_system_endpoints(None), *ENDPOINT_GROUPS)  # type: ignore[arg-type]
}
METHODS = list_methods()
#: Set by the client from response headers.
CLIENT_ONLY_FIELDS = {Receipt: {"request_id", "replayed"}}


def get_endpoint(method: ClientMethod) -> Endpoint:
    return DECLARED_ENDPOINTS[method.sample_operation.name]


def strip_constraints(kind: Any) -> Any:
    """Return the type without the constraints that the gateway validates."""
    if get_origin(kind) is Annotated:
        return strip_constraints(get_args(kind)[0])
    return kind


def get_fields(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def test_every_endpoint_has_one_operation_or_a_documented_omission() -> None:
    names = [method.sample_operation.name for method in METHODS]
    assert len(names) == len(set(names))
    assert set(names).isdisjoint(OMITTED_OPERATIONS)
    assert set(names) | set(OMITTED_OPERATIONS) == set(DECLARED_ENDPOINTS)


def get_body_type(endpoint: Endpoint) -> Any:
    """Return the struct of a JSON body, `bytes` for a file, or None without a body."""
    schema = endpoint.body_schema
    return endpoint.body_type if schema is None or isinstance(schema, dict) else schema


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_operation_sends_exactly_the_declared_parameters(method: ClientMethod) -> None:
    endpoint = get_endpoint(method)
    for arguments in method.sample_arguments():
        operation = method.build_operation(**arguments)
        sent = dict(parse_qs(urlsplit(operation.target).query))
        query_fields = get_fields(endpoint.query_type) if endpoint.query_type else {}
        assert sent.keys() == query_fields.keys()
        for name, (value,) in sent.items():
            msgspec.convert(value, query_fields[name].type, strict=False)
        kind = get_body_type(endpoint)
        if kind is None or kind is bytes:
            assert operation.body == (b"" if kind is None else b"bytes")
            continue
        sent_body = msgspec.json.decode(operation.body)
        body_fields = get_fields(kind)
        assert sent_body.keys() == body_fields.keys()
        for name, value in sent_body.items():
            msgspec.convert(value, body_fields[name].type)


@pytest.mark.parametrize("method", METHODS, ids=str)
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


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_effect_access_and_media_type_match_the_endpoint(method: ClientMethod) -> None:
    operation, endpoint = method.sample_operation, get_endpoint(method)
    assert (operation.effect == "moves") == endpoint.moves_money
    assert operation.is_public == endpoint.access.public
    if endpoint.method == "GET":
        assert operation.effect == "reads"
    if operation.body:
        assert operation.headers["Content-Type"] in endpoint.body_media
    for arguments in method.sample_arguments():
        operation = method.build_operation(**arguments)
        if endpoint.moves_money:
            assert operation.request_id == msgspec.json.decode(operation.body)["request_id"]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_response_type_has_exactly_the_declared_fields(method: ClientMethod) -> None:
    kind, response_type = get_endpoint(method).response_type, method.sample_operation.response_type
    if kind is None:
        assert response_type is type(None)
    elif kind is bytes:
        assert response_type is File
    else:
        assert_same_type(response_type, kind)


def assert_same_type(client_type: Any, kind: Any) -> None:
    client_type, kind = strip_constraints(client_type), strip_constraints(kind)
    if get_origin(kind) is Page:
        assert get_origin(client_type) is Page
        assert_same_type(get_args(client_type)[0], get_args(kind)[0])
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        declared_fields = get_fields(kind)
        own = {
            name
            for base, names in CLIENT_ONLY_FIELDS.items()
            if issubclass(client_type, base)
            for name in names
        }
        assert get_fields(client_type).keys() - own == declared_fields.keys()
        for name, field in declared_fields.items():
            client_field = get_fields(client_type)[name]
            # A field that the gateway may omit must not be required.
            if not field.required and field.default in (None, msgspec.UNSET):
                assert not client_field.required, name
            assert_same_type(client_field.type, field.type)
    elif get_origin(kind) in (Union, UnionType):
        options = [option for option in get_args(kind) if option is not msgspec.UnsetType]
        if client_type is bool:  # a flag that is absent unless it is true
            assert options == [bool]
            return
        may_be_absent = len(options) < len(get_args(kind)) and type(None) not in options
        expected = [strip_constraints(option) for option in options] + (
            [type(None)] if may_be_absent else []
        )
        assert len(get_args(client_type)) == len(expected)
        for client_option, option in zip(get_args(client_type), expected, strict=True):
            assert_same_type(client_option, option)
    elif get_origin(kind) is not None:
        assert get_origin(client_type) is get_origin(kind)
        for client_option, option in zip(get_args(client_type), get_args(kind), strict=True):
            assert_same_type(client_option, option)
    else:
        assert client_type is kind
