"""The gateway's OpenAPI document."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest
from jsonschema_rs import Draft202012Validator, Registry

from drivers.webhooks import ENDPOINTS_URL, WebhookReceiver, attempt_due_deliveries
from harness import Harness
from tapgate.http import json_schema
from tapgate.http.api.openapi import render_openapi_document
from tapgate.http.openapi_components import inline_shared_parts, iter_operations
from tapgate.server.event_records import EVENT_RECORD_LOADERS
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate_client.errors import TABLE
from tapgate_client.schemas.fields import IdempotencyKeyRule
from tapgate_client.schemas.webhooks import TEST_EVENT, WEBHOOK_EVENT_TYPES


@pytest.fixture
async def document(client: httpx2.AsyncClient) -> dict[str, Any]:
    document: dict[str, Any] = (await client.get("/openapi.json")).json()
    return document


@pytest.fixture
def inlined(document: dict[str, Any]) -> dict[str, Any]:
    """The document without references to shared parameters and responses."""
    return inline_shared_parts(document)


async def test_document_is_valid_and_describes_every_endpoint(document: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # takes long to import

    OpenAPIV31SpecValidator(document).validate()
    paths = document["paths"]
    assert isinstance(paths, dict)
    for endpoint in (endpoint for group in ENDPOINT_GROUPS for endpoint in group):
        operation = paths[endpoint.path][endpoint.method.lower()]
        assert operation["summary"]
        assert str(endpoint.status) in operation["responses"]
        for code in endpoint.errors:
            assert str(TABLE[code][0]) in operation["responses"], (endpoint.path, code)


async def test_health_has_the_same_schema_for_200_and_503(inlined: dict[str, Any]) -> None:
    paths = inlined["paths"]
    assert isinstance(paths, dict)
    responses = paths["/health"]["get"]["responses"]
    assert responses["503"]["content"] == responses["200"]["content"]


def test_every_event_is_described_with_its_headers_and_payload(document: dict[str, Any]) -> None:
    assert list(document["webhooks"]) == [*WEBHOOK_EVENT_TYPES, TEST_EVENT]
    components = document["components"]
    for name, path in document["webhooks"].items():
        operation = path["post"]
        assert operation["summary"] and operation["security"] == []
        headers = [
            components["parameters"][item["$ref"].rpartition("/")[2]]
            for item in operation["parameters"]
        ]
        assert [header["name"] for header in headers] == [
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        ]
        assert all(header["in"] == "header" and header["required"] for header in headers)
        assert "HMAC-SHA-256" in headers[2]["description"]
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        payload = components["schemas"][reference.rpartition("/")[2]]
        assert payload["properties"]["type"] == {"type": "string", "const": name}
        assert {"2XX", "410", "default"} == operation["responses"].keys()


async def test_sent_events_match_their_description(
    harness: Harness, document: dict[str, Any]
) -> None:
    admin, receiver = await harness.create_admin("A"), WebhookReceiver()

    async def create(path: str, event: str) -> str:
        body = {"url": f"{receiver.url}/{path}", "events": [event]}
        created = await harness.post(ENDPOINTS_URL, json=body, auth=admin)
        return str(created.json()["id"])

    async with receiver.listen():
        await create("watch", "*")
        endpoint_id = await create("gone", "card.blocked")
        await harness.post(f"{ENDPOINTS_URL}/{endpoint_id}/test", auth=admin)
        receiver.enqueue_statuses(410)
        await attempt_due_deliveries(harness.services, EVENT_RECORD_LOADERS)
        subscriber = await harness.create_subscriber(balance="5.00")
        await harness.deposit(subscriber["id"], "1.00")
        await attempt_due_deliveries(harness.services, EVENT_RECORD_LOADERS)
    types = {webhook.content["type"] for webhook in receiver.received}
    expected = {
        TEST_EVENT,
        "transaction.completed",
        "subscriber.created",
        "webhook_endpoint.disabled",
    }
    assert types == expected  # fmt: skip
    for received in receiver.received:
        kind = received.content["type"]
        reference = f"#/webhooks/{kind}/post/requestBody/content/application~1json/schema"
        Draft202012Validator({**document, "$ref": reference}).validate(received.content)


def list_media(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each request and response body: operation, status or `request`, media object."""
    for operation in list_operations(document):
        name = operation["operationId"]
        for kind in operation.get("requestBody", {}).get("content", {}).values():
            yield name, "request", kind
        for status, response in operation["responses"].items():
            for kind in response.get("content", {}).values():
                yield name, status, kind


def list_operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for item in document["paths"].values() for operation in item.values()]


def list_properties(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, schema in document["components"]["schemas"].items():
        for field, property_schema in schema.get("properties", {}).items():
            yield name, field, property_schema


def test_every_parameter_is_described(inlined: dict[str, Any]) -> None:
    """Descriptions are in `openapi_text.PARAMETER_DESCRIPTIONS`, in rules, or follow from paths."""
    missing = [
        (operation["operationId"], parameter["name"])
        for operation in iter_operations(inlined)
        for parameter in operation["parameters"]
        if not parameter.get("description")
    ]
    assert missing == []


def test_repeated_parameters_and_responses_are_written_once(
    document: dict[str, Any], inlined: dict[str, Any]
) -> None:
    seen: set[bytes] = set()
    for operation in iter_operations(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for part in (*operation["parameters"], *bodies, *operation["responses"].values()):
            content = msgspec.json.encode(part)
            assert "$ref" in part or content not in seen, content
            seen.add(content)
    assert b'"#/components/responses/' not in msgspec.json.encode(inlined["paths"])
    assert b'"#/components/parameters/' not in msgspec.json.encode(inlined["paths"])
    # Before parts were shared, the document had 1,494,530 bytes for 228 operations.
    operations = sum(len(item) for item in document["paths"].values())
    assert len(msgspec.json.encode(document)) / operations < 1_494_530 / 228 / 3


def test_generators_keep_optional_fields_optional_and_names_apart(
    document: dict[str, Any],
) -> None:
    """Generators require fields with a default, and confuse a class with a same-named field."""
    for name, field, schema in list_properties(document):
        assert "default" not in schema, (name, field)
        is_plain = schema.get("type") in ("string", "boolean", ["string", "null"])
        assert is_plain or field.replace("_", "") != name.lower(), (name, field)


def test_response_field_examples_match_their_schema(document: dict[str, Any]) -> None:
    registry = Registry([("urn:document", document)])
    count = 0
    for name, field, schema in list_properties(document):
        for example in schema.get("examples", []):
            count += 1
            key = msgspec.json.encode(schema).replace(b'"#/', b'"urn:document#/')
            validator = Draft202012Validator(
                msgspec.json.decode(key), registry=registry, validate_formats=True
            )
            assert validator.is_valid(example), (name, field)
    assert count > 500


def test_schema_names_are_plain_and_there_are_no_null_defaults(document: dict[str, Any]) -> None:
    names = document["components"]["schemas"]
    assert [name for name in names if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", name)] == []
    assert '"default":null' not in msgspec.json.encode(document).decode()


def test_classes_that_share_a_name_are_rejected() -> None:
    first = msgspec.defstruct("Same", ["a"], module="one")
    second = msgspec.defstruct("Same", ["b"], module="other")
    _, components = json_schema.build_components([first, second])
    with pytest.raises(TypeError, match="share a name"):
        json_schema.require_unique_names(components)


def test_operation_ids_are_unique_and_have_at_least_two_words(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in list_operations(document)]
    assert len(ids) == len(set(ids))
    found = [
        operation_id
        for operation_id in ids
        if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", operation_id)
    ]
    assert found == []
    assert [operation_id for operation_id in ids if "api_v1" in operation_id] == []
    endpoint = next(iter(ENDPOINT_GROUPS[0]))
    with pytest.raises(TypeError, match="share an operation id"):
        render_openapi_document(
            [endpoint, msgspec.structs.replace(endpoint, path="/another")], "SLE"
        )


def test_every_tag_is_described_and_the_introduction_covers_the_basics(
    document: dict[str, Any],
) -> None:
    assert all(tag["description"] for tag in document["tags"])
    introduction = document["info"]["description"]
    for heading in (
        "Authentication", "Money", "Idempotency", "Pagination", "Errors", "Rate limits",
        "Request IDs",
    ):  # fmt: skip
        assert f"## {heading}\n" in introduction


def test_every_example_matches_its_schema(inlined: dict[str, Any]) -> None:
    # Schemas refer to the document in a registry, so that its components are converted once.
    registry = Registry([("urn:document", inlined)])
    validators: dict[bytes, Draft202012Validator] = {}
    for name, location, media in list_media(inlined):
        examples = [item["value"] for item in media.get("examples", {}).values()]
        examples += [media["example"]] if "example" in media else []
        is_error = location == "default" or not location.startswith(("2", "503"))
        assert examples or not is_error or media["schema"].get("type") in ("string", "object"), (
            name,
            location,
        )
        key = msgspec.json.encode(media["schema"]).replace(b'"#/', b'"urn:document#/')
        if key not in validators:
            validators[key] = Draft202012Validator(
                msgspec.json.decode(key), registry=registry, validate_formats=True
            )
        for example in examples:
            validators[key].validate(example)


def test_idempotency_key_and_request_id_have_the_same_example(inlined: dict[str, Any]) -> None:
    header = inlined["components"]["parameters"]["IdempotencyKey"]["schema"]["examples"]
    bodies = [
        media["example"]["request_id"]
        for _, location, media in list_media(inlined)
        if location == "request" and "request_id" in media.get("example", {})
    ]
    assert len(bodies) > 10
    assert {*bodies, *header} == {IdempotencyKeyRule.example}


#: Values without a fixed list.
OPEN_ENUM_FIELDS = {
    ("Health", "service"),
    ("Violation", "code"),
    ("DeclineCount", "code"),
    ("TotpCode", "code"),
    ("OidcLogin", "code"),
    ("OidcStepUp", "code"),
    ("ApprovalRecord", "code"),
    ("LoggedRequest", "status"),  # HTTP status
    ("LoggedRequestDetails", "status"),
    ("SearchResult", "status"),  # of any type of record
    ("TimelineItem", "status"),
}


def test_states_and_types_are_enums(document: dict[str, Any]) -> None:
    enum_fields = {
        "status", "type", "channel", "severity", "category", "kyc_status", "agent_type", "code",
        "card_type", "document_type", "role", "direction", "risk_level", "action", "payer",
    }  # fmt: skip
    plain = [
        (name, field)
        for name, field, schema in list_properties(document)
        if field in enum_fields and (name, field) not in OPEN_ENUM_FIELDS
        if "$ref" not in str(schema) and "const" not in schema
    ]
    assert plain == []
    schemas = document["components"]["schemas"]
    assert schemas["SubscriberStatus"]["enum"] == ["ACTIVE", "BLOCKED", "CLOSED"]
    assert schemas["ErrorCode"]["enum"] == [str(code) for code in TABLE]
    assert schemas["WebhookEventType"]["enum"] == [*WEBHOOK_EVENT_TYPES, TEST_EVENT]


def test_times_dates_and_addresses_have_a_format(document: dict[str, Any]) -> None:
    formats = {"email": {"email"}, "date_of_birth": {"date"}, "url": {"uri"}}
    for name, field, schema in list_properties(document):
        if field.endswith(("_at", "_until")) or field == "as_of":
            # An empty string removes an API key's expiry.
            assert schema.get("format") == "date-time" or name == "ApiKeyChanges", (name, field)
        elif field in formats:
            assert schema.get("format") in formats[field], (name, field)


def test_files_have_exact_media_types(inlined: dict[str, Any]) -> None:
    def content(method: str, path: str) -> list[str]:
        return list(inlined["paths"][path][method]["responses"]["200"]["content"])

    file = "application/octet-stream"  # to clients that accept nothing else
    assert content("get", "/api/v1/statements/{token}") == [file, "text/csv", "application/pdf"]
    assert content("get", "/api/v1/transactions/export") == ["text/csv"]
    image = "/api/v1/subscribers/{id}/kyc-documents/{document_id}"
    assert content("get", image) == ["image/jpeg", "image/png", file]
    assert content("get", "/api/v1/admin/branding/logo") == ["image/png", file]
    assert content("get", "/metrics") == ["text/plain; version=0.0.4; charset=utf-8"]
    upload = inlined["paths"]["/api/v1/cards/upload-csv"]["post"]["requestBody"]["content"]
    assert list(upload) == ["text/csv", "multipart/form-data"]
    assert upload["multipart/form-data"]["schema"]["required"] == ["file"]
    assert upload["text/csv"]["example"].startswith("Serial No.,MAC Address,Expiry Date\n")


async def test_card_upload_example_is_accepted(harness: Harness, inlined: dict[str, Any]) -> None:
    path = "/api/v1/cards/upload-csv"
    content = inlined["paths"][path]["post"]["requestBody"]["content"]["text/csv"]
    sent = await harness.post(
        path,
        content=content["example"].encode(),
        headers={"Content-Type": "text/csv"},
        auth=await harness.create_admin("A"),
    )
    assert (sent.status_code, sent.json()["errors"]) == (200, [])
