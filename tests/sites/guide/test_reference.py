"""The API reference shows the operations of the running gateway, with code in three languages."""

import ast
import json
import re
import shlex
from html import unescape
from typing import Any, Final

import httpx2
import msgspec
import pytest
from jsonschema import Draft202012Validator

from builders.http_apps import run_edge_app
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.http.api.app import App
from tapgate.server.gateway import build_openapi_document, create_app
from tapgate.sites.guide.reference.curl import render_curl
from tapgate.sites.guide.reference.operations import Operation, Reference, get_page_name
from tapgate.sites.guide.reference.python import (
    OMITTED,
    name_methods,
    render_python_call,
    render_python_example,
)
from tapgate.sites.guide.reference.requests import ExampleRequest, build_example_request
from tapgate.sites.guide.reference.typescript import render_typescript
from tapgate.sites.guide.reference.views import PageBuilder
from tapgate.sites.guide.site import GuideSite, ReferenceSource
from tapgate_client import TapgateClient

DOCUMENT: Final = build_openapi_document()
REFERENCE: Final = Reference(DOCUMENT)
OPERATIONS: Final = [
    operation for sections in REFERENCE.sections.values() for operation, _ in sections
]
#: The first page that a reader opens, without compression, in bytes.
MAX_PAGE_BYTES: Final = 200_000
TAG: Final = re.compile(r"<[^>]+>")


def find_operation(operation_id: str) -> Operation:
    return next(item for item in OPERATIONS if item.id == operation_id)


def get_methods(operation: Operation) -> dict[str, str]:
    ids = [item.id for item, _ in REFERENCE.sections[operation.tag] if item.id not in OMITTED]
    return name_methods(operation.tag, ids)


def render_page(slug: str) -> str:
    source = ReferenceSource(msgspec.json.encode(DOCUMENT), has_sandbox=False)
    body = GuideSite().build_reply(slug, source).body
    assert isinstance(body, bytes)
    return body.decode()


@pytest.fixture(scope="module")
def pos_page() -> str:
    return render_page("api/pos")


async def test_pages_show_the_operations_of_the_running_gateway(harness: Harness) -> None:
    app: App = create_app(harness.services)
    transport = AppTransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        page = await client.get("/guide/api/pos")
        assert page.status_code == 200
        assert len(page.content) < MAX_PAGE_BYTES
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert "Take a payment by card" in page.text
        assert '<template id="sandbox">' in page.text  # the tests run in development
        cached = await client.get("/guide/api/pos", headers={"If-None-Match": page.headers["etag"]})
        assert cached.status_code == 304
        introduction = await client.get("/guide/api")
        assert len(introduction.content) < MAX_PAGE_BYTES
        redirect = await client.get("/docs")
        assert (redirect.status_code, redirect.headers["location"]) == (303, "/guide/api")
        assert (await client.post("/docs")).status_code == 405
        assert (await client.get("/docs/index.html")).status_code == 404


async def test_gateway_without_the_operations_shows_the_document(tmp_path: Any) -> None:
    async with run_edge_app(tmp_path, [GuideSite()]) as gateway:
        page = await gateway.client.get("/guide/api")
        assert page.status_code == 200
        assert "Things" in page.text and "Take a payment by card" not in page.text


@pytest.mark.parametrize("tag", list(REFERENCE.tags))
def test_page_has_every_operation_without_inline_code(tag: str) -> None:
    page = render_page(f"api/{get_page_name(tag)}")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! (?:type=\"module\" )?src=)", page)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for operation, anchor in REFERENCE.sections[tag]:
        assert f'id="{anchor}"' in page
        for _, path in operation.routes:
            assert f"<code>{path}</code>" in page
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert unescape(anchor) in [*map(unescape, ids), "main"], anchor


@pytest.mark.parametrize("tag", list(REFERENCE.tags))
def test_example_responses_match_their_schemas(tag: str) -> None:
    schemas, _ = REFERENCE.list_objects(tag)
    components = DOCUMENT["components"]
    for operation, _ in REFERENCE.sections[tag]:
        if operation.response is None or "$ref" not in operation.response:
            continue
        example = schemas.build_example(operation.response)
        schema = {**operation.response, "components": components}
        errors = [error.message for error in Draft202012Validator(schema).iter_errors(example)]
        assert not errors, (operation.id, errors[:3])


def test_client_examples_name_methods_that_exist() -> None:
    client = TapgateClient("http://127.0.0.1:1")
    for operation in OPERATIONS:
        if operation.id in OMITTED:
            continue
        code = render_python_example(operation, get_methods(operation))
        assert code is not None, operation.id
        for call in re.findall(r"client\.(\w+)\.(\w+)\(", code):
            assert callable(getattr(getattr(client, call[0]), call[1])), operation.id


def test_every_example_is_valid_code() -> None:
    for operation in OPERATIONS:
        request = build_example_request(operation)
        shlex.split(render_curl(operation, request))
        code = render_python_example(operation, get_methods(operation))
        if code is not None:
            ast.parse(code)


def test_values_are_written_in_each_language() -> None:
    operation = find_operation("pay_at_terminal")
    body = {"card_serial": "DEMO-000001", "amount": "5.00", "metadata": {"order-id": None}}
    request = ExampleRequest("POST", "/api/v1/pos/payment", {}, {}, body)
    assert '-d "$BODY" --key-id $KEY_ID --secret $SECRET)' in render_curl(operation, request)
    python = render_python_call(operation, get_methods(operation), request)
    expected = (
        "from tapgate_client import PosKey, TapgateClient\n\n"
        "client = TapgateClient(url, PosKey(key_id, secret))\n"
        'client.pos.pay(\n    card_serial="DEMO-000001",\n    amount="5.00",\n'
        "    metadata={'order-id': None},\n)"
    )
    assert python == expected
    typescript = render_typescript(operation, request, is_list=False)
    assert 'import { TapgateClient, posKey } from "tapgate";' in typescript
    assert "const result = await client.payAtTerminal({" in typescript
    assert 'metadata: { "order-id": null },' in typescript


def test_lists_are_iterated(pos_page: str) -> None:
    page = TAG.sub("", render_page("api/transactions"))
    assert "for record in client.transactions.list(" in unescape(page)
    assert "for await (const record of client.listTransactions(" in unescape(page)
    assert "for await" not in TAG.sub("", pos_page)


def test_fields_have_their_type_rule_and_children(pos_page: str) -> None:
    text = " ".join(unescape(TAG.sub(" ", pos_page)).split())
    assert "amount string Required Decimal amount in major units Example: 500.00" in text
    assert 'href="#cardproof"' in pos_page  # an object that several operations use
    builder = PageBuilder(REFERENCE, "Transactions", lambda link: link)
    fields = builder.list_operations()[0].response_fields
    data = next(field for field in fields if field.name == "data")
    assert "id" in [child.name for child in data.children] or "TransactionRecord" in data.type


def test_request_to_try_names_credentials_parameters_and_a_valid_body(pos_page: str) -> None:
    requests = [
        json.loads(unescape(text)) for text in re.findall(r'data-request="([^"]+)"', pos_page)
    ]
    payment = next(item for item in requests if item["path"] == "/api/v1/pos/payment")
    assert payment["schemes"] == ["posSignature"]
    assert payment["isIdempotent"]
    assert payment["body"]["card_serial"] == "TAP-000001"
    lookup = next(item for item in requests if "{request_id}" in item["path"])
    assert lookup["parameters"][0]["in"] == "path" and lookup["parameters"][0]["example"]
    upload = find_operation("upload_cards")
    page = unescape(render_page("api/cards"))
    assert f'"path": "{upload.routes[0][1]}"' not in page  # a file cannot be tried


def test_previous_and_next_follow_the_navigation(pos_page: str) -> None:
    tags = list(REFERENCE.tags)
    place = tags.index("POS")
    neighbors = pos_page.split('aria-label="Previous and next document"', 1)[1]
    links = re.findall(r'href="/guide/api/([^"]+)"', neighbors)
    assert links == [get_page_name(tags[place - 1]), get_page_name(tags[place + 1])]


def test_readers_are_not_led_to_the_decisions() -> None:
    documents = GuideSite().contents.documents
    assert documents[-1].section == "Decisions"
    last_guide = next(
        item for item in reversed(documents) if item.section not in ("Decisions", "API reference")
    )
    page = GuideSite().build_reply(last_guide.slug).body.decode()
    neighbors = page.split('aria-label="Previous and next document"', 1)[1]
    assert "/guide/decisions/" not in neighbors.split("</nav>", 1)[0]
