"""Python examples: the example in the docstring of the client's method, or a call with values."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from tapgate.sites.guide.reference.operations import Operation, to_snake_case
from tapgate.sites.guide.reference.requests import ExampleRequest

#: Endpoints for tools and for people, and one that signs its body: `partner_webhooks.py`.
OMITTED: Final = frozenset("get_openapi_document get_metrics receive_partner_webhook".split())
#: The noun that operation IDs have for a tag, if it is not the tag itself.
_NOUNS: Final = {"POS": "terminal", "In-app payments": "in_app", "Batches": "batch"}
_PREPOSITIONS: Final = "at|from|in|of|out|to|up|with"
_CREDENTIALS: Final = {
    "apiKey": ("ApiKey", "key"),
    "adminToken": ("AccessToken", "token"),
    "posSignature": ("PosKey", "key_id, secret"),
    "partnerSignature": ("PartnerKey", "key_id, partner_id, secret"),
    "serviceSignature": ("ServiceSecret", "name, secret"),
}
_EXAMPLE_HEADING: Final = "\nExample:\n"
_MAX_LINE_LENGTH: Final = 60


def name_methods(tag: str, operation_ids: Iterable[str]) -> dict[str, str]:
    """Return the method name for each operation: its ID without the group's noun.

    In `Processors`, `list_processors` becomes `list` and `transfer_from_processor` becomes
    `transfer`. An operation whose short name is taken keeps its ID.
    """
    noun = _NOUNS.get(tag, to_snake_case(tag).removesuffix("s"))
    pattern = re.compile(rf"([a-z]+(?:_(?:{_PREPOSITIONS}))*)_{noun}(?:e?s)?((?:_\w+)?)")
    names: dict[str, str] = {}
    for operation_id in sorted(operation_ids, key=len):
        name = pattern.sub(r"\1\2", operation_id) if pattern.fullmatch(operation_id) else ""
        name = re.sub(r"_(?:at|from|of|to)$", "", name)
        names[operation_id] = operation_id if name in {"", *names.values()} else name
    return names


def get_class_name(tag: str) -> str:
    return "".join(word.capitalize() for word in to_snake_case(tag).split("_")) + "Operations"


def is_in_client(operation_id: str) -> bool:
    return operation_id not in OMITTED and not operation_id.endswith("_alias")


def render_python_example(operation: Operation, methods: Mapping[str, str]) -> str | None:
    """Return the documented example, or None if the client does not have the operation.

    `methods` are the names of the methods for the operation's tag.
    """
    if operation.id not in methods:
        return None
    try:
        module = import_module(f"tapgate_client.operations.{to_snake_case(operation.tag)}")
        method = getattr(getattr(module, get_class_name(operation.tag)), methods[operation.id])
    except (ImportError, AttributeError):  # an operation that the client does not have yet
        return None
    example = inspect.cleandoc(method.__doc__ or "").partition(_EXAMPLE_HEADING)[2]
    return f"{_render_setup(operation)}\n{textwrap.dedent(example).strip()}" if example else None


def render_python_call(
    operation: Operation, methods: Mapping[str, str], request: ExampleRequest
) -> str:
    """Return a call with the values of a request."""
    values = {**request.query, **(request.body or {})}
    arguments = [
        *map(_render_value, request.path_values.values()),
        *(f"{name}={_render_value(value)}" for name, value in values.items()),
    ]
    call = f"client.{to_snake_case(operation.tag)}.{methods[operation.id]}"
    line = f"{call}({', '.join(arguments)})"
    if len(line) > _MAX_LINE_LENGTH:
        line = f"{call}(\n" + "".join(f"    {item},\n" for item in arguments) + ")"
    return f"{_render_setup(operation)}\n{line}"


def _render_setup(operation: Operation) -> str:
    credential, arguments = _CREDENTIALS.get(operation.scheme or "", ("", ""))
    names = ", ".join(sorted(filter(None, [credential, "TapgateClient"])))
    passed = f", {credential}({arguments})" if credential else ""
    return f"from tapgate_client import {names}\n\nclient = TapgateClient(url{passed})"


def _render_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
