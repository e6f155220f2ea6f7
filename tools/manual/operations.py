"""Renders one API operation as a section of a Markdown page."""

from collections.abc import Iterable, Iterator
from typing import Any

from tapgate.sites.guide.reference.curl import render_curl
from tapgate.sites.guide.reference.operations import Operation
from tapgate.sites.guide.reference.requests import build_example_request
from tapgate.sites.guide.reference.schemas import Field, Schemas, flatten_fields, format_code
from tapgate_client.errors import TABLE, Code
from tools.manual.markdown import format_code_block, format_link, format_table

_ERRORS_PAGE = "../errors.md"
_IDEMPOTENCY_NOTE = (
    "Idempotent with `request_id` or the `Idempotency-Key` header: see"
    " [Idempotency](README.md#idempotency)."
)


def render_section(operation: Operation, schemas: Schemas) -> Iterator[str]:
    """Yield the blocks below the heading."""
    yield "\\\n".join(format_code(f"{method} {path}") for method, path in operation.routes)
    yield operation.spec["description"]
    if operation.is_idempotent:
        yield _IDEMPOTENCY_NOTE
    for location in ("path", "query"):
        fields = [schemas.build_parameter(item) for item in operation.list_parameters(location)]
        if fields:
            yield f"**{location.capitalize()}**"
            yield render_request_fields(fields)
    yield from _render_body(operation, schemas)
    yield "**Example**"
    yield format_code_block(render_curl(operation, build_example_request(operation)), "sh")
    yield from _render_response(operation, schemas)
    yield from _render_errors(operation)


def _render_body(operation: Operation, schemas: Schemas) -> Iterator[str]:
    media = operation.body_media
    if not media:
        return
    limit = str(operation.spec["requestBody"].get("description", ""))
    limit_note = f", {limit[0].lower()}{limit[1:]}" if limit else ""
    names = [] if operation.body is None else schemas.list_names(operation.body)
    kinds = (
        "" if list(media) == ["application/json"] else f" ({' or '.join(map(format_code, media))})"
    )
    yield f"**Body**{kinds}{limit_note}"
    if not names:
        yield "The content of a file."
    for name in names:
        yield render_request_fields(flatten_fields(schemas.list_fields(name)))


def _render_response(operation: Operation, schemas: Schemas) -> Iterator[str]:
    yield f"**Response** {operation.success_status}"
    if operation.response is None:
        yield "No body."
        return
    names = schemas.list_names(operation.response)
    if not names:
        yield f"{' or '.join(map(format_code, operation.success_response['content']))}."
    elif "$ref" not in operation.response or names[0] in schemas.links:
        yield f"{schemas.render_type(operation.response)}."
    for name in names:
        if name not in schemas.links:
            yield render_response_fields(flatten_fields(schemas.list_fields(name)))


def _render_errors(operation: Operation) -> Iterator[str]:
    # A status without codes has the same body as the success response.
    errors = [
        (status, ", ".join(map(_link_code, codes)) or "same body as above")
        for status, codes in operation.list_errors()
    ]
    general = [
        f"{TABLE[Code(code)][0]} {_link_code(code)}" for code in operation.list_common_errors()
    ]
    yield "**Errors**"
    if errors:
        yield format_table(("Status", "Codes"), errors)
    yield f"Common errors: {', '.join(general)}."


def _link_code(name: str) -> str:
    return format_link(format_code(name), f"{_ERRORS_PAGE}#{name.lower()}")


def render_request_fields(fields: Iterable[Field]) -> str:
    return format_table(
        ("Field", "Type", "Required", "Description", "Example"),
        [
            (
                format_code(field.name),
                field.type.removesuffix(" or null"),  # in requests, null is equivalent to absent
                "yes" if field.required else "no",
                field.rule,
                "" if field.example is None else _render_example(field.example),
            )
            for field in fields
        ],
    )


def render_response_fields(fields: Iterable[Field]) -> str:
    return format_table(
        ("Field", "Type"),
        [
            (
                format_code(field.name),
                f"{field.type}, {field.rule}" if field.is_choice else field.type,
            )
            for field in fields
        ],
    )


def _render_example(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(format_code(item) for item in value if not isinstance(item, dict))
    if isinstance(value, dict):
        return ""
    return format_code(value)
