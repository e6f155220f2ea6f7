"""The OpenAPI document is valid and complete, and responses conform to it."""

import re
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator

from builders.messenger import (
    BRIDGE_PATH,
    CODE_BODY,
    FLOWS_PATH,
    HEALTH_PATH,
    MESSAGE_BODY,
    OUTBOX_PATH,
    TEMPLATE_PATH,
    WEBHOOK_PATH,
    MessengerApp,
    build_delivery,
)
from tapgate.http.openapi_components import inline_shared_parts
from tapgate.messenger.routes import ENDPOINTS
from tapgate.messenger.routes.bridge import BridgeMessage
from tapgate.messenger.routes.template_messages import TemplateMessage

HANDSHAKE_QUERY = {
    "hub.mode": "subscribe",
    "hub.verify_token": "dev-verify-token",
    "hub.challenge": "1",
}


@pytest.fixture
async def document(messenger: MessengerApp) -> dict[str, Any]:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # takes long to import

    response = await messenger.client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    OpenAPIV31SpecValidator(response.json()).validate()
    return inline_shared_parts(response.json())


async def test_document_is_valid_and_describes_every_route(document: dict[str, Any]) -> None:
    described = {
        (method.upper(), path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert described.keys() == {
        *((route.method, route.path) for route in ENDPOINTS),
        ("GET", "/openapi.json"),
        ("GET", "/metrics"),
    }
    assert all(operation["summary"] for operation in described.values())
    names = [operation["operationId"] for operation in described.values()]
    assert len(names) == len(set(names))


async def test_document_declares_security_and_responses(document: dict[str, Any]) -> None:
    paths = document["paths"]
    assert paths[HEALTH_PATH]["get"]["security"] == []
    assert paths[BRIDGE_PATH]["post"]["security"] == [{"bridgeToken": []}, {}]
    assert paths[WEBHOOK_PATH]["post"]["security"] == [{"hubSignature": []}, {}]
    signature = {"serviceName": [], "serviceTime": [], "serviceSignature": []}
    assert paths[OUTBOX_PATH]["get"]["security"] == [signature]
    assert list(paths[BRIDGE_PATH]["post"]["responses"]) == [
        "200", "400", "401", "403", "413", "415", "429", "500", "503",
    ]  # fmt: skip
    assert list(paths[FLOWS_PATH]["post"]["responses"]) == [
        "200", "400", "403", "413", "415", "421", "427", "429", "432", "500", "503",
    ]  # fmt: skip


async def test_document_declares_required_fields(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["BridgeMessage"]["required"] == ["event", "from", "phoneE164"]
    assert schemas["TemplateMessage"]["required"] == ["to", "template", "parameters"]


async def test_document_describes_channel_deliveries(document: dict[str, Any]) -> None:
    body = document["paths"][WEBHOOK_PATH]["post"]["requestBody"]["content"]["application/json"]
    OAS31Validator(body["schema"]).validate(build_delivery("wamid.1"))
    entry = body["schema"]["properties"]["entry"]["items"]["properties"]
    value = entry["changes"]["items"]["properties"]["value"]["properties"]
    assert value.keys() == {"messaging_product", "metadata", "contacts", "messages"}
    assert value["messages"]["items"]["properties"].keys() == {
        "from", "id", "timestamp", "type", "text",
    }  # fmt: skip


async def test_document_has_the_names_types_and_tags_that_code_generators_need(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", name)] == []
    actual = [
        (name, field)
        for name, schema in schemas.items()
        for field, found in schema.get("properties", {}).items()
        if found.get("default", ...) is None
    ]
    assert actual == []
    assert schemas["BridgeMessage"]["properties"]["message"]["type"] == ["string", "null"]
    assert schemas["Health"]["properties"]["status"]["enum"] == ["ok", "error"]
    assert schemas["OutboxMessage"]["properties"]["created_at"]["format"] == "date-time"
    assert schemas["OutboxMessage"]["properties"]["text"]["type"] == "string"  # absent, not null
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for item in document["paths"].values():
        for operation in item.values():
            assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"])
            assert tags.issuperset(operation["tags"])
    for heading in ("Authentication", "Errors", "Idempotency", "Request IDs"):
        assert f"**{heading}.**" in document["info"]["description"]


async def test_response_examples_match_their_schemas(document: dict[str, Any]) -> None:
    checked = 0
    for item in document["paths"].values():
        for operation in item.values():
            for response in operation["responses"].values():
                for content in response["content"].values():
                    if "example" in content:
                        schema = {**content["schema"], "components": document["components"]}
                        OAS31Validator(schema).validate(content["example"])
                        checked += 1
    assert checked >= 6


async def test_request_examples_are_accepted(messenger: MessengerApp) -> None:
    bridge = await messenger.client.post(BRIDGE_PATH, json=BridgeMessage.EXAMPLE)
    assert bridge.status_code == 200
    template = await messenger.client.post(
        TEMPLATE_PATH, json=TemplateMessage.EXAMPLE, auth=messenger.get_service_auth()
    )
    assert template.status_code == 202


async def test_responses_match_their_schemas(
    messenger: MessengerApp, document: dict[str, Any]
) -> None:
    client, service = messenger.client, messenger.get_service_auth()
    responses = [
        await client.post(BRIDGE_PATH, json=MESSAGE_BODY),
        await client.post(BRIDGE_PATH, json={}),
        await client.post(BRIDGE_PATH, content=b"x" * (9 << 20)),
        await client.get(WEBHOOK_PATH, params=HANDSHAKE_QUERY),
        await client.get(WEBHOOK_PATH),
        await client.post(WEBHOOK_PATH, json=build_delivery("wamid.1")),
        await client.post(WEBHOOK_PATH, content=b"{"),
        await client.post(FLOWS_PATH, content=b"{}"),
        await client.post(TEMPLATE_PATH, json=CODE_BODY, auth=service),
        await client.post(TEMPLATE_PATH, json=CODE_BODY),
        await client.post(TEMPLATE_PATH, json=CODE_BODY | {"to": "1"}, auth=service),
        await client.get(OUTBOX_PATH, params={"to": CODE_BODY["to"]}, auth=service),
        await client.get(OUTBOX_PATH, auth=service),
        await client.get(HEALTH_PATH),
    ]
    messenger.gateway.is_unreachable = True
    responses.append(await client.post(BRIDGE_PATH, json=MESSAGE_BODY | {"message": "balance"}))
    for response in responses:
        operation = document["paths"][response.request.url.path][response.request.method.lower()]
        media, _, _ = response.headers["content-type"].partition(";")
        schema = operation["responses"][str(response.status_code)]["content"][media]["schema"]
        body = response.text if media == "text/plain" else response.json()
        OAS31Validator({**schema, "components": document["components"]}).validate(body)
