"""The description of the interface in OpenAPI 3.1, made of the table of routes alone."""

import inspect
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from tapgate import VERSION
from tapgate.messenger.routes.access import SECURITY_SCHEMES
from tapgate.messenger.routes.route import JSON, ErrorBody, Route

_TEXT: Final = "text/plain"
_REF: Final = "#/components/schemas/{name}"
#: What the provider's own protocol gives a meaning to.
_OWN_WORDS: Final = {
    421: "It cannot be decrypted",
    427: "The form can no longer be used",
    432: "The signature is wrong",
}


def described(routes: Sequence[Route]) -> bytes:
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tapgate messenger",
            "version": VERSION,
            "summary": "Wallets and cards in a conversation",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": SECURITY_SCHEMES,
            "parameters": {"RequestId": _REQUEST_ID},
            "headers": {
                "X-Request-ID": {"description": "The request's id", "schema": {"type": "string"}}
            },
        },
    }
    return msgspec.json.encode(document)


class _Schemas:
    """The schemas of all structs that routes take and give."""

    def __init__(self, routes: Sequence[Route]) -> None:
        named = [ErrorBody]
        for route in routes:
            named += [one for one in (route.body, *route.answers.values()) if _is_struct(one)]
        structs = list(dict.fromkeys(named))
        shown, self.components = msgspec.json.schema_components(structs, ref_template=_REF)
        self._of = dict(zip(structs, shown, strict=True))

    def content(self, kind: Any) -> dict[str, Any]:
        """What is sent, by its media type."""
        if kind is str:
            return {_TEXT: {"schema": {"type": "string"}}}
        if isinstance(kind, Mapping):
            return {JSON: {"schema": kind}}
        content: dict[str, Any] = {"schema": self._of[ErrorBody if kind is None else kind]}
        if hasattr(kind, "EXAMPLE"):
            content["example"] = kind.EXAMPLE
        return {JSON: content}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    summary, _, more = inspect.cleandoc(route.handler.__doc__ or "").partition("\n")
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": summary,
        "description": "\n\n".join(filter(None, [more.strip(), route.access.sentence])),
        "security": [{name: [] for name in choice} for choice in route.access.security],
        "parameters": [{"$ref": "#/components/parameters/RequestId"}, *_parameters(route)],
        "responses": _responses(route, schemas),
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": schemas.content(route.body)}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "in": one.place,
            "description": one.sentence,
            "required": one.required,
            "schema": one.schema,
        }
        for one in route.parameters
    ]


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    answers = {**_refusals(route), **route.answers}
    return {
        str(status): {
            "description": _words(status),
            "headers": {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}},
            "content": schemas.content(kind),
        }
        for status, kind in sorted(answers.items())
    }


def _refusals(route: Route) -> dict[int, Any]:
    """What follows from a route's declaration."""
    taking = (400, 413) if route.body is not None else ()
    return dict.fromkeys((*taking, *route.access.refusals, 429, 500, 503))


def _words(status: int) -> str:
    return _OWN_WORDS.get(status) or HTTPStatus(status).phrase


_REQUEST_ID: Final = {
    "name": "X-Request-ID",
    "in": "header",
    "description": "For tracing; echoed in the answer, or made when absent",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
}
