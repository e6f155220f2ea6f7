"""Path router: one lookup for static paths, a segment tree for templates."""

from collections.abc import Mapping
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

R = TypeVar("R")

#: Max. decoded path segment length. No identifier is longer.
_MAX_SEGMENT_LENGTH = 255
#: A character takes up to 4 bytes in UTF-8, and each byte 3 characters when percent-encoded.
_MAX_ENCODED_SEGMENT_LENGTH = 12 * _MAX_SEGMENT_LENGTH
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class _Node(Generic[R]):
    """Template tree node: children by literal segment, and one child for a parameter."""

    __slots__ = ("literals", "methods", "parameter")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[R]] = {}
        self.parameter: _Node[R] | None = None
        self.methods: dict[str, R] = {}


class Router(Generic[R]):
    def __init__(self) -> None:
        self._static_routes: dict[str, dict[str, R]] = {}
        self._template_root: _Node[R] = _Node()

    def add(self, method: str, template: str, route: R) -> dict[str, R]:
        """Add a route, and return all routes with the same template by method."""
        methods = self._get_methods(template)
        if method in methods:
            raise TypeError(f"{method} {template} is declared twice")
        methods[method] = route
        return methods

    def _get_methods(self, template: str) -> dict[str, R]:
        if "{" not in template:
            return self._static_routes.setdefault(template, {})
        node = self._template_root
        for part in template.split("/"):
            if part.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            elif part in node.literals:
                node = node.literals[part]
            else:
                node = node.literals.setdefault(part, _Node())
        return node.methods

    def find(self, path: str) -> tuple[Mapping[str, R], list[str]] | None:
        """Return a path's routes by method, and its decoded parameters, or None without a match."""
        methods = self._static_routes.get(path)
        if methods is not None:
            return methods, []
        node = self._template_root
        parameters: list[str] = []
        for part in path.split("/"):
            child = node.literals.get(part)
            if child is None:
                if len(part) > _MAX_ENCODED_SEGMENT_LENGTH:
                    return None
                child, value = node.parameter, decode_percent(part)
                if child is None or not value or len(value) > _MAX_SEGMENT_LENGTH or "\0" in value:
                    return None
                parameters.append(value)
            node = child
        return (node.methods, parameters) if node.methods else None


def decode_percent(raw: str) -> str | None:
    """Decode percent-encoded text. Return None if it is malformed or not UTF-8."""
    if "%" not in raw and raw.isascii():
        return raw
    encoded = raw.encode("latin-1")
    for after in encoded.split(b"%")[1:]:
        if len(after) < 2 or not _HEX_DIGITS.issuperset(after[:2]):
            return None
    try:
        return unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return None
