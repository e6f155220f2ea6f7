"""Scanner that finds the visible texts in a template's HTML.

A template is a sequence of HTML fragments and expressions. The scanner keeps its position in the
HTML between them, so that it knows which parts are text, and which belong to a tag.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from jinja2 import nodes

#: Attributes whose values people read.
TEXT_ATTRIBUTES: Final = frozenset(
    {"alt", "aria-label", "data-label", "data-confirm", "placeholder", "title"}
)
#: Elements whose contents are the same in all languages.
_LITERAL_ELEMENTS: Final = frozenset({"code", "kbd", "pre"})
_TAG_NAME: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ATTRIBUTE: Final = re.compile(r"([\w:-]+)=([\"'])$")

Piece = str | nodes.Expr


class Run(NamedTuple):
    """Adjacent fragments and expressions in the same HTML position."""

    pieces: list[Piece]
    is_text: bool


class HtmlScanner:
    """Position in a template's HTML."""

    def __init__(self) -> None:
        self._tag = ""  # the open tag up to the position, or empty
        self._quote = ""  # the open attribute value's quote, or empty
        self._attribute = ""
        self._literal = ""  # the open element with literal contents, or empty

    def copy(self) -> "HtmlScanner":
        copied = HtmlScanner()
        copied.__dict__.update(self.__dict__)
        return copied

    @property
    def is_text(self) -> bool:
        """Whether people read what is at this position."""
        if self._quote:
            return self._attribute in TEXT_ATTRIBUTES
        return not self._tag and not self._literal

    def split(self, pieces: Iterable[Piece]) -> Iterator[Run]:
        """Split fragments and expressions into runs, and move the position to their end."""
        run: list[Piece] = []
        is_text = self.is_text
        for piece in pieces:
            if isinstance(piece, nodes.Expr):
                run.append(piece)
                continue
            start = 0
            for index, character in enumerate(piece):
                before = (self.is_text, self._quote, bool(self._tag))
                # A quote or "<" that opens belongs to the tag, and so does one that closes.
                self._advance(character)
                if (self.is_text, self._quote, bool(self._tag)) == before:
                    continue
                ends_after = not before[0]
                end = index + 1 if ends_after else index
                if piece[start:end]:
                    run.append(piece[start:end])
                if run:
                    yield Run(run, is_text)
                run, start, is_text = [], end, self.is_text
            if piece[start:]:
                run.append(piece[start:])
        if run:
            yield Run(run, is_text)

    def _advance(self, character: str) -> None:
        if self._quote:
            if character == self._quote:
                self._quote = self._attribute = ""
                self._tag += character
        elif self._tag:
            self._tag += character
            if character == ">":
                self._close_tag()
            elif match := _ATTRIBUTE.search(self._tag):
                self._attribute, self._quote = match[1].lower(), match[2]
        elif character == "<":
            self._tag = character

    def _close_tag(self) -> None:
        match = _TAG_NAME.match(self._tag)
        self._tag = ""
        if match is not None and match[2].lower() in _LITERAL_ELEMENTS:
            self._literal = "" if match[1] else match[2].lower()
