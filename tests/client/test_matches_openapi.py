"""The client matches the declared API: every operation and every field, and no others."""

from itertools import chain
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from client.operation_catalog import ClientMethod, list_methods
from tapgate.client.pagination import Page
from tapgate.client.records.base import File, Receipt
from tapgate.edge.endpoint import Endpoint
from tapgate.edge.pagination import Page as DeclaredPage
from tapgate.edge.system import build_system_endpoints
from tapgate.gateway import ENDPOINT_GROUPS

#: Endpoints without a client operation, and the reason.
OMITTED_OPERATIONS = {
    "POST /payment": "alias of POST /api/v1/payment",
    "POST /payment/verify-card": "alias of POST /api/v1/payment/verify-card",
    "POST /payment/lookup-card": "alias of POST /api/v1/payment/lookup-card",
    "POST /payment/refund": "alias of POST /api/v1/payment/refund",
    "GET /openapi.json": "the API description itself",
    "GET /docs": "HTML page",
    "GET /docs/{file}": "asset of an HTML page",
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
    """Return the struct of a body, or `bytes` for a file."""
    schema = endpoint.body_schema
    return endpoint.body_type if schema is None or isinstance(schema, dict) else schema


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_operation_sends_exactly_the_declared_parameters(method: ClientMethod) -> None:
    endpoint = get_endpoint(method)
    for arguments in method.sample_arguments():
        operation = method.build_operation(**arguments)
        sent = dict(parse_qs(urlsplit(operation.target).query))
        declared_query = get_fields(endpoint.query_type) if endpoint.query_type else {}
        assert sent.keys() == declared_query.keys()
        for name, (value,) in sent.items():
            msgspec.convert(value, declared_query[name].type, strict=False)
        kind = get_body_type(endpoint)
        if kind is None or kind is bytes:
            assert operation.body == (b"" if kind is None else b"bytes")
            continue
        body = msgspec.json.decode(operation.body)
        declared_fields = get_fields(kind)
        assert body.keys() == declared_fields.keys()
        for name, value in body.items():
            msgspec.convert(value, declared_fields[name].type)


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
        sample = method.build_operation(**arguments)
        if endpoint.moves_money:
            assert sample.request_id == msgspec.json.decode(sample.body)["request_id"]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_response_type_has_exactly_the_declared_fields(method: ClientMethod) -> None:
    kind, response_type = get_endpoint(method).response_type, method.sample_operation.response_type
    if kind is None:
        assert response_type is type(None)
    elif kind is bytes:
        assert response_type is File
    else:
        assert_same_type(response_type, kind)


def assert_same_type(client_type: Any, declared_type: Any) -> None:
    client_type, declared_type = strip_constraints(client_type), strip_constraints(declared_type)
    if get_origin(declared_type) is DeclaredPage:
        assert get_origin(client_type) is Page
        assert_same_type(get_args(client_type)[0], get_args(declared_type)[0])
        client_type, declared_type = Page, DeclaredPage
        assert get_fields(client_type).keys() == get_fields(declared_type).keys()
    elif isinstance(declared_type, type) and issubclass(declared_type, msgspec.Struct):
        declared_fields = get_fields(declared_type)
        client_only = {
            name
            for base, names in CLIENT_ONLY_FIELDS.items()
            if issubclass(client_type, base)
            for name in names
        }
        assert get_fields(client_type).keys() - client_only == declared_fields.keys()
        for name, field in declared_fields.items():
            client_field = get_fields(client_type)[name]
            # A field that the gateway may omit must not be required.
            if not field.required and field.default in (None, msgspec.UNSET):
                assert not client_field.required, name
            assert_same_type(client_field.type, field.type)
    elif get_origin(declared_type) in (Union, UnionType):
        options = [option for option in get_args(declared_type) if option is not msgspec.UnsetType]
        if client_type is bool:  # a flag that is absent unless it is true
            assert options == [bool]
            return
        may_be_absent = len(options) < len(get_args(declared_type)) and type(None) not in options
        expected = [strip_constraints(option) for option in options] + (
            [type(None)] if may_be_absent else []
        )
        assert len(get_args(client_type)) == len(expected)
        for option, other in zip(get_args(client_type), expected, strict=True):
            assert_same_type(option, other)
    elif get_origin(declared_type) is not None:
        assert get_origin(client_type) is get_origin(declared_type)
        for option, other in zip(get_args(client_type), get_args(declared_type), strict=True):
            assert_same_type(option, other)
    else:
        assert client_type is declared_type
