"""The OpenAPI document, derived from the declarations."""

import json
from typing import Any

import pytest

from builders.http_apps import EdgeApp, things
from tapgate.http.api.openapi import render_openapi_document
from tapgate.http.decoding import BodyDecoder
from tapgate.http.endpoint import MEBIBYTE
from tapgate.http.openapi_components import inline_shared_parts

METHODS = {"get", "post", "put", "delete"}


@pytest.fixture
async def document(gateway: EdgeApp) -> dict[str, Any]:
    response = await gateway.client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    return inline_shared_parts(response.json())


def list_operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        operation
        for path in document["paths"].values()
        for method, operation in path.items()
        if method in METHODS
    ]


def test_document_is_valid(document: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # takes long to import

    OpenAPIV31SpecValidator(document).validate()


def test_every_endpoint_is_described(document: dict[str, Any]) -> None:
    documented = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert documented >= {(endpoint.method, endpoint.path) for endpoint in things}
    assert documented >= {("GET", path) for path in ("/health", "/metrics")}
    for operation in list_operations(document):
        assert operation["summary"]
        assert "X-Request-ID" in [parameter["name"] for parameter in operation["parameters"]]
    ids = [operation["operationId"] for operation in list_operations(document)]
    assert len(ids) == len(set(ids))


def test_every_body_has_a_valid_example(document: dict[str, Any]) -> None:
    for endpoint in things:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        if endpoint.body_type in (None, bytes):
            assert endpoint.body_type is bytes or "requestBody" not in operation
            continue
        example = operation["requestBody"]["content"]["application/json"]["example"]
        assert len(example) == len(endpoint.body_type.__struct_fields__)
        BodyDecoder(endpoint.body_type, "SLE").decode(json.dumps(example).encode())


def test_field_rules_appear_in_the_schema(document: dict[str, Any]) -> None:
    thing = document["components"]["schemas"]["Thing"]
    assert thing["required"] == ["name", "pin", "amount"]
    assert thing["properties"]["name"]["maxLength"] == 255
    assert thing["properties"]["pin"]["pattern"] == "^[0-9]{4}$"
    # Null means the same as absent.
    colors, null = thing["properties"]["colour"]["anyOf"]
    assert colors == {"$ref": "#/components/schemas/Colour"}
    assert document["components"]["schemas"]["Colour"]["enum"] == ["red", "green"]
    assert null == {"type": "null"}
    assert thing["properties"]["tags"]["maxItems"] == 3
    assert thing["properties"]["tags"]["items"]["maxLength"] == 255
    assert thing["properties"]["email"]["format"] == "email"
    assert thing["properties"]["email"]["type"] == ["string", "null"]
    assert document["components"]["schemas"]["Part"]["properties"]["label"]["minLength"] == 1


def test_query_fields_are_parameters(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/api/v1/things"]["get"]["parameters"]
    by_name = {item["name"]: item for item in parameters if item["in"] == "query"}
    assert by_name.keys() == {"limit", "cursor", "colour", "from"}
    assert by_name["limit"]["schema"]["maximum"] == 100
    assert by_name["limit"]["schema"]["default"] == 50
    assert "ThingQuery" not in document["components"]["schemas"]


def test_access_appears_as_security_requirements(document: dict[str, Any]) -> None:
    create = document["paths"]["/api/v1/things"]["post"]
    assert create["security"] == [{"apiKey": ["things:write"]}, {"adminToken": ["system_admin"]}]
    assert "`things:write`" in create["description"]
    pay = document["paths"]["/pay"]["post"]
    assert pay["security"] == [{"signingKey": [], "signingTime": [], "posSignature": []}]
    assert document["paths"]["/health"]["get"]["security"] == []
    scheme_names = {
        name for item in list_operations(document) for kind in item["security"] for name in kind
    }
    assert scheme_names <= document["components"]["securitySchemes"].keys()


def test_error_responses_list_their_codes(document: dict[str, Any]) -> None:
    responses = document["paths"]["/api/v1/things"]["post"]["responses"]
    assert list(responses) == ["201", "409", "default"]
    general = responses["default"]["content"]["application/json"]["examples"]
    assert list(general) == [
        "INVALID_REQUEST", "UNAUTHORIZED", "FORBIDDEN", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_ENCODING",
        "VALIDATION_FAILED",
        "RATE_LIMITED", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE",
    ]  # fmt: skip
    assert next(iter(responses["default"]["headers"])) == "X-Request-ID"
    examples = responses["409"]["content"]["application/json"]["examples"]
    assert examples["DUPLICATE_REQUEST"]["value"]["code"] == "DUPLICATE_REQUEST"
    public = document["paths"]["/api/v1/open"]["get"]["responses"]
    assert "401" not in public
    change_pin = document["paths"]["/api/v1/things/change-pin"]["post"]["responses"]
    assert "422" not in change_pin
    deleted = document["paths"]["/api/v1/things/{name}"]["delete"]["responses"]["204"]
    assert "content" not in deleted


async def test_path_with_parameters_documents_not_found(
    gateway: EdgeApp, document: dict[str, Any]
) -> None:
    response = await gateway.client.get(f"/api/v1/things/{'x' * 256}")
    assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")
    for path, item in document["paths"].items():
        for operation in item.values():
            error = operation["responses"].get("404", {"content": {"application/json": {}}})
            codes = error["content"]["application/json"].get("examples", {})
            assert ("NOT_FOUND" in codes) >= ("{" in path), path


def test_document_is_deterministic_and_small() -> None:
    expected = render_openapi_document(list(things), "SLE")
    assert render_openapi_document(list(things), "SLE") == expected
    assert len(render_openapi_document(list(things), "SLE")) < MEBIBYTE
