"""Renders one API operation as a page section."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tapgate_client.errors import TABLE, Code
from tools.manual.curl import render_curl
from tools.manual.markdown import format_code, format_code_block, format_link, format_table
from tools.manual.schemas import Field, Schema, Schemas

_IDEMPOTENCY_HEADER = "Idempotency-Key"
#: Key for the response with the errors that most operations have.
DEFAULT_RESPONSE = "default"
_ERRORS_PAGE = "../errors.md"
_IDEMPOTENCY_NOTE = (
    "Idempotent with `request_id` or the `Idempotency-Key` header: see"
    " [Idempotency](README.md#idempotency)."
)


class Operation(NamedTuple):
    """API operation. Routes whose specs differ only in `operationId` form one operation."""

    routes: tuple[tuple[str, str], ...]  # method and path
    spec: dict[str, Any]

    @property
    def summary(self) -> str:
        return str(self.spec["summary"])

    @property
    def body(self) -> Schema | None:
        """Return the request body's schema, or None if there is no body or no schema."""
        content = self.spec.get("requestBody", {}).get("content", {})
        return next((item["schema"] for item in content.values() if "schema" in item), None)

    @property
    def response(self) -> Schema | None:
        """Return the success response's schema, or None if it has no body."""
        content = self._success_response.get("content", {})
        return next((item["schema"] for item in content.values()), None)

    @property
    def _success_response(self) -> dict[str, Any]:
        success: dict[str, Any] = self.spec["responses"][self._success_status]
        return success

    @property
    def _success_status(self) -> str:
        return str(next(iter(self.spec["responses"])))

    def render_section(self, schemas: Schemas) -> Iterator[str]:
        """Yield the blocks below the heading."""
        yield "\\\n".join(format_code(f"{method} {path}") for method, path in self.routes)
        yield self.spec["description"]
        if any(item["name"] == _IDEMPOTENCY_HEADER for item in self.spec["parameters"]):
            yield _IDEMPOTENCY_NOTE
        for location in ("path", "query"):
            fields = [
                schemas.build_parameter(item)
                for item in self.spec["parameters"]
                if item.get("in") == location
            ]
            if fields:
                yield f"**{location.capitalize()}**"
                yield render_request_fields(fields)
        yield from self._render_body(schemas)
        yield "**Example**"
        yield format_code_block(render_curl(*self.routes[0], self.spec), "sh")
        yield from self._render_response(schemas)
        yield from self._render_errors()

    def _render_body(self, schemas: Schemas) -> Iterator[str]:
        if "requestBody" not in self.spec:
            return
        media = self.spec["requestBody"]["content"]
        limit = str(self.spec["requestBody"].get("description", ""))
        limit_note = f", {limit[0].lower()}{limit[1:]}" if limit else ""
        names = [] if self.body is None else schemas.list_names(self.body)
        kinds = (
            ""
            if list(media) == ["application/json"]
            else f" ({' or '.join(map(format_code, media))})"
        )
        yield f"**Body**{kinds}{limit_note}"
        if not names:
            yield "The content of a file."
        for name in names:
            yield render_request_fields(schemas.list_fields(name))

    def _render_response(self, schemas: Schemas) -> Iterator[str]:
        yield f"**Response** {self._success_status}"
        if self.response is None:
            yield "No body."
            return
        names = schemas.list_names(self.response)
        if not names:
            yield f"{' or '.join(map(format_code, self._success_response['content']))}."
        elif "$ref" not in self.response or names[0] in schemas.links:
            yield f"{schemas.render_type(self.response)}."
        for name in names:
            if name not in schemas.links:
                yield render_response_fields(schemas.list_fields(name))

    def _render_errors(self) -> Iterator[str]:
        errors = [
            (status, _render_codes(response))
            for status, response in self.spec["responses"].items()
            if status not in (self._success_status, DEFAULT_RESPONSE)
        ]
        general = [
            f"{TABLE[Code(code)][0]} {_link_code(code)}"
            for code in list_codes(self.spec["responses"].get(DEFAULT_RESPONSE, {}))
        ]
        yield "**Errors**"
        if errors:
            yield format_table(("Status", "Codes"), errors)
        yield f"Common errors: {', '.join(general)}."


def _render_codes(response: dict[str, Any]) -> str:
    """Return links to a response's error codes.

    A status without codes has the same body as the success response.
    """
    return ", ".join(map(_link_code, list_codes(response))) or "same body as above"


def list_codes(response: dict[str, Any]) -> list[str]:
    content: dict[str, Any] = next(iter(response.get("content", {}).values()), {})
    return list(content.get("examples", ()))


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
