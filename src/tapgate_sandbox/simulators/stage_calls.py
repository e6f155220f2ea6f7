"""API calls of the stage's acts, as code in several languages."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from tapgate.server.gateway import build_openapi_document
from tapgate.sites.guide.reference.curl import render_curl
from tapgate.sites.guide.reference.operations import Operation, Reference, get_page_name
from tapgate.sites.guide.reference.python import is_in_client, name_methods, render_python_call
from tapgate.sites.guide.reference.requests import ExampleRequest
from tapgate.sites.guide.reference.typescript import render_typescript

_MASKED_PIN: Final = "••••"
#: Operations that people use on the stage.
OPERATIONS: Final = frozenset(
    {
        "/api/v1/pos/payment",
        "/api/v1/pos/refund",
        "/api/v1/pos/verify-card",
        "/api/v1/pos/lookup-card",
        "/api/v1/wallet/transfer-p2p",
    }
)


class Call(msgspec.Struct, frozen=True):
    """A request of the stage. `samples` are the code by language."""

    method: str
    path: str
    page: str  # in the API reference
    samples: dict[str, str]


@cache
def _load_operations() -> Mapping[str, tuple[Operation, Mapping[str, str], str]]:
    """Return the operations by path, with the client methods of their tag and their page."""
    reference = Reference(build_openapi_document())
    found = {}
    for tag, sections in reference.sections.items():
        methods = name_methods(tag, [item.id for item, _ in sections if is_in_client(item.id)])
        for operation, anchor in sections:
            for _, path in operation.routes:
                if path in OPERATIONS:
                    page = f"/guide/api/{get_page_name(tag)}#{anchor}"
                    found[path] = operation, methods, page
    return found


def render_call(path: str, body: Mapping[str, Any]) -> Call | None:
    """Return a call with the values of a request, and the PIN masked; None if it is unknown."""
    if path not in OPERATIONS:
        return None
    operation, methods, page = _load_operations()[path]
    given = {name: value for name, value in body.items() if value is not None}
    values = given | ({"pin": _MASKED_PIN} if "pin" in given else {})
    request = ExampleRequest("POST", path, {}, {}, values)
    samples = {
        "sh": render_curl(operation, request),
        "python": render_python_call(operation, methods, request),
        "ts": render_typescript(operation, request, is_list=False),
    }
    return Call("POST", path, page, samples)
