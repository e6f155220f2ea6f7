"""docs/api matches the endpoint declarations, and its examples are valid."""

import json
import shlex
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cases import each
from tapgate.http.api.access import Access
from tapgate.http.api.openapi import render_openapi_document
from tapgate.http.api.request_context import RequestContext
from tapgate.http.decoding import BodyDecoder
from tapgate.http.endpoint import Endpoint, Endpoints, Reply
from tapgate.http.openapi_components import inline_shared_parts
from tapgate.server.gateway import ENDPOINT_GROUPS, build_openapi_document
from tapgate.sites.guide.reference.pages import OPERATIONS_HEADING
from tapgate_client.errors import Code
from tapgate_client.schemas.fields import Text
from tools.manual.pages import INDEX_FILE, render_pages, write_pages
from tools.manual.postman import build_collection
from tools.manual.python_client import render_modules
from tools.manual.typescript import render_operations, render_schemas

ROOT = Path(__file__).parents[2]
API_DOCS_DIR = ROOT / "docs" / "api"
ENDPOINTS = list(chain.from_iterable(ENDPOINT_GROUPS))
WITH_BODY = [endpoint for endpoint in ENDPOINTS if endpoint.body_type not in (None, bytes)]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return build_openapi_document()


@pytest.fixture(scope="module")
def rendered_pages(document: dict[str, Any]) -> dict[str, str]:
    return render_pages(document, (API_DOCS_DIR / INDEX_FILE).read_text())


def test_api_pages_are_up_to_date(rendered_pages: dict[str, str]) -> None:
    files = {file.name: file.read_text() for file in API_DOCS_DIR.glob("*.md")}
    stale = sorted(
        name for name in files | rendered_pages if files.get(name) != rendered_pages.get(name)
    )
    assert not stale, f"docs/api is not up to date ({', '.join(stale)}): run make docs"


def test_python_client_is_up_to_date(document: dict[str, Any]) -> None:
    folder = ROOT / "clients" / "python" / "src" / "tapgate_client" / "operations"
    modules = {file.name: file.read_text() for file in folder.glob("*.py")}
    assert modules == render_modules(inline_shared_parts(document)), "run make docs"


def test_typescript_client_and_postman_collection_are_up_to_date(document: dict[str, Any]) -> None:
    source = ROOT / "clients" / "typescript" / "src"
    assert (source / "schemas.ts").read_text() == render_schemas(document), "run make docs"
    assert (source / "operations.ts").read_text() == render_operations(document), "run make docs"
    collection = ROOT / "docs" / "postman" / "tapgate.postman_collection.json"
    assert json.loads(collection.read_text()) == build_collection(document), "run make docs"


@each("endpoint", ENDPOINTS)
def test_every_operation_is_in_the_index_and_on_its_page(
    rendered_pages: dict[str, str], endpoint: Endpoint
) -> None:
    assert f"| `{endpoint.name}` | [{endpoint.summary}](" in rendered_pages[INDEX_FILE]
    page = rendered_pages[endpoint.tag.lower().replace(" ", "-") + ".md"]
    assert f"`{endpoint.name}`" in page
    for code in endpoint.errors:
        assert f"[`{code}`](../errors.md#{code.lower()})" in page


@each("endpoint", ENDPOINTS)
def test_every_operation_has_a_summary(endpoint: Endpoint) -> None:
    name = endpoint.handler.__qualname__
    assert endpoint.summary, f"{name} needs a docstring: docs/api has its first line as a heading"


@each("endpoint", WITH_BODY)
def test_every_request_example_passes_validation(
    document: dict[str, Any], endpoint: Endpoint
) -> None:
    operation = inline_shared_parts(document)["paths"][endpoint.path][endpoint.method.lower()]
    (example, *_) = (item["example"] for item in operation["requestBody"]["content"].values())
    # If this raises, the `example` of a field's rule is invalid, or the field must declare an
    # `Example`.
    BodyDecoder(endpoint.body_type, "SLE").decode(json.dumps(example).encode())
    declared: dict[str, Any] = getattr(endpoint.body_type, "EXAMPLES", {})
    assert example | declared == example


example_endpoints = Endpoints("Examples")


class ExampleBody(msgspec.Struct):
    """A part of something."""

    label: Text
    enabled: bool = False


class ExampleResponse(msgspec.Struct):
    part: ExampleBody


@example_endpoints.post("/pay", access=Access(hmac="pos"), operation_id="pay_alias")
@example_endpoints.post("/api/v1/pay", access=Access(hmac="pos"))
async def pay(request: RequestContext, body: ExampleBody) -> ExampleResponse:
    """Pay."""
    raise NotImplementedError


@example_endpoints.post("/fund", access=Access(scope="payments:write", roles="A", hmac="partner"))
async def fund(request: RequestContext, body: ExampleBody) -> ExampleResponse:
    """Fund."""
    raise NotImplementedError


@example_endpoints.get("/subscribers/{id}", access=Access(service=True))
async def get_example(request: RequestContext, id: str) -> ExampleResponse:
    """Look."""
    raise NotImplementedError


@example_endpoints.post(
    "/upload", access=Access(roles="A"), body_media=("multipart/form-data", "text/csv"), status=201
)
async def upload(request: RequestContext, body: bytes) -> Reply[bytes]:
    """Upload."""
    raise NotImplementedError


@example_endpoints.put("/parts", access=Access(scope="parts:write"))
async def put_parts(request: RequestContext, body: ExampleBody) -> list[ExampleBody]:
    """Put | parts."""
    raise NotImplementedError


@example_endpoints.delete("/parts", access=Access(public=True))
async def delete_parts(request: RequestContext) -> None:
    """Delete."""
    raise NotImplementedError


@pytest.fixture(scope="module")
def page() -> str:
    return render_pages(json.loads(render_openapi_document(list(example_endpoints), "SLE")), "")[
        "examples.md"
    ]


def find_section(page: str, heading: str) -> str:
    return page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def find_example(page: str, heading: str) -> str:
    return find_section(page, heading).split("```sh\n", 1)[1].split("\n```", 1)[0]


@pytest.mark.parametrize(
    ("heading", "credential"),
    [
        ("Pay", '$(tapgate sign pos POST /api/v1/pay -d "$BODY" --key-id $KEY_ID'),
        ("Fund", '$(tapgate sign partner POST /fund -d "$BODY" --key-id $KEY_ID'),
        ("Look", "$(tapgate sign service GET /subscribers/sub_0800000000000)"),
        ("Upload", '-H "Authorization: Bearer $TOKEN"'),
        ("Put | parts", '-H "Authorization: Bearer $KEY"'),
    ],
)
def test_example_uses_a_credential_that_the_operation_accepts(
    page: str, heading: str, credential: str
) -> None:
    assert credential in find_example(page, heading)


def test_examples_are_valid_shell_commands(page: str) -> None:
    arguments = shlex.split(find_example(page, "Put | parts"))
    assert arguments[:5] == ["curl", "-s", "-X", "PUT", "$TAPGATE/parts"]
    assert json.loads(arguments[arguments.index("-d") + 1]) == {"label": "text", "enabled": True}
    assert find_example(page, "Delete") == "curl -s -X DELETE $TAPGATE/parts"
    assert shlex.split(find_example(page, "Upload"))[-2:] == ["-F", "file=@FILE"]
    body = shlex.split(find_example(page, "Pay").partition("\n")[0])
    assert json.loads(body[0].removeprefix("BODY=")) == {"label": "text", "enabled": True}


def test_operation_with_two_paths_is_documented_once(page: str) -> None:
    assert page.count("\n## Pay\n") == 1
    assert "`POST /api/v1/pay`\\\n`POST /pay`" in find_section(page, "Pay")
    assert "| `POST /pay` | [Pay](#pay) |" in page


def test_fields_show_their_type_and_rule(page: str) -> None:
    assert "| `label` | string | yes | 1 to 255 characters | `text` |" in find_section(page, "Fund")
    assert "| `enabled` | boolean | no | Default: `false` | `true` |" in find_section(page, "Fund")


def test_shared_response_type_is_documented_once(page: str) -> None:
    assert "| `part` | [ExampleBody](#examplebody) |" in find_section(page, "Look")
    assert "\narray of [ExampleBody](#examplebody).\n" in find_section(page, "Put | parts")
    assert find_section(page, "ExampleBody").startswith("\nA part of something.\n")
    assert "| `label` | string |" in find_section(page, "ExampleBody")


def test_non_json_bodies_are_described(page: str) -> None:
    upload = find_section(page, "Upload")
    assert "**Body** (`multipart/form-data` or `text/csv`)\n\nThe content of a file." in upload
    assert "**Response** 204\n\nNo body." in find_section(page, "Delete")


def test_handwritten_part_of_the_index_is_kept(
    document: dict[str, Any], rendered_pages: dict[str, str]
) -> None:
    index = render_pages(document, "# Mine\n\nWords.\n\n## Operations\n\nstale\n")[INDEX_FILE]
    assert index.startswith("# Mine\n\nWords.\n\n## Operations\n")
    assert "stale" not in index
    assert index.endswith(rendered_pages[INDEX_FILE].split(OPERATIONS_HEADING, 1)[1])


def test_only_missing_stale_and_obsolete_pages_are_changed(tmp_path: Path) -> None:
    assert len(write_pages(tmp_path)) > 5
    assert write_pages(tmp_path) == []
    (tmp_path / "gone.md").write_text("page of a removed endpoint")
    (tmp_path / "audit.md").write_text("stale")
    assert write_pages(tmp_path) == [tmp_path / "audit.md", tmp_path / "gone.md"]
    assert not (tmp_path / "gone.md").exists()
    assert Code.UNAUTHORIZED in (tmp_path / "audit.md").read_text()
