"""Shared parts of an OpenAPI document: repeated parameters, bodies and responses as components.

Most operations have the same errors and many of the same parameters. Writing each of them once
reduces the document to a third, and generators create one type instead of hundreds.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec

_COMPONENTS_PREFIX = "#/components/"
_SCHEMA_PREFIX = f"{_COMPONENTS_PREFIX}schemas/"
#: A response with more error codes is named after the first of them.
_MAX_NAMED_CODES = 2


def share_repeated_parts(document: dict[str, Any]) -> None:
    """Replace parameters, bodies and responses that occur more than once with references."""
    parameters = [
        (operation["parameters"], index)
        for operation in iter_operations(document)
        for index in range(len(operation["parameters"]))
    ]
    responses = [
        (operation["responses"], status)
        for operation in iter_operations(document)
        for status in operation["responses"]
    ]
    bodies = [
        (operation, "requestBody")
        for operation in iter_operations(document)
        if "requestBody" in operation
    ]
    _share(document["components"], "parameters", parameters, _name_parameter)
    _share(document["components"], "requestBodies", bodies, _name_body)
    _share(document["components"], "responses", responses, _name_response)


def inline_shared_parts(document: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the document without references to parameters, bodies and responses."""
    components = document["components"]

    def resolve(part: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in part:
            return part
        section, name = part["$ref"].removeprefix(_COMPONENTS_PREFIX).split("/")
        resolved: dict[str, Any] = components[section][name]
        return resolved

    def inline_operation(operation: dict[str, Any]) -> dict[str, Any]:
        responses = operation["responses"].items()
        inlined = operation | {
            "parameters": [resolve(item) for item in operation["parameters"]],
            "responses": {status: resolve(item) for status, item in responses},
        }
        if "requestBody" in operation:
            inlined["requestBody"] = resolve(operation["requestBody"])
        return inlined

    def inline(path_items: dict[str, Any]) -> dict[str, Any]:
        return {
            path: {method: inline_operation(operation) for method, operation in item.items()}
            for path, item in path_items.items()
        }

    return document | {
        section: inline(document[section])
        for section in ("paths", "webhooks")
        if section in document
    }


def iter_operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all path operations, then all webhook operations."""
    for section in ("paths", "webhooks"):
        for item in document.get(section, {}).values():
            yield from item.values()


def _share(
    components: dict[str, Any],
    section: str,
    places: list[tuple[Any, Any]],
    name_part: Callable[[Any, dict[str, Any]], str],
) -> None:
    """Move parts that occur more than once to a components section."""
    known: dict[str, Any] = components.setdefault(section, {})
    names: dict[bytes, str] = {}
    encoded = [msgspec.json.encode(container[key]) for container, key in places]
    counts = Counter(encoded)
    for (container, key), content in zip(places, encoded, strict=True):
        part = container[key]
        if "$ref" in part or counts[content] == 1:
            continue
        if content not in names:
            name = base = name_part(key, part)
            number = 1
            while name in known:
                number += 1
                name = f"{base}{number}"
            names[content], known[name] = name, part
        container[key] = {"$ref": f"{_COMPONENTS_PREFIX}{section}/{names[content]}"}


def _name_parameter(_: Any, parameter: dict[str, Any]) -> str:
    reference = parameter["schema"].get("$ref")
    if reference is not None:
        return str(reference.removeprefix(_SCHEMA_PREFIX))
    name = parameter["name"]
    return _to_camel_case(parameter["description"] if name == "id" else name)


def _name_body(_: Any, body: dict[str, Any]) -> str:
    content: dict[str, Any] = next(iter(body["content"].values()))
    return str(content["schema"].get("$ref", "file").removeprefix(_SCHEMA_PREFIX))


def _name_response(status: str, response: dict[str, Any]) -> str:
    """Return a response's name: its first error codes, or its type and a status other than 200."""
    content: dict[str, Any] = next(iter(response.get("content", {}).values()), {})
    if status == "default":
        return "Error"
    if content.get("examples"):
        names = [_to_camel_case(code) for code in content["examples"]]
        return "".join(names[:_MAX_NAMED_CODES]) + "More" * (len(names) > _MAX_NAMED_CODES)
    if not status.startswith("2") or not status.isdigit():
        return _to_camel_case(f"webhook {status}" if status == "2XX" else response["description"])
    kind = content.get("schema", {}).get("$ref", "").removeprefix(_SCHEMA_PREFIX)
    phrase = "" if kind and status == "200" else HTTPStatus(int(status)).phrase
    return _to_camel_case(f"{kind} {phrase}")


def _to_camel_case(text: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    return "".join(
        word[0].upper() + (word[1:].lower() if word.isupper() else word[1:]) for word in words
    )
