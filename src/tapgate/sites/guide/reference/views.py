"""What a reference page shows: operations with rendered texts, fields and code."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from tapgate.sites.guide.markdown import (
    TAB_LABELS,
    ResolveLink,
    highlight_code,
    render,
    render_inline,
)
from tapgate.sites.guide.reference.curl import render_curl
from tapgate.sites.guide.reference.operations import Operation, Reference, get_page_name
from tapgate.sites.guide.reference.python import is_in_client, name_methods, render_python_example
from tapgate.sites.guide.reference.requests import build_example_request
from tapgate.sites.guide.reference.schemas import Field
from tapgate.sites.guide.reference.typescript import render_typescript

_ACCESS_PREFIXES: Final = ("Access: ", "Public.", "To set ")
_LIST_FIELDS: Final = {"data", "has_more", "next_cursor"}


class Sample(NamedTuple):
    language: str  # as in a fence of a Markdown document
    label: str
    html: Markup


class FieldView(NamedTuple):
    name: str
    type: Markup
    required: bool
    description: Markup
    example: str
    children: "list[FieldView]"


class FieldGroup(NamedTuple):
    title: str
    note: Markup
    fields: list[FieldView]


class OperationView(NamedTuple):
    summary: str
    anchor: str
    routes: tuple[tuple[str, str], ...]
    description: Markup
    access: Markup
    is_idempotent: bool
    parameters: list[FieldGroup]
    returns: Markup
    response_fields: list[FieldView]
    errors: list[tuple[str, str]]  # status and code
    samples: list[Sample]
    response: Markup | None
    status: str
    #: What the form to try the operation needs, as JSON. Empty if it cannot be tried.
    request: str


class ObjectView(NamedTuple):
    name: str
    anchor: str
    description: Markup
    fields: list[FieldView]
    example: Markup


class NavigationLink(NamedTuple):
    method: str
    title: str
    anchor: str


class TagLink(NamedTuple):
    name: str
    description: str
    page: str
    operations: list[NavigationLink]


def list_tags(reference: Reference) -> list[TagLink]:
    """Return the navigation: tags with their operations."""
    return [
        TagLink(
            tag,
            description,
            get_page_name(tag),
            [
                NavigationLink(operation.routes[0][0], operation.summary, anchor)
                for operation, anchor in reference.sections[tag]
            ],
        )
        for tag, description in reference.tags.items()
    ]


class PageBuilder:
    """Builds the contents of one tag's page."""

    def __init__(self, reference: Reference, tag: str, resolve: ResolveLink) -> None:
        self._sections = reference.sections[tag]
        self._schemas, self._objects = reference.list_objects(tag)
        self._resolve = resolve
        ids = [operation.id for operation, _ in self._sections]
        self._methods = name_methods(tag, filter(is_in_client, ids))

    def list_operations(self) -> list[OperationView]:
        return [self._build_operation(operation, anchor) for operation, anchor in self._sections]

    def build_first_operation(self) -> OperationView:
        return self._build_operation(*self._sections[0])

    def list_objects(self) -> list[ObjectView]:
        return [
            ObjectView(
                name,
                anchor,
                self._render(self._schemas.get_description(name)),
                self._list_fields(self._schemas.list_fields(name)),
                _render_json(self._schemas.build_example({"$ref": f"/{name}"})),
            )
            for name, anchor in self._objects.items()
        ]

    def _build_operation(self, operation: Operation, anchor: str) -> OperationView:
        paragraphs = str(operation.spec["description"]).split("\n\n")
        access = [text for text in paragraphs if text.startswith(_ACCESS_PREFIXES)]
        texts = [text for text in paragraphs if text not in access]
        returns, response_fields = self._describe_response(operation)
        return OperationView(
            summary=operation.summary,
            anchor=anchor,
            routes=operation.routes,
            description=self._render("\n\n".join(texts)),
            access=self._render("\n\n".join(access)),
            is_idempotent=operation.is_idempotent,
            parameters=list(self._list_parameters(operation)),
            returns=returns,
            response_fields=response_fields,
            errors=[(status, code) for status, codes in operation.list_errors() for code in codes],
            samples=list(self._list_samples(operation)),
            response=self._render_response(operation),
            status=operation.success_status,
            request=_describe_request(operation),
        )

    def _list_parameters(self, operation: Operation) -> Iterator[FieldGroup]:
        for location, title in (("path", "Path parameters"), ("query", "Query parameters")):
            parameters = map(self._schemas.build_parameter, operation.list_parameters(location))
            if fields := self._list_fields(parameters):
                yield FieldGroup(title, Markup(), fields)
        media = operation.body_media
        if not media:
            return
        names = [] if operation.body is None else self._schemas.list_names(operation.body)
        notes = [str(operation.spec["requestBody"].get("description", ""))]
        if list(media) != ["application/json"]:
            notes.insert(0, " or ".join(f"`{kind}`" for kind in media))
        if not names:
            notes.append("The content of a file")
        note = ". ".join(filter(None, notes))
        found = (field for name in names for field in self._schemas.list_fields(name))
        yield FieldGroup("Body parameters", self._inline(note), self._list_fields(found))

    def _describe_response(self, operation: Operation) -> tuple[Markup, list[FieldView]]:
        """Return what an operation returns in words, and the fields of the response."""
        if operation.response is None:
            return Markup("No body."), []
        names = self._schemas.list_names(operation.response)
        if not names:
            kinds = " or ".join(f"`{kind}`" for kind in operation.success_response["content"])
            return self._inline(f"A file: {kinds}."), []
        described = [name for name in names if name not in self._schemas.links]
        text = f"{self._schemas.render_type(operation.response)}."
        fields = [field for name in described for field in self._schemas.list_fields(name)]
        return self._inline("" if text == "object." else text), self._list_fields(fields)

    def _list_samples(self, operation: Operation) -> Iterator[Sample]:
        request = build_example_request(operation)
        yield build_sample("sh", render_curl(operation, request))
        python = render_python_example(operation, self._methods)
        if python is not None:
            yield build_sample("python", python)
            is_list = self._get_response_names(operation) >= _LIST_FIELDS
            yield build_sample("ts", render_typescript(operation, request, is_list=is_list))

    def _get_response_names(self, operation: Operation) -> set[str]:
        response = operation.response or {}
        return set(self._schemas.build_example(response) or ()) if "$ref" in response else set()

    def _render_response(self, operation: Operation) -> Markup | None:
        content = operation.success_response.get("content", {}).get("application/json")
        if content is None:
            return None
        example = content.get("example", self._schemas.build_example(content["schema"]))
        return _render_json(example)

    def _list_fields(self, fields: Iterable[Field]) -> list[FieldView]:
        return [
            FieldView(
                field.name,
                self._inline(field.type.removesuffix(" or null")),
                field.required,
                self._inline(field.rule),
                _format_example(field.example),
                self._list_fields(field.children),
            )
            for field in fields
        ]

    def _render(self, text: str) -> Markup:
        return Markup(render(text, self._resolve).html)  # noqa: S704 - the renderer escapes text

    def _inline(self, text: str) -> Markup:
        text = text[:1].upper() + text[1:] if text.startswith("each ") else text
        return Markup(render_inline(text, self._resolve))  # noqa: S704 - the renderer escapes text


def build_sample(language: str, code: str) -> Sample:
    return Sample(language, TAB_LABELS[language], Markup(highlight_code(code, language)))  # noqa: S704


def _render_json(value: Any) -> Markup:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return Markup(highlight_code(text, "json"))  # noqa: S704 - the renderer escapes text


def _format_example(value: Any) -> str:
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, list):
        return ", ".join(str(item) for item in value if not isinstance(item, dict))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe_request(operation: Operation) -> str:
    media = operation.body_media
    if media and operation.body_example is None:
        return ""  # a file
    method, path = operation.routes[0]
    described = {
        "method": method,
        "path": path,
        "schemes": operation.list_schemes(),
        "parameters": [
            {
                "name": item["name"],
                "in": item["in"],
                "required": item.get("required", False),
                "example": _format_example((item["schema"].get("examples") or [None])[0]),
            }
            for item in operation.spec["parameters"]
            if item.get("in") in ("path", "query")
        ],
        "body": operation.body_example,
        "isIdempotent": operation.is_idempotent,
    }
    return json.dumps(described, ensure_ascii=False)
