"""Which route a path belongs to: plain paths by one look-up, templates segment by segment."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from tapgate.edge import percent

R = TypeVar("R")

#: What a part of a path may be as long as; nothing that exists has a longer name.
_LONGEST_NAME = 255
#: The same in percent-encoding: 4 bytes of UTF-8 for a character, 3 for each byte.
_LONGEST_ENCODED_NAME = 12 * _LONGEST_NAME


class _Node(Generic[R]):
    """One position in the templates: the fixed words that may stand here, or any one name."""

    __slots__ = ("any_name", "methods", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node[R]] = {}
        self.any_name: _Node[R] | None = None
        self.methods: dict[str, R] = {}


class Router(Generic[R]):
    def __init__(self) -> None:
        self._plain: dict[str, dict[str, R]] = {}
        self._templates: _Node[R] = _Node()

    def add(self, method: str, template: str, route: R) -> None:
        methods = self._methods_at(template)
        if method in methods:
            raise TypeError(f"{method} {template} is declared twice")
        methods[method] = route

    def _methods_at(self, template: str) -> dict[str, R]:
        if "{" not in template:
            return self._plain.setdefault(template, {})
        node = self._templates
        for part in template.split("/"):
            if part.startswith("{"):
                node.any_name = node.any_name or _Node()
                node = node.any_name
            else:
                node = node.words.setdefault(part, _Node())
        return node.methods

    def find(self, path: str) -> tuple[Mapping[str, R], list[str]] | None:
        """The routes of a path by method, and the names in it, decoded."""
        methods = self._plain.get(path)
        if methods is not None:
            return methods, []
        node = self._templates
        names: list[str] = []
        for part in path.split("/"):
            below = node.words.get(part)
            if below is None:
                if len(part) > _LONGEST_ENCODED_NAME:
                    return None
                below, name = node.any_name, percent.decoded(part)
                if below is None or not name or len(name) > _LONGEST_NAME or "\0" in name:
                    return None
                names.append(name)
            node = below
        return (node.methods, names) if node.methods else None
